// A client signs for the chain that it was given, or else for the first one that the node named, and
// protects runs on chains that can.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Key, protection } from "../../examples/js/ombra.js";

const HOME = { chainId: "home", genesisHash: "11".repeat(32) };
const AWAY = { chainId: "away", genesisHash: "22".repeat(32) };
const BEFORE_V7 = { chatTurnFee: "100" };
const FROM_V7 = { ...BEFORE_V7, baseFee: "10" };
let [named, sent, schedule] = [HOME, [], BEFORE_V7];

/** A client of a node that says what stands above. */
class Scripted extends Client {
  async rpc(method, [first] = []) {
    if (method === "ombra_sendTransaction") sent.push(first);
    const answers = {
      ombra_chainInfo: named,
      ombra_getAccount: { pendingNonce: 0 },
      ombra_feeSchedule: schedule,
      ombra_sendTransaction: { hash: first?.hash },
    };
    return answers[method];
  }
}

/** A client that expects this chain. */
const client = (chain) => new Scripted(undefined, { chain });

const pay = async (node) => {
  const key = await Key.fromPrivateKey("01".repeat(32));
  return node.submit(key, "TRANSFER", { to: key.address, amount: "1" });
};

test("nothing is signed on the word of a node of another chain", async () => {
  [named, sent] = [AWAY, []];
  const expected = [HOME, { chainId: "home" }, { ...AWAY, genesisHash: HOME.genesisHash }];
  for (const chain of expected) {
    const refused = await pay(client(chain)).catch((error) => error);
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
  assert.equal((await pay(client(HOME))).chainId, "home");
  const node = client();
  assert.deepEqual(await node.chain(), HOME);
  named = AWAY;
  assert.equal((await pay(node)).chainId, "home");
  assert.equal(sent.length, 2);
});

/** The members after the time of a request that a client submits. */
async function asked(fields, options) {
  [named, sent] = [HOME, []];
  const key = await Key.fromPrivateKey("01".repeat(32));
  const terms = { prompt: "?", maxFee: "1000000", maxSteps: 1, ...fields };
  await client().submit(key, "AGENT_REQUEST", terms, options);
  const names = Object.keys(sent[0]);
  const own = names.slice(names.indexOf("timestamp") + 1, names.indexOf("chainId"));
  return Object.fromEntries(own.map((name) => [name, sent[0][name]]));
}

test("a run is protected from v7 on unless that is switched off, and before v7 nothing is written", async () => {
  schedule = BEFORE_V7;
  assert.deepEqual(await asked({}), {});
  schedule = FROM_V7;
  assert.deepEqual(await asked({}), { claimBond: "1010000", refuseMs: 600000 });
  const given = await asked({ refuseMs: 5, claimBond: undefined, modelHint: "m" });
  assert.deepEqual(given, { modelHint: "m", claimBond: "1010000", refuseMs: 5 });
  const bid = { unprotected: true, tip: "7" };
  assert.deepEqual(await asked({}, bid), { tip: "7" });
});

test("the bond of a claim is more than the escrow and at least a tenth of an OMBRA", () => {
  const bonds = [["0", "100000"], ["90000", "100000"], [90001n, "100001"], [2n ** 64n - 1n, `${2n ** 64n - 1n}`]];
  for (const [maxFee, claimBond] of bonds) {
    assert.deepEqual(protection(maxFee), { claimBond, refuseMs: 600000 });
  }
});
