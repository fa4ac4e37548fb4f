// Calls that find too few miners are sent again, without a node: how often, after which pauses, at which
// prices, and what ends it.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { callAgent, Client, Key, waitForCall } from "../../examples/js/ombra.js";
import { floorOf, heldOf, QUESTION, Scripted, skipPauses } from "./support/scripted.mjs";

const key = await Key.fromMnemonic(`${"test ".repeat(11)}junk`, { index: 0 });
const UNASSIGNED = Array(9).fill("unassigned");
const pricesOf = ({ sent }) => sent.map(({ prices }) => prices.perCall);
const heldBy = ({ sent }) => sent.map(({ maxFee }) => maxFee);

test("a call that finds too few miners is sent again, from the third try on for a higher price", async (t) => {
  const pauses = skipPauses(t);
  const node = new Scripted({ ends: UNASSIGNED, perCalls: ["1000", "1004", "1001"] });
  const told = await callAgent(node, key, { ...QUESTION, onResult: [{ when: "success", to: "1".repeat(40), amount: 7n }] });
  assert.deepEqual([told.status, told.values, told.tries], ["unassigned", null, 3]);
  // 1001 and a quarter are 1251.25.
  assert.deepEqual(pricesOf(node), ["1000", "1004", "1252"]);
  assert.deepEqual(heldBy(node), ["1000", "1004", "1252"].map((perCall) => `${Number(heldOf(perCall)) + 7}`));
  assert.deepEqual(node.sent.map(({ nonce }) => nonce), [7, 8, 9]);
  assert.equal(new Set(node.sent.map(({ callId }) => callId)).size, 3);
  assert.deepEqual([told.callId, told.tx.nonce], [node.sent[2].callId, 9]);
  assert.deepEqual(pauses, [2000, 4000]);
});

test("as many tries are made as were asked for, each at a quarter more than is estimated then", async (t) => {
  const pauses = skipPauses(t);
  const node = new Scripted({ ends: UNASSIGNED });
  const { tries } = await callAgent(node, key, QUESTION, { tries: 5 });
  assert.deepEqual([tries, pricesOf(node)], [5, ["1000", "1000", "1250", "1250", "1250"]]);
  assert.deepEqual(pauses, [2000, 4000, 4000, 4000]);
  const once = new Scripted({ ends: UNASSIGNED });
  const told = await callAgent(once, key, QUESTION, { tries: 1 });
  assert.deepEqual([told.status, told.tries, once.sent.length, pauses.length], ["unassigned", 1, 1, 4]);
});

test("nothing is sent again after any other end", async (t) => {
  const pauses = skipPauses(t);
  for (const end of ["failed", "timedOut"]) {
    const node = new Scripted({ ends: [end] });
    const told = await callAgent(node, key, QUESTION);
    assert.deepEqual([told.status, told.tries, node.sent.length], [end, 1, 1]);
    const later = new Scripted({ ends: ["unassigned", end] });
    const { status, tries } = await callAgent(later, key, QUESTION);
    assert.deepEqual([status, tries, later.sent.length], [end, 2, 2]);
  }
  assert.deepEqual(pauses, [2000, 2000]);
});

test("prices of the question stay, and with all of it told nothing is estimated", async (t) => {
  skipPauses(t);
  const prices = { perCall: "900", promptPerM: "1", completionPerM: "1", fuelPerG: "1" };
  const node = new Scripted({ ends: UNASSIGNED });
  await callAgent(node, key, { ...QUESTION, prices });
  assert.deepEqual(node.sent.map((tx) => tx.prices), [prices, prices, prices]);
  assert.equal(node.estimated.length, 3);
  const limits = { inputTokens: 1, outputTokens: 1, fuel: 1, resultBytes: 1 };
  const told = new Scripted({ ends: UNASSIGNED });
  await callAgent(told, key, { ...QUESTION, prices, limits, maxFee: "5000" });
  assert.deepEqual([pricesOf(told), heldBy(told)], [["900", "900", "900"], ["5000", "5000", "5000"]]);
  assert.equal(told.estimated.length, 0);
});

