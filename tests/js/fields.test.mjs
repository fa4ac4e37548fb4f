// What the builders refuse before anything is signed, and what they fill in.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as ombra from "../../examples/js/ombra.js";
import { takeApart, VECTORS } from "./support/repository.mjs";

const key = await ombra.Key.fromMnemonic(VECTORS.wallet.mnemonic);
const OTHER = VECTORS.wallet.index1.address;
const HASH = "ab".repeat(32);
const NOW = 1715990000000;
const ENVELOPE = { nonce: 0, timestamp: NOW };
const CALL = { name: "now", argsHash: HASH, resultHash: HASH, durationMs: 1, ok: true };

/** Fields of every kind that are right. */
const RIGHT = {
  CHAT_TURN: { conversationId: HASH, role: "user", content: "hello" },
  AGENT_REQUEST: {
    agentRunId: HASH,
    conversationId: HASH,
    prompt: "hello",
    toolsWhitelist: ["now"],
    maxFee: "100",
    maxSteps: 1,
  },
  AGENT_CLAIM: {
    agentRunId: HASH,
    minerAddress: key.address,
    modelInfo: "model",
    hardwareTier: "laptop",
  },
  AGENT_STEP: {
    agentRunId: HASH,
    stepIndex: 0,
    outputTokens: 1,
    outputHash: HASH,
    toolCalls: [CALL],
  },
  AGENT_FINISH: {
    agentRunId: HASH,
    totalTokensOut: 1,
    status: "completed",
    minerReward: "1",
    userRefund: 2n,
    networkFee: "3",
  },
  AGENT_CANCEL: { agentRunId: HASH },
  TRANSFER: { to: OTHER, amount: "1", fee: "0" },
  MINER_REGISTER: { name: "miner", capabilities: ["chat"], modelInfo: "model" },
  SOCIAL_BLOB_INIT: {
    blobId: "b",
    contentType: "text/plain",
    totalBytes: 5,
    totalChunks: 1,
    contentHash: HASH,
  },
  SOCIAL_BLOB_CHUNK: { blobId: "b", chunkIndex: 0, chunkDataBase64: "aGVsbG8=" },
  SOCIAL_BLOB_FINALIZE: { blobId: "b" },
  VALIDATOR_VOTE: { candidateKey: key.publicKey, power: 10, expiresAt: NOW + 1 },
  FORK_VOTE: { fork: "v8", height: 200000 },
  PARAM_VOTE: { name: "baseFeeFloor", value: 20, height: 9 },
};

const sign = (type, change, envelope = {}) =>
  ombra.signTransaction(key, type, { ...RIGHT[type], ...change }, { ...ENVELOPE, ...envelope });

