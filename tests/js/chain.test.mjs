// A client signs for the chain that it was given, or else for the first one that the node named.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { Client, Key } from "../../examples/js/ombra.js";

const HOME = { chainId: "home", genesisHash: "11".repeat(32) };
const AWAY = { chainId: "away", genesisHash: "22".repeat(32) };
let [server, url, named, sent] = [null, null, HOME, []];

before(async () => {
  server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const { id, method, params } = JSON.parse(body);
    if (method === "ombra_sendTransaction") sent.push(params[0]);
    const answers = {
      ombra_chainInfo: named,
      ombra_getAccount: { pendingNonce: 0 },
      ombra_sendTransaction: { hash: params[0]?.hash },
    };
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${server.address().port}`;
});

after(() => server.close());

const pay = async (client) => {
  const key = await Key.fromPrivateKey("01".repeat(32));
  return client.submit(key, "TRANSFER", { to: key.address, amount: "1" });
};

test("nothing is signed on the word of a node of another chain", async () => {
  [named, sent] = [AWAY, []];
  const expected = [HOME, { chainId: "home" }, { ...AWAY, genesisHash: HOME.genesisHash }];
  for (const chain of expected) {
    const refused = await pay(new Client(url, { chain })).catch((error) => error);
    assert.equal(refused.code, "OTHER_CHAIN");
    assert.deepEqual(refused.data.got, AWAY);
    for (const part of [AWAY.chainId, AWAY.genesisHash, chain.chainId]) {
      assert.ok(refused.message.includes(part), refused.message);
    }
  }
  assert.deepEqual(sent, []);
});

test("the chain that was given is signed for, and the first one otherwise", async () => {
  [named, sent] = [HOME, []];
  assert.equal((await pay(new Client(url, { chain: HOME }))).chainId, "home");
  const client = new Client(url);
  assert.deepEqual(await client.chain(), HOME);
  named = AWAY;
  assert.equal((await pay(client)).chainId, "home");
  assert.equal(sent.length, 2);
});
