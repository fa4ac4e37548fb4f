// The agent market without a node: payloads, prices, elections, and what of a call has to fit together.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as ombra from "../../examples/js/ombra.js";
import { request, settledCall } from "./support/call.mjs";
import { ABI, ELECTIONS, MARKET } from "./support/repository.mjs";
import { heldOf, QUESTION, Scripted } from "./support/scripted.mjs";

const { AgentMethod, agentMethods, checkCall, drawMembers, priceOf, verifyElection } = ombra;

test("payloads and results are those of another implementation, byte for byte", () => {
  assert.ok(ABI.length >= 8);
  for (const { method: entry, signature, selector, values, encoded } of ABI) {
    const method = new AgentMethod(entry);
    assert.deepEqual([method.signature, method.selector], [signature, selector]);
    assert.equal(method.encode(values), selector + encoded, signature);
    assert.equal(method.encode(Array.isArray(values) ? values : Object.values(values)), selector + encoded, signature);
    assert.deepEqual(method.decode(selector + encoded), values, signature);
    assert.deepEqual(method.decodeResult(`0x${encoded}`), values, signature);
    assert.equal(ombra.methodOf(agentMethods({ abi: [entry] }), selector).name, entry.name);
  }
});

test("what is not encoded exactly so is not decoded", () => {
  for (const { method: entry, encoded } of ABI.filter(({ encoded }) => encoded !== "")) {
    const method = new AgentMethod(entry);
    const wrong = [`0x${encoded}00`, `0x${encoded}${"00".repeat(32)}`, `0x${encoded.slice(2)}`, "0x", encoded, undefined];
    for (const result of wrong) assert.throws(() => method.decodeResult(result), { field: "result" }, result);
  }
  // Arrays that all stand at one place would be 2^40 elements.
  const nested = new AgentMethod({ type: "function", name: "f", inputs: [], outputs: [{ name: "", type: "uint8[][][][]" }] });
  const word = (number) => number.toString(16).padStart(64, "0");
  const bomb = `0x${word(32)}${`${word(500)}${word(0).repeat(500)}`}`;
  assert.throws(() => nested.decodeResult(bomb), { field: "result" });
});

test("arguments that a method does not take are refused by name", () => {
  const inputs = [{ name: "who", type: "address" }, { name: "items", type: "tuple[]", components: [{ name: "n", type: "uint8" }] }];
  const tagged = new AgentMethod({ type: "function", name: "f", inputs: [{ name: "tag", type: "bytes2" }], outputs: [] });
  for (const tag of ["0x01", "0x010203", "0102", 1]) assert.throws(() => tagged.encode({ tag }), { field: "args.tag" });
  const method = new AgentMethod({ type: "function", name: "f", inputs, outputs: [] });
  const who = "ab".repeat(20);
  const same = [`0x${who}`, `ox${who}`, who].map((written) => method.encode({ who: written, items: [{ n: 255 }] }));
  assert.equal(new Set(same).size, 1);
  const refusals = [
    [{ who, items: [{ n: 256 }] }, "args.items[0].n"],
    [{ who, items: [{ n: 2 ** 53 }] }, "args.items[0].n"],
    [{ who, items: [{}] }, "args.items[0].n"],
    [{ who, items: [{ n: 1, m: 1 }] }, "args.items[0].m"],
    [{ who: "0x12", items: [] }, "args.who"],
    [{ who }, "args.items"],
    [[who], "args"],
    ["x", "args"],
    [{ who, items: Array.from({ length: 600 }, () => [1]) }, "payload"],
  ];
  for (const [args, field] of refusals) assert.throws(() => method.encode(args), { name: "FieldError", field });
});

test("types that no agent has are refused", () => {
  const of = (type, components) => ({ type: "function", name: "f", inputs: [{ name: "", type, components }], outputs: [] });
  const types = ["uint7", "uint264", "bytes0", "bytes33", "int08", "float", "string[0]", "bool[1025]", "uint8[][][][][]", "tuple", ""];
  for (const type of types) assert.throws(() => new AgentMethod(of(type)), { name: "FieldError" }, type);
  let deep = { name: "x", type: "bool" };
  for (let depth = 0; depth < 9; depth += 1) deep = { name: "x", type: "tuple", components: [deep] };
  assert.throws(() => new AgentMethod(of(deep.type, deep.components)), { name: "FieldError" });
  assert.ok(new AgentMethod(of("tuple", deep.components[0].components)));
});