/** Signing with each change is refused, and the message names the field. */
async function refused(type, changes) {
  for (const [field, values] of Object.entries(changes)) {
    for (const value of values) {
      const name = field.split(/[.[]/)[0];
      await assert.rejects(
        sign(type, { [name]: value }),
        (error) =>
          error.name === "FieldError" && error.field === field &&
          error.message.startsWith(`${field}: got `),
        `${type} ${field} ${String(value)}`,
      );
    }
  }
}

test("every kind is signed, and a field that is missing, null or unknown is refused", async () => {
  for (const [type, fields] of Object.entries(RIGHT)) {
    const tx = await sign(type, {});
    assert.equal(tx.type, type);
    assert.equal(await key.sign(tx.hash), tx.signature);
    for (const field of Object.keys(fields)) {
      const isOptional = field === "toolCalls";
      await refused(type, { [field]: isOptional ? [null] : [undefined, null] });
    }
    await refused(type, { memo: ["hello"] });
  }
});

test("amounts are decimal strings or BigInts, never numbers", async () => {
  const wrong = [
    1,
    1.5,
    "",
    "01",
    "+1",
    "-1",
    "1.0",
    "1e3",
    " 1",
    -1n,
    2n ** 64n,
    "18446744073709551616",
  ];
  await refused("TRANSFER", { amount: wrong, fee: wrong });
  await refused("AGENT_REQUEST", { maxFee: wrong });
  await refused("AGENT_FINISH", { minerReward: wrong, userRefund: wrong, networkFee: wrong });
  const tx = await sign("TRANSFER", { amount: 2n ** 64n - 1n, fee: 0n });
  assert.deepEqual([tx.amount, tx.fee], ["18446744073709551615", "0"]);
});

test("signatures are 128 lowercase hex characters", async () => {
  await refused("VALIDATOR_VOTE", { acceptance: [7, "", "ab".repeat(63), "AB".repeat(64)] });
  await sign("VALIDATOR_VOTE", { acceptance: "ab".repeat(64) });
});

test("integers are whole, not negative and exact", async () => {
  const wrong = [-1, 0.5, NaN, Infinity, 2 ** 53, "1", 1n, true];
  await refused("AGENT_STEP", { stepIndex: wrong, outputTokens: wrong });
  await refused("AGENT_REQUEST", { maxSteps: [...wrong, 0, 201] });
  await refused("SOCIAL_BLOB_INIT", { totalBytes: [...wrong, 0] });
  await refused("VALIDATOR_VOTE", { power: [...wrong, 2 ** 48 + 1] });
  for (const value of wrong) {
    await assert.rejects(sign("TRANSFER", {}, { nonce: value }), { field: "nonce" });
    await assert.rejects(sign("TRANSFER", {}, { timestamp: value }), { field: "timestamp" });
  }
});

test("texts keep their limits in bytes and have no halves of surrogate pairs", async () => {
  const halves = ["\ud800", "a\udfffb", "\udc00\ud800", 5];
  const euro = "€";
  await refused("CHAT_TURN", { content: [...halves, euro.repeat(5462)], role: ["miner", "User"] });
  await refused("AGENT_REQUEST", {
    prompt: [...halves, "", euro.repeat(5462)],
    modelHint: [...halves, euro.repeat(86)],
  });
  await refused("AGENT_FINISH", {
    finalAnswerInline: [...halves, euro.repeat(5462)],
    status: ["done"],
  });
  await refused("MINER_REGISTER", { name: [...halves, euro.repeat(86)], modelInfo: halves });
  await sign("CHAT_TURN", { content: `${euro.repeat(5461)}.` });
  await sign("CHAT_TURN", { content: "", contentBlobId: "b" });
  await refused("CHAT_TURN", { content: [""] });
});

test("hashes, addresses and blob ids are in their written form", async () => {
  const hashes = ["ab", HASH.toUpperCase(), `0x${HASH}`, 5];
  await refused("CHAT_TURN", {
    conversationId: hashes,
    parentTurnHash: hashes,
    agentRunId: hashes,
  });
  await refused("TRANSFER", { to: ["", OTHER.toUpperCase(), `0x${OTHER}`, `ox${OTHER}0`, HASH] });
  await refused("SOCIAL_BLOB_FINALIZE", { blobId: ["", "a b", "ț", "a".repeat(129), 5] });
  assert.equal((await sign("TRANSFER", { to: `ox${OTHER}` })).to, `ox${OTHER}`);
});

test("lists keep their limits, and what is in them is checked", async () => {
  const names = (count) => Array.from({ length: count }, (_, at) => `${at}`);
  await refused("AGENT_REQUEST", { toolsWhitelist: ["now", ["a", "b", "a"], names(65)] });
  await refused("AGENT_REQUEST", { "toolsWhitelist[1]": [["a", "€".repeat(65)], ["a", 5]] });
  await sign("MINER_REGISTER", { capabilities: names(64) });
  await refused("AGENT_STEP", { toolCalls: [Array(65).fill(CALL)] });
  await refused("AGENT_STEP", { "toolCalls[1].ok": [[CALL, { ...CALL, ok: 1 }]] });
  await refused("AGENT_STEP", { "toolCalls[0].cost": [[{ ...CALL, cost: "1" }]] });
  await refused("CHAT_TURN", { "attachments[0].type": [[{ type: "video", blobId: "b" }]] });
  await refused("CHAT_TURN", { "attachments[0]": [[null], ["b"]] });
});

test("members of nested objects are written in the order of the protocol", async () => {
  const reversed = Object.fromEntries(Object.entries(CALL).reverse());
  const [one, other] = [
    await sign("AGENT_STEP", {}),
    await sign("AGENT_STEP", { toolCalls: [reversed] }),
  ];
  assert.equal(other.hash, one.hash);
});

test("rules that look at several fields are kept", async () => {
  await refused("AGENT_CLAIM", { minerAddress: [OTHER] });
  await sign("AGENT_CLAIM", { minerAddress: `ox${key.address}` });
  await refused("SOCIAL_BLOB_INIT", { totalChunks: [2] });
  await refused("VALIDATOR_VOTE", { expiresAt: [NOW, NOW + 2592000001] });
  await sign("VALIDATOR_VOTE", { expiresAt: NOW + 2592000000 });
});

test("base64 is the standard one with padding", async () => {
  const wrong = ["aGVsbG8", "aGVsbG8=\n", "aGVsbG9=", "-_-_", "=", "a===", 5];
  await refused("SOCIAL_BLOB_CHUNK", { chunkDataBase64: wrong });
});

test("an envelope names the key's own account and nothing unknown", async () => {
  await assert.rejects(sign("TRANSFER", {}, { from: OTHER }), { field: "from" });
  await assert.rejects(sign("TRANSFER", {}, { none: 1 }), { field: "none" });
  await assert.rejects(sign("TRANSFER", {}, { chainId: 5 }), { field: "chainId" });
  await assert.rejects(ombra.buildTransaction("BURN", {}, ENVELOPE), { field: "type" });
  const tx = await sign("TRANSFER", {}, { from: `ox${key.address}`, chainId: "ombra-dev" });
  const order = [
    "type",
    "from",
    "to",
    "amount",
    "fee",
    "nonce",
    "timestamp",
    "chainId",
    "publicKey",
    "hash",
    "signature",
  ];
  assert.deepEqual(Object.keys(tx), order);
  assert.equal(tx.from, `ox${key.address}`);
});

test("a wallet that signs by itself gets the text and attaches the signature", async () => {
  const { type, fields, envelope } = takeApart(VECTORS.sdk_generated.TRANSFER);
  const whole = { ...envelope, publicKey: key.publicKey };
  const unsigned = await ombra.buildTransaction(type, fields, whole);
  assert.equal(unsigned.payload, JSON.stringify(unsigned.tx));
  assert.equal(unsigned.hash, await ombra.computeContentHash(unsigned.payload));
  const { signature } = VECTORS.sdk_generated.TRANSFER;
  const signed = ombra.attachSignature(unsigned, signature);
  assert.equal(JSON.stringify(signed), JSON.stringify(VECTORS.sdk_generated.TRANSFER));
  for (const wrong of [signature.toUpperCase(), "", undefined]) {
    assert.throws(() => ombra.attachSignature(unsigned, wrong), { field: "signature" });
  }
});

test("what can be computed is filled in", async () => {
  const { fields: turn } = takeApart(VECTORS.inferred_v6.AGENT_REQUEST);
  const { agentRunId, conversationId, toolsWhitelist, ...asked } = turn;
  const request = await ombra.agentRequest(key, { ...asked, seed: "demo" }, {
    nonce: 7,
    timestamp: NOW,
  });
  assert.deepEqual(
    [request.agentRunId, request.conversationId, request.toolsWhitelist],
    [agentRunId, VECTORS.inferred_conversationId.id, []],
  );
  const claim = { agentRunId: HASH, modelInfo: "model", hardwareTier: "laptop" };
  assert.equal((await ombra.agentClaim(key, claim, ENVELOPE)).minerAddress, key.address);
  assert.equal(
    (await ombra.transfer(key, { to: OTHER, amount: 1n, fee: undefined }, ENVELOPE)).fee,
    "0",
  );
  const miner = { name: "miner", modelInfo: "model" };
  assert.deepEqual((await ombra.minerRegister(key, miner, ENVELOPE)).capabilities, []);
  const vote = { candidateKey: key.publicKey, power: 0 };
  assert.equal((await ombra.validatorVote(key, vote, ENVELOPE)).expiresAt, NOW + 7 * 86400000);
  const before = Date.now();
  assert.ok((await ombra.agentCancel(key, { agentRunId: HASH }, { nonce: 0 })).timestamp >= before);
});

test("any transaction may say what it offers for its place, before the chain's id", async () => {
  const bid = { maxBaseFee: "50", tip: 7n };
  for (const [type, fields] of Object.entries(RIGHT)) {
    const { tip, ...rest } = type === "TRANSFER" ? { ...bid, tip: undefined } : bid;
    const envelope = { ...ENVELOPE, ...rest, tip, chainId: "c" };
    const names = Object.keys(await ombra.signTransaction(key, type, fields, envelope));
    const written = names.slice(names.indexOf("maxBaseFee"), names.indexOf("publicKey"));
    assert.deepEqual(written, ["maxBaseFee", ...(tip === undefined ? [] : ["tip"]), "chainId"], type);
  }
  const [pay, turn] = ["TRANSFER", "CHAT_TURN"];
  const sign = (type, more) => ombra.signTransaction(key, type, RIGHT[type], { ...ENVELOPE, ...more });
  await assert.rejects(sign(pay, { tip: "7" }), { field: "tip" });
  await assert.rejects(sign(turn, { tip: 7 }), { field: "tip" });
  await assert.rejects(sign(turn, { maxBaseFee: "-1" }), { field: "maxBaseFee" });
});

test("a settlement is divided as the protocol says", () => {
  const settle = (maxFee, stepCount, totalTokensOut) =>
    Object.values(ombra.computeSettlement({ maxFee, stepCount, totalTokensOut }));
  assert.deepEqual(settle("1000000", 8, 5000), [5000, "5000", "994200", "800"]);
  assert.deepEqual(settle(1000n, 5, 5000), [5000, "500", "0", "500"]);
  assert.deepEqual(settle(500n, 5, 0), [0, "0", "0", "500"]);
  assert.throws(() => settle("500", 6, 0), { field: "stepCount" });
  assert.throws(() => settle(500, 1, 0), { field: "maxFee" });
});

test("bytes become the transactions of a blob", async () => {
  const bytes = Uint8Array.from({ length: 900000 }, (_, at) => at % 251);
  const txs = await ombra.blobTransactions(key, { blobId: "b", contentType: "text/plain", bytes }, {
    nonce: 3,
  });
  const kinds = ["SOCIAL_BLOB_INIT", ...Array(3).fill("SOCIAL_BLOB_CHUNK"), "SOCIAL_BLOB_FINALIZE"];
  assert.deepEqual(txs.map(({ type }) => type), kinds);
  assert.deepEqual(txs.map(({ nonce }) => nonce), [3, 4, 5, 6, 7]);
  const { totalBytes, totalChunks, contentHash } = txs[0];
  assert.deepEqual([totalBytes, totalChunks], [900000, 3]);
  assert.equal(contentHash, await ombra.computeContentHash(bytes));
  const chunks = txs.slice(1, 4).map((tx) => Buffer.from(tx.chunkDataBase64, "base64"));
  assert.deepEqual(chunks.map(({ length }) => length), [400000, 400000, 100000]);
  assert.ok(Buffer.concat(chunks).equals(bytes));
  const none = { blobId: "b", contentType: "text/plain", bytes: new Uint8Array() };
  await assert.rejects(ombra.blobTransactions(key, none, { nonce: 0 }), { field: "totalBytes" });
  await assert.rejects(ombra.blobTransactions(key, { ...none, bytes: "text" }, { nonce: 0 }), {
    field: "bytes",
  });
});