test("no more is held than the question allows", async (t) => {
  const pauses = skipPauses(t);
  const onResult = [{ when: "success", to: "1".repeat(40), amount: "7" }];
  const least = BigInt(floorOf("1250")) + 7n;
  const enough = new Scripted({ ends: UNASSIGNED });
  const { tries } = await callAgent(enough, key, { ...QUESTION, onResult, maxFee: least });
  assert.deepEqual([tries, heldBy(enough)], [3, Array(3).fill(`${least}`)]);
  const short = new Scripted({ ends: UNASSIGNED });
  const told = await callAgent(short, key, { ...QUESTION, onResult, maxFee: least - 1n });
  assert.deepEqual([told.status, told.tries, pricesOf(short)], ["unassigned", 2, ["1000", "1000"]]);
  const dearer = new Scripted({ ends: UNASSIGNED, perCalls: ["1000", "2000"] });
  assert.equal((await callAgent(dearer, key, { ...QUESTION, maxFee: heldOf("1000") })).tries, 1);
  assert.deepEqual(pauses, [2000, 4000, 2000, 4000, 2000]);
});

test("a further try for which there are too few miners is not paid for", async (t) => {
  const pauses = skipPauses(t);
  // The third estimate is of the prices that the node suggests, the fourth of the higher ones.
  const node = new Scripted({ ends: UNASSIGNED, eligible: [3, 2, 2, 3] });
  const told = await callAgent(node, key, QUESTION);
  assert.deepEqual([told.status, told.tries, pricesOf(node)], ["unassigned", 2, ["1000", "1250"]]);
  const never = new Scripted({ ends: UNASSIGNED, eligible: [3, 2, 2, 2] });
  assert.equal((await callAgent(never, key, QUESTION)).tries, 1);
  assert.deepEqual(pauses, [2000, 4000, 2000, 4000]);
});

test("an error says how many calls were sent", async (t) => {
  skipPauses(t);
  const few = new Scripted({ ends: UNASSIGNED, eligible: [2] });
  await assert.rejects(callAgent(few, key, QUESTION), { code: "TOO_FEW_MINERS", tries: 0 });
  const away = new Scripted({ ends: UNASSIGNED, perCalls: ["1000", "away"] });
  await assert.rejects(callAgent(away, key, QUESTION), { code: "UNREACHABLE", tries: 1 });
  for (const tries of [0, -1, 1.5, "3", null]) {
    await assert.rejects(callAgent(away, key, QUESTION, { tries }), { name: "FieldError", field: "tries", tries: 0 });
  }
  assert.equal(away.sent.length, 1);
});

test("the time that the caller waits at most is for all tries together", async (t) => {
  const pauses = skipPauses(t);
  for (const [waitMs, tries] of [[2000, 1], [2001, 2], [6000, 2], [6001, 3]]) {
    const told = await callAgent(new Scripted({ ends: UNASSIGNED }), key, QUESTION, { waitMs });
    assert.deepEqual([told.status, told.tries], ["unassigned", tries], `${waitMs} ms`);
  }
  assert.deepEqual(pauses, [2000, 2000, 2000, 4000]);
});

test("a signal ends a pause at once, and nothing more is sent", async (t) => {
  const controller = new AbortController();
  const pauses = skipPauses(t, () => () => controller.abort());
  const cleared = t.mock.method(globalThis, "clearTimeout", () => {});
  const node = new Scripted({ ends: UNASSIGNED });
  const error = await callAgent(node, key, QUESTION, { signal: controller.signal }).catch((thrown) => thrown);
  assert.deepEqual([error.code, error.tries, error.data.status], ["ABORTED", 1, "unassigned"]);
  assert.equal(error.data.callId, node.sent[0].callId);
  assert.deepEqual([pauses, cleared.mock.calls[0].arguments], [[2000], [1]]);
  await assert.rejects(callAgent(node, key, QUESTION, { signal: controller.signal }), { code: "ABORTED", tries: 0 });
  assert.equal(node.sent.length, 1);
});

test("a signal ends the waiting for members", async (t) => {
  const controller = new AbortController();
  // Whoever asks is never answered.
  const server = createServer(() => controller.abort());
  t.after(() => [server.closeAllConnections?.(), server.close()]);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const node = new Client(`http://127.0.0.1:${server.address().port}`);
  const waiting = waitForCall(node, "ab".repeat(32), { signal: controller.signal });
  await assert.rejects(waiting, { code: "ABORTED", data: { callId: "ab".repeat(32) } });
});