test("prices, ids and commitments are the golden ones", async () => {
  for (const { prices, usage, price } of MARKET.prices) assert.equal(`${priceOf(prices, usage)}`, price);
  for (const { owner, name, agentId } of MARKET.agentIds) assert.equal(await ombra.computeAgentId(owner, name), agentId);
  for (const { chainId, from, nonce, callId } of MARKET.callIds) {
    assert.equal(await ombra.computeCallId(chainId, from, nonce), callId);
  }
  for (const { result, salt, commitment, ...answer } of MARKET.commitments) {
    assert.equal(await ombra.computeCommitment(answer, salt, answer), commitment);
    assert.equal(await ombra.computeResultHash(result), answer.resultHash);
  }
});

test("members are drawn as the chain draws them, whatever the order of the candidates", async () => {
  assert.ok(ELECTIONS.length >= 4);
  for (const { candidates, members, candidatesHash, ...round } of ELECTIONS) {
    const listed = candidates.map(([address, weight]) => ({ address, weight })).reverse();
    const drawn = await drawMembers(round, listed);
    assert.deepEqual([drawn.members, drawn.candidatesHash], [members, candidatesHash]);
    const told = { ...round, members, candidatesHash };
    assert.equal(await verifyElection(told, listed), null);
    const heavier = [{ ...listed[0], weight: "99999999" }, ...listed.slice(1)];
    assert.match(await verifyElection(told, heavier), /candidatesHash/);
    const fewer = { ...told, members: members.slice(1) };
    assert.match(await verifyElection(fewer, listed), /were drawn/);
  }
});

test("the seat of a candidate that works at as much as it can stays empty", async () => {
  const [{ candidates, members, ...round }] = ELECTIONS;
  const listed = candidates.map(([address, weight]) => ({ address, weight, leftOut: address === members[0] }));
  const drawn = await drawMembers(round, listed);
  assert.deepEqual(drawn.seats.map(({ isEmpty }) => isEmpty), [true, false, false]);
  assert.deepEqual(drawn.members, members.slice(1));
  assert.notEqual(drawn.candidatesHash, round.candidatesHash);
  for (const wrong of [[...listed, listed[0]], [{ ...listed[0], weight: "0" }], "x"]) {
    await assert.rejects(drawMembers(round, wrong), { name: "FieldError" });
  }
});

test("what a question leaves out is estimated, and follows from the agent", async () => {
  const onResult = [{ when: "success", to: "1".repeat(40), amount: 7n }];
  const { fields } = await ombra.prepareCall(new Scripted({}), { ...QUESTION, onResult });
  const { payload, prices, limits, ...others } = fields;
  assert.equal(payload, ABI[0].selector + ABI[0].encoded);
  const known = { agentId: QUESTION.agentId, agentVersion: "1.0.0", consensus: "majority", committeeSize: 3 };
  assert.deepEqual(others, { ...known, timeoutMs: 60000, onResult, maxFee: `${Number(heldOf("1000")) + 7}` });
  const differing = new Scripted({ deterministic: false });
  const collected = await ombra.prepareCall(differing, { ...QUESTION, committeeSize: 5 });
  assert.deepEqual([collected.fields.consensus, collected.fields.threshold], ["threshold", 3]);
  assert.equal(differing.estimated[0].threshold, 3);
});

test("nothing is prepared of metadata that is not that of its hash, or for too few miners", async () => {
  for (const [node, question, word] of [
    [new Scripted({ metadataHash: "0".repeat(64) }), QUESTION, "AGENT_UNFIT"],
    [new Scripted({}), { ...QUESTION, agentId: "1".repeat(64) }, "AGENT_UNFIT"],
    [new Scripted({ eligible: [2] }), QUESTION, "TOO_FEW_MINERS"],
  ]) {
    await assert.rejects(ombra.prepareCall(node, question), { code: word });
  }
});

/** A copy of the call with one thing changed. */
async function changed(change) {
  const call = structuredClone(await settledCall());
  change(call);
  return call;
}

