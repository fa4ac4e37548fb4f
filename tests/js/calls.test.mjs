// Agents of a running chain are called by the library: the answer is decoded, and everything that the
// node says of the call is checked.

import assert from "node:assert/strict";
import { before, test } from "node:test";

import * as ombra from "../../examples/js/ombra.js";
import { account, client } from "./support/chain.mjs";
import { answer, METHOD, openMarket } from "./support/members.mjs";

const { callAgent, checkCall, checkElection, computeCallId, readCall, verifyElection, waitForCall } = ombra;
const ASKED = { method: "judge", args: { review: "What a book 😀", stars: 5 } };
const GOOD = { values: { verdict: "splendid 😀", good: true } };
const BAD = { values: { verdict: "dreadful", good: false } };

const node = client();
let caller;
let market;

before(async () => {
  caller = await account(1);
  market = await openMarket(node, "judge", [2, 3, 4, 5]);
});

/** Asks, and has the members answer meanwhile. */
async function ask(question, says, options) {
  const callId = await computeCallId(await node.chainId(), caller.address, await node.nextNonce(caller.address));
  const asked = callAgent(node, caller, { agentId: market.agentId, ...ASKED, ...question }, options);
  const [told] = await Promise.all([asked, answer(node, market, { callId, says })]);
  assert.equal(told.callId, callId);
  return told;
}

test("an agent is called, and the answer of most is decoded and paid", async () => {
  const told = await ask({}, (place) => (place === 1 ? BAD : GOOD), { until: "settled" });
  const { status, values, call } = told;
  assert.deepEqual([status, values], ["success", { verdict: "splendid 😀", good: true }]);
  assert.deepEqual(METHOD.decode(call.payload), { review: "What a book 😀", stars: "5" });
  assert.deepEqual([call.settled, call.agreeing, call.royaltyPaid, call.penalties], [true, 2, "500", "2000"]);
  const [round] = call.rounds;
  assert.deepEqual(round.members.map(({ agreed }) => agreed), [true, false, true]);
});

test("the members that the node names are those that the randomness draws", async () => {
  const { call } = await ask({}, () => GOOD, { until: "settled" });
  await checkElection(node, call);
  const [round] = call.rounds;
  const { candidates } = await node.rpc("ombra_getElection", [call.callId, 0]);
  assert.deepEqual(candidates.map(({ address }) => address), Object.keys(market.miners).sort());
  const { value: randomness } = await node.rpc("ombra_getRandomness", [round.electedIn]);
  const told = { callId: call.callId, round: 0, randomness, size: 3, candidatesHash: round.candidatesHash, members: [] };
  assert.match(await verifyElection(told, candidates), /were drawn/);
  assert.match(await verifyElection(told, candidates.slice(1)), /candidatesHash/);
  const others = { ...call, rounds: [{ ...round, members: round.members.slice(1) }] };
  await assert.rejects(checkElection(node, others), { code: "ELECTION_UNFIT" });
});

test("a failure and a call without a group have no values, and their bills fit", async () => {
  const failed = await ask({}, () => ({ outcome: "failure" }), { until: "settled" });
  assert.deepEqual([failed.status, failed.values, failed.call.royaltyPaid], ["failed", null, "0"]);
  const spread = await ask({}, (place) => ({ ...GOOD, usage: { outputTokens: place } }), { until: "settled" });
  assert.deepEqual([spread.status, spread.values, spread.call.wages], ["failed", null, "0"]);
});

test("of a threshold the answers of each member are told", async () => {
  const prices = { perCall: "1000", promptPerM: "0", completionPerM: "0", fuelPerG: "0" };
  for (const key of Object.values(market.miners)) {
    const tx = await node.submit(key, "MINER_OFFER", { executor: `model-1:${"ee".repeat(32)}`, capacity: 9, ...prices });
    await node.waitFor(tx.hash);
  }
  const limits = { inputTokens: 100, outputTokens: 100, fuel: 0, resultBytes: 512 };
  const question = { consensus: "threshold", threshold: 2, prices, limits, maxFee: "10000" };
  const { status, call } = await ask(question, (place) => (place === 0 ? BAD : GOOD), { until: "settled" });
  assert.deepEqual([status, call.answers.length, call.wages], ["success", 3, "3000"]);
  for (const { result } of call.answers) assert.ok(METHOD.decodeResult(result).verdict);
});

test("a doubted answer goes to more members, and the bill of the appeal fits", async () => {
  const { callId, values } = await ask({ committeeSize: 1, appealable: true }, () => BAD);
  assert.equal(values.verdict, "dreadful");
  const appeal = await node.submit(await account(6), "CALL_APPEAL", { callId });
  await node.waitFor(appeal.hash);
  await answer(node, market, { callId, round: 1, says: () => GOOD });
  const call = await waitForCall(node, callId, { until: "settled" });
  await checkCall(call);
  assert.equal(METHOD.decodeResult(call.answer.result).good, true);
  assert.deepEqual([call.agreeing, call.rounds.length, call.rounds[0].members[0].penalty], [3, 2, "1000000"]);
  const other = await readCall(node, callId);
  other.rounds[1].members[0].reveal.salt = "00".repeat(32);
  await assert.rejects(checkCall(other), { code: "CALL_UNFIT" });
});

/** Has the pause before a second try end at once; answers how long each was. Other timers stay. */
function skipPauses(t) {
  const [pauses, timer] = [[], globalThis.setTimeout];
  t.mock.method(globalThis, "setTimeout", (end, ms, ...more) => {
    if (ms !== 2000) return timer(end, ms, ...more);
    pauses.push(ms);
    return timer(end, 0);
  });
  return pauses;
}

test("a call that found too few miners is answered at the next try", async (t) => {
  const pauses = skipPauses(t);
  const later = client();
  let estimates = 0;
  // The first estimate is of prices at which nobody works by the time of the election.
  t.mock.method(later, "rpc", async (method, ...asked) => {
    const told = await node.rpc(method, ...asked);
    if (method === "ombra_estimateCall" && (estimates += 1) === 1) told.prices.perCall = "1";
    return told;
  });
  const callId = await computeCallId(await node.chainId(), caller.address, 1 + (await node.nextNonce(caller.address)));
  const asked = callAgent(later, caller, { agentId: market.agentId, ...ASKED }, { until: "settled" });
  const [told] = await Promise.all([asked, answer(node, market, { callId, says: () => GOOD })]);
  assert.deepEqual([told.status, told.values, told.tries, told.callId], ["success", GOOD.values, 2, callId]);
  assert.equal(told.call.prices.perCall, "1000");
  assert.deepEqual(pauses, [2000]);
});

test("a question that no payload can be made of is refused before anything is sent", async () => {
  const before = await node.nextNonce(caller.address);
  const { agentId } = market;
  const refusals = [
    [{ agentId, method: "nothing" }, { field: "method" }],
    [{ agentId, method: "judge", args: ["x", 256] }, { field: "args.stars" }],
    [{ agentId: "00".repeat(32), method: "judge" }, { code: "NOT_FOUND" }],
    [{ agentId, ...ASKED, committeeSize: 15 }, { code: "TOO_FEW_MINERS" }],
  ];
  for (const [question, error] of refusals) await assert.rejects(callAgent(node, caller, question), error);
  assert.equal(await node.nextNonce(caller.address), before);
});
