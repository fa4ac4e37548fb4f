// Subscriptions: every event once and in order, whatever happens to the connection.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "../../examples/js/ombra.js";
import { account, client, nowhere, URL_OF_NODE, waitUntil, wire } from "./support/chain.mjs";
import { WebSocket } from "./support/websocket.mjs";

const node = client();

/** Sends `count` transfers of an account without waiting; answers their hashes. */
async function pay(key, count) {
  const hashes = [];
  for (let sent = 0; sent < count; sent += 1) {
    hashes.push((await node.submit(key, "TRANSFER", { to: key.address, amount: "1" })).hash);
  }
  return hashes;
}

test("a subscription through a wire that is cut tells each event once", async (t) => {
  const key = await account(3);
  const line = await wire();
  t.after(() => line.close());
  const seen = [];
  const filter = { address: key.address };
  const listen = client(line.url).subscribe("transactions", filter, ({ hash }) => seen.push(hash));
  const subscription = await listen;
  t.after(() => subscription.close());

  const sent = [];
  for (let round = 0; round < 8; round += 1) {
    sent.push(...(await pay(key, 5)));
    await waitUntil("an event", () => seen.length > 5 * round);
    line.cut();
    sent.push(...(await pay(key, 3)));
    await waitUntil("a new connection", () => line.connections() > 0);
  }
  await waitUntil("all events", () => seen.length >= sent.length);
  assert.deepEqual(seen, sent);
});

test("a wire that went dead without a word is noticed", async (t) => {
  const key = await account(4);
  const line = await wire();
  t.after(() => line.close());
  const seen = [];
  const options = { silenceMs: 300 };
  const onEvent = ({ hash }) => seen.push(hash);
  const listen = client(line.url).subscribe(
    "transactions",
    { address: key.address },
    onEvent,
    options,
  );
  const subscription = await listen;
  t.after(() => subscription.close());

  line.deaden();
  const sent = await pay(key, 3);
  await waitUntil("the events over a new connection", () => seen.length >= sent.length);
  assert.deepEqual(seen, sent);
});

test("the past is told from the block that was asked for", async (t) => {
  const heights = [];
  const { height } = await node.rpc("ombra_chainInfo");
  const subscription = await node.subscribe(
    "blocks",
    { fromBlock: 1 },
    ({ index }) => heights.push(index),
  );
  t.after(() => subscription.close());
  await waitUntil("all blocks", () => heights.length >= height);
  assert.deepEqual(heights, heights.map((_, at) => at + 1));
});

test("the pool is heard live, and a closed subscription is silent", async () => {
  const key = await account(5);
  const heard = { open: [], closed: [] };
  const filter = { address: key.address };
  const listen = (list) =>
    node.subscribe("pool", filter, ({ event, hash }) => list.push(`${event} ${hash}`));
  const [open, closed] = [await listen(heard.open), await listen(heard.closed)];
  closed.close();
  const sent = await pay(key, 2);
  await waitUntil("both", () => heard.open.length >= 2);
  open.close();
  assert.deepEqual(heard, { open: sent.map((hash) => `accepted ${hash}`), closed: [] });
});

test("wrong kinds, nodes that are away and engines without WebSocket are told", async () => {
  const ignore = () => {};
  const refused = (promise, code) => assert.rejects(promise, { name: "OmbraError", code });
  await refused(node.subscribe("nothing", {}, ignore), "INVALID_PARAMS");
  await refused(node.subscribe("chat", { mood: "good" }, ignore), "INVALID_PARAMS");
  await refused(node.subscribe("pool", { fromBlock: 1 }, ignore), "INVALID_PARAMS");
  await refused(client(`http://${await nowhere()}`).subscribe("blocks", {}, ignore), "UNREACHABLE");
  const poor = new Client(URL_OF_NODE, { WebSocket: null });
  await refused(poor.subscribe("blocks", {}, ignore), "NO_WEBSOCKET");
});

test("a first connection that fails is made again", async (t) => {
  const away = `ws://${await nowhere()}/`;
  let failures = 3;
  class Shy extends WebSocket {
    constructor(url) {
      super(failures > 0 ? away : url);
      failures -= 1;
    }
  }
  const heights = [];
  const onEvent = ({ index }) => heights.push(index);
  const shy = new Client(URL_OF_NODE, { WebSocket: Shy });
  const subscription = await shy.subscribe("blocks", { fromBlock: 1 }, onEvent);
  t.after(() => subscription.close());
  assert.equal(failures, -1);
  await waitUntil("a block", () => heights.length > 0);
  assert.equal(heights[0], 1);
});

test("the engine's own WebSocket serves as well", { skip: !globalThis.WebSocket }, async (t) => {
  const key = await account(6);
  const seen = [];
  const filter = { address: key.address };
  const onEvent = ({ hash }) => seen.push(hash);
  const subscription = await new Client(URL_OF_NODE).subscribe("transactions", filter, onEvent);
  t.after(() => subscription.close());
  const sent = await pay(key, 3);
  await waitUntil("all events", () => seen.length >= sent.length);
  assert.deepEqual(seen, sent);
});