test("a call that fits together passes, also before it is settled and without a group", async () => {
  await checkCall(await settledCall(), await request());
  await checkCall(await changed((call) => Object.assign(call, { settled: false })), await request());
  const open = (call) => Object.assign(call, { settled: false, status: "electing", rounds: [], answer: undefined });
  await checkCall(await changed(open), await request());
  const undecided = (call) => {
    const [round] = call.rounds;
    round.members.pop();
    Object.assign(round, { group: undefined, agreeing: 0 });
    Object.assign(call, { settled: false, status: "failed", answer: undefined });
  };
  await checkCall(await changed(undecided), await request());
  // Too few miners: there is a round with the hash of the candidates, and all of the money is back.
  const nothing = { wages: "0", royaltyPaid: "0", burned: "0", penalties: "0" };
  const unassigned = (call) => {
    const rounds = [{ ...call.rounds[0], elected: 0, members: [], decidedAt: undefined, group: undefined, agreeing: 0 }];
    Object.assign(call, nothing, { status: "unassigned", rounds, answer: undefined, refund: call.maxFee });
  };
  await checkCall(await changed(unassigned), await request());
  const short = (call) => {
    unassigned(call);
    Object.assign(call, { refund: "9999", burned: "1" });
  };
  await assert.rejects(checkCall(await changed(short), await request()), (error) => error.data.field === "refund");
});

test("whatever of a call does not fit is named", async () => {
  const [ZERO, one] = ["0".repeat(64), (call) => call.rounds[0].members[0]];
  const refusals = [
    ["callId", (call) => { call.callId = ZERO; }],
    ["requester", (call) => { call.requester = "2".repeat(40); }],
    ["maxFee", (call) => { call.maxFee = "10001"; }],
    ["prices.perCall", (call) => { call.prices.perCall = "1001"; }],
    ["payloadHash", (call) => { call.payloadHash = ZERO; }],
    ["budget", (call) => { call.budget = "1"; }],
    [/members .*commitment/, (call) => { one(call).reveal.salt = ZERO; }],
    [/members .*commitment/, (call) => { one(call).reveal.fuel += 1; }],
    [/members .*commitment/, (call) => { delete one(call).commitment; }],
    [/salt/, (call) => { delete one(call).reveal.salt; }],
    [/resultHash/, (call) => { one(call).reveal.result = "0x00"; }],
    ["answer.resultHash", (call) => { call.answer.result = "0x6e6f"; }],
    ["answer", (call) => { call.answer.fuel += 1; }],
    ["status", (call) => { call.status = "failed"; }],
    [/group.outcome/, (call) => { call.rounds[0].size = 5; }],
    [/decidedAt/, (call) => { delete call.rounds[0].decidedAt; }],
    ["status", (call) => { for (const name of ["decidedAt", "group"]) delete call.rounds[0][name]; }],
    [/group.answer/, (call) => { call.rounds[0].group.answer = call.rounds[0].members[1].reveal; }],
    [/agreeing/, (call) => { call.rounds[0].agreeing = 3; }],
    [/sum of the bill/, (call) => { call.refund = "0"; }],
    ["wages", (call) => { [call.wages, call.refund] = [call.refund, call.wages]; }],
    [/what .* got/, (call) => { [one(call).paid, call.rounds[0].members[1].paid] = ["0", one(call).paid]; }],
    [/what .* lost/, (call) => { [one(call).penalty, call.rounds[0].members[1].penalty] = ["2000", "0"]; }],
    ["royaltyPaid", (call) => { [call.royaltyPaid, call.conditionalPaid] = ["0", "500"]; }],
    ["bondBehind", (call) => { call.bondBehind = "30000000"; }],
    ["burned", (call) => { [call.burned, call.refund] = [call.refund, call.burned]; }],
  ];
  for (const [field, change] of refusals) {
    const call = await changed(change);
    const thrown = await checkCall(call, await request()).then(() => null, (error) => error);
    assert.equal(thrown?.code, "CALL_UNFIT", `${field}: ${thrown}`);
    if (field instanceof RegExp) assert.match(thrown.data.field, field);
    else assert.equal(thrown.data.field, field);
  }
});
