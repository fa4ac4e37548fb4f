// What the explorer's page knows of the node's pool.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

/** A module of the page that imports nothing. No file beside it tells Node.js that it is a module. */
function pageModule(name) {
  const text = readFileSync(new URL(`../../explorer/${name}`, import.meta.url), "utf8");
  return import(`data:text/javascript,${encodeURIComponent(text)}`);
}

const { byState, isRefusal } = await pageModule("txpool.js");

test("what waits for the base fee is shown, and a list without it is one", () => {
  const [pending, waiting, queued] = [{ 1: "a" }, { 2: "b" }, { 9: "c" }];
  assert.deepEqual(byState({ queued, waiting, pending, nextCursor: null }), [
    ["pending", pending],
    ["waiting", waiting],
    ["queued", queued],
  ]);
  const before = [["pending", {}], ["waiting", {}], ["queued", queued]];
  assert.deepEqual(byState({ pending: {}, queued }), before);
});

test("only the chain's rules and wrong parameters refuse a transaction for good", () => {
  for (const number of [-32050, -32602]) assert.ok(isRefusal({ number }), `${number}`);
  // An internal error, a node that is syncing, a limit, and no answer at all.
  for (const number of [-32603, -32052, -32053, undefined]) {
    assert.ok(!isRefusal({ number }), `${number}`);
  }
});
