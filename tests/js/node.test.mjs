// The library and a node: the node writes and hashes every kind the same way, and includes those whose fork holds on its chain.

import assert from "node:assert/strict";
import { before, test } from "node:test";

import * as ombra from "../../examples/js/ombra.js";
import { DECLARATIONS } from "../../examples/js/kinds.js";
import { account, client, flushPool, nowhere, URL_OF_NODE, validator } from "./support/chain.mjs";
import { numbers, text } from "./support/words.mjs";

/** The declarations of the kinds by type. */
const KINDS = Object.fromEntries(DECLARATIONS.kinds.map((kind) => [kind.type, kind]));
const HASH = "ab".repeat(32);
const NASTY = `"quotes" \\ / \u0000\u001f\u007f\u2028\u2029 țară 😀`;

const node = client();
let alice;
let bob;
const alike = new Set();

before(async () => {
  [alice, bob] = [await account(0), await account(1)];
});

const code = (word) => ({ name: "OmbraError", code: word });

/** What the node itself writes and hashes for a signed transaction. */
function nodeBuilds({ hash, signature, type, ...members }) {
  const { name, required } = KINDS[type];
  // The node's builders do not take what they compute.
  const computed = required.filter(({ filled }) => filled === "computed").map((field) => field.name);
  const given = Object.entries(members).filter(([member]) => !computed.includes(member));
  return node.rpc(`ombra_build${name}`, Object.fromEntries(given));
}

/** Has the node build the same transaction. */
async function isBuiltAlike(tx) {
  const { hash, signature, ...unsigned } = tx;
  const built = await nodeBuilds(tx);
  assert.equal(built.payload, JSON.stringify(unsigned));
  assert.equal(built.hash, hash);
}

/** Has a signed transaction included, after the node has built the same. */
async function include(tx) {
  const { hash } = tx;
  await isBuiltAlike(tx);
  assert.equal(await node.send(tx), hash);
  const { tx: stored } = await node.waitFor(hash);
  assert.equal(JSON.stringify(stored), JSON.stringify(tx));
  alike.add(tx.type);
  return hash;
}

/** Signs a transaction with the account's next nonce and has it included. */
async function does(key, build, fields) {
  const envelope = { nonce: await node.nextNonce(key.address), chainId: await node.chainId() };
  const tx = await build(key, fields, envelope);
  await include(tx);
  return tx;
}

const balance = async (key) => BigInt((await node.rpc("ombra_getAccount", [key.address])).balance);

async function upload(blobId, bytes) {
  const envelope = { nonce: await node.nextNonce(alice.address), chainId: await node.chainId() };
  const blob = { blobId, contentType: "text/plain", bytes };
  for (const tx of await ombra.blobTransactions(alice, blob, envelope)) await include(tx);
}

test("money is sent, in either written form of an address and with hard texts", async () => {
  const [before, amount] = [await balance(bob), 1500000n];
  await does(alice, ombra.transfer, { to: bob.address, amount });
  await does(alice, ombra.transfer, { to: `ox${bob.address}`, amount: "1", fee: 7n });
  assert.equal(await balance(bob), before + amount + 1n);
});

test("a miner is registered", async () => {
  await does(bob, ombra.minerRegister, {
    name: NASTY,
    capabilities: ["chat", "ț"],
    modelInfo: "model",
  });
  assert.equal((await node.rpc("ombra_getMiner", [bob.address])).name, NASTY);
});

test("bytes become a final blob, and turns refer to it", async () => {
  const bytes = Uint8Array.from({ length: 400001 }, (_, at) => (at * 7) % 251);
  await upload("picture", bytes);
  const { final, received, contentHash } = await node.rpc("ombra_getBlob", ["picture"]);
  const expected = [true, 2, await ombra.computeContentHash(bytes)];
  assert.deepEqual([final, received, contentHash], expected);

  const conversationId = await ombra.computeConversationId(alice.address, NASTY);
  const attachments = [{ blobId: "picture", type: "image" }];
  const turn = { conversationId, role: "user", content: NASTY, attachments };
  const { hash } = await does(alice, ombra.chatTurn, turn);
  const answer = { conversationId, role: "assistant", content: "", contentBlobId: "picture" };
  await does(bob, ombra.chatTurn, { ...answer, parentTurnHash: hash });
  const turns = [];
  for await (
    const { content } of node.items("ombra_getConversation", [conversationId], { limit: 1 })
  ) {
    turns.push(content);
  }
  assert.deepEqual(turns, [NASTY, ""]);
});

test("a run goes from request to settlement", async () => {
  await upload("long-prompt", new TextEncoder().encode("a long prompt"));
  // The cut at 256 code units falls into a pair.
  const prompt = `${"a".repeat(255)}😀 ${NASTY}`;
  const asked = { prompt, maxFee: 100000n, maxSteps: 8, toolsWhitelist: ["now"], seed: "demo" };
  const { agentRunId } = await does(alice, ombra.agentRequest, {
    ...asked,
    promptBlobId: "long-prompt",
    modelHint: "model",
  });
  await does(bob, ombra.agentClaim, { agentRunId, modelInfo: "model", hardwareTier: "desktop" });
  const toolCalls = [{ name: "now", argsHash: HASH, resultHash: HASH, durationMs: 87, ok: true }];
  const step = { agentRunId, outputHash: await ombra.computeContentHash(NASTY) };
  await does(bob, ombra.agentStep, { ...step, stepIndex: 0, outputTokens: 500, toolCalls });
  await does(bob, ombra.agentStep, {
    ...step,
    stepIndex: 2,
    outputTokens: 7,
    thoughtBlobId: "picture",
    outputBlobId: "picture",
  });

  const amounts = await node.settlement(agentRunId);
  const ours = ombra.computeSettlement({ maxFee: 100000n, stepCount: 2, totalTokensOut: 507 });
  assert.deepEqual(amounts, ours);
  const finish = { agentRunId, status: "completed", finalAnswerInline: NASTY, ...amounts };
  await does(bob, ombra.agentFinish, finish);
  const run = await node.rpc("ombra_getAgentRun", [agentRunId]);
  assert.deepEqual([run.status, run.prompt, run.finalAnswerInline], ["completed", prompt, NASTY]);

  const remark = {
    conversationId: run.conversationId,
    role: "tool",
    content: "thanks",
    agentRunId,
  };
  const { hash } = await does(alice, ombra.chatTurn, remark);
  assert.equal((await node.rpc("ombra_getChatTurn", [hash])).relation, "submitter");
});

test("a run that nobody has claimed is taken back", async () => {
  const asked = { prompt: "never mind", maxFee: "100", maxSteps: 1 };
  const { agentRunId } = await does(alice, ombra.agentRequest, asked);
  await does(alice, ombra.agentCancel, { agentRunId });
  assert.equal((await node.rpc("ombra_getAgentRun", [agentRunId])).status, "cancelled");
});

test("a validator votes", async () => {
  const key = await validator();
  await does(key, ombra.validatorVote, { candidateKey: key.publicKey, power: 20 });
});

test("kinds of later forks are built as the node builds them, and refused until then", async () => {
  const [key, chainId] = [await validator(), await node.chainId()];
  const evidence = {
    validatorKey: key.publicKey, height: 1, round: 0, kind: "prevote",
    firstValue: HASH, firstSignature: "00".repeat(64), secondValue: "nil", secondSignature: "00".repeat(64),
  };
  const abi = [{ type: "function", name: "judge", inputs: [], outputs: [] }];
  const about = { name: "țară 😀", description: "d", container_image: "ipfs://x", version: "1.0.0", abi };
  const prices = { perCall: 1000n, promptPerM: "20000", completionPerM: "60000", fuelPerG: "0" };
  const call = {
    agentId: HASH, agentVersion: "1.0.0", payload: "0x01020304",
    consensus: "threshold", threshold: 2, committeeSize: 3,
    // With a threshold nobody can prove what was used, so only the call has a price.
    prices: { ...prices, promptPerM: "0", completionPerM: "0" },
    limits: { inputTokens: 1, outputTokens: 1, fuel: 0, resultBytes: 1 }, maxFee: "10000", timeoutMs: 10000,
  };
  const answer = {
    outcome: "success", result: "0x", inputTokens: 1, outputTokens: 1, fuel: 0, receiptHash: HASH, reason: NASTY,
  };
  const member = { callId: HASH, round: 0 };
  const bid = { maxBaseFee: "5000" };
  for (const [build, fields, offered] of [
    [ombra.evidence, evidence],
    [ombra.forkVote, { fork: "v8", height: 200000 }, bid],
    [ombra.paramVote, { name: "registerFee", value: 9000, height: 900000 }, bid],
    [ombra.minerBond, { amount: "5" }, bid],
    [ombra.minerUnbond, { amount: "5" }, bid],
    [ombra.agentRefuse, { agentRunId: HASH }, bid],
    [ombra.minerOffer, { executor: `model-1:${HASH}`, capacity: 4, ...prices }],
    [ombra.agentRegister, { metadata: JSON.stringify(about) }],
    [ombra.agentRetire, { agentId: HASH }],
    [ombra.agentCall, call],
    [ombra.callCommit, { ...member, commitment: HASH }],
    [ombra.callReveal, { ...member, salt: HASH, ...answer }],
    [ombra.callAppeal, { callId: HASH }],
  ]) {
    const tx = await build(key, fields, { nonce: await node.nextNonce(key.address), chainId, ...offered });
    await isBuiltAlike(tx);
    await assert.rejects(node.send(tx), code("FORK_NOT_ACTIVE"), tx.type);
    alike.add(tx.type);
  }
});

test("what is offered for a place stands where the node writes it", async () => {
  const envelope = { nonce: 0, chainId: await node.chainId(), maxBaseFee: 5000n, tip: "7" };
  await isBuiltAlike(await ombra.agentCancel(alice, { agentRunId: HASH }, envelope));
});

test("every kind that the library builds has been built by the node, too", () => {
  assert.deepEqual([...alike].sort(), Object.keys(KINDS).sort());
});

test("random texts are hashed as the node hashes them", async () => {
  const seed = Number(process.env.OMBRA_SEED ?? Date.now() % 2 ** 31);
  const next = numbers(seed);
  const nonce = await node.nextNonce(alice.address);
  const chainId = await node.chainId();
  for (let round = 0; round < 150; round += 1) {
    // A name on a list has at most 64 bytes, a hint 256.
    const [long, hint, name] = [text(next, 300), text(next, 8), text(next, 2)];
    const told = `OMBRA_SEED=${seed} round ${round}: ${JSON.stringify([long, hint, name])}`;
    const turn = { conversationId: HASH, role: "user", content: long };
    const request = {
      prompt: long,
      maxFee: "100",
      maxSteps: 1,
      toolsWhitelist: [name],
      modelHint: hint,
      seed: hint,
    };
    for (const [build, fields] of [[ombra.chatTurn, turn], [ombra.agentRequest, request]]) {
      const tx = await build(alice, fields, { nonce, chainId });
      const { hash, signature, ...unsigned } = tx;
      const built = await nodeBuilds(tx);
      assert.deepEqual([built.hash, built.payload], [hash, JSON.stringify(unsigned)], told);
      const { valid, error } = await node.rpc("ombra_simulateTransaction", [tx]);
      assert.ok(valid, `${told} ${JSON.stringify(error)}`);
    }
    const creation = [bob.address, hint];
    const { conversationId, now } = await node.rpc("ombra_computeConversationId", creation);
    assert.equal(await ombra.computeConversationId(...creation, now), conversationId, told);
    const contentHash = await node.rpc("ombra_computeContentHash", [long]);
    assert.equal(await ombra.computeContentHash(long), contentHash, told);
  }
});

test("the node hashes a half of a surrogate pair, which is refused here, in no way", async () => {
  const turn = { conversationId: HASH, role: "user", content: "\ud83d" };
  await assert.rejects(ombra.chatTurn(alice, turn, { nonce: 0 }), { field: "content" });
  const asked = { from: alice.address, publicKey: alice.publicKey, ...turn };
  await assert.rejects(node.rpc("ombra_buildChatTurn", asked), ({ number }) => number < 0);
});

test("a changed transaction is refused with the protocol's code", async () => {
  const envelope = { nonce: await node.nextNonce(alice.address) };
  const tx = await ombra.transfer(alice, { to: bob.address, amount: 1n }, envelope);
  const forged = [
    [{ ...tx, amount: "2" }, "HASH_MISMATCH"],
    [{ ...tx, signature: tx.signature.replace(/^../, (byte) => (byte === "00" ? "01" : "00")) }, "BAD_SIGNATURE"],
    [{ ...tx, nonce: -1 }, "MALFORMED"],
  ];
  for (const [wrong, word] of forged) await assert.rejects(node.send(wrong), code(word));
  const stale = await ombra.transfer(alice, { to: bob.address, amount: 1n }, { nonce: 0 });
  const refusal = await node.send(stale).catch((error) => error);
  assert.deepEqual([refusal.code, refusal.number, refusal.hash], [
    "NONCE_STALE",
    -32050,
    stale.hash,
  ]);
  assert.deepEqual([refusal.data.field, refusal.data.got], ["nonce", "0"]);
  const elsewhere = { ...envelope, chainId: "elsewhere" };
  const foreign = await ombra.transfer(alice, { to: bob.address, amount: 1n }, elsewhere);
  await assert.rejects(node.send(foreign), code("CHAIN_ID_MISMATCH"));
});

test("errors have a code, whoever they come from", async () => {
  await assert.rejects(node.rpc("ombra_nothing"), code("-32601"));
  await assert.rejects(node.rpc("ombra_getAccount", ["nobody"]), code("INVALID_PARAMS"));
  await assert.rejects(node.rpc("ombra_getTransaction", [HASH]), code("NOT_FOUND"));
  const away = client(`http://${await nowhere()}`);
  await assert.rejects(away.rpc("ombra_chainInfo"), code("UNREACHABLE"));
  const page = client(new URL("/explorer/nothing", URL_OF_NODE));
  await assert.rejects(page.rpc("ombra_chainInfo"), ({ code: word }) => /^HTTP_4/.test(word));
  const tx = await ombra.transfer(alice, { to: bob.address, amount: 1n }, { nonce: 0 });
  const sent = away.send(tx, { retryForMs: 300 });
  await assert.rejects(sent, { code: "UNREACHABLE", hash: tx.hash });
});

test("who waits is told that a transaction still waits, and why one was dropped", async () => {
  const nonce = (await node.nextNonce(bob.address)) + 2;
  const tx = await ombra.transfer(bob, { to: alice.address, amount: 1n }, { nonce });
  await node.send(tx);
  assert.equal(await node.send(tx), tx.hash);
  await assert.rejects(node.waitFor(tx.hash, { timeoutMs: 50 }), code("TIMEOUT"));
  const waiting = assert.rejects(node.waitFor(tx.hash), ({ code: word, data }) => {
    assert.deepEqual([data.status, data.dropped.code], ["dropped", word]);
    return true;
  });
  await flushPool();
  await waiting;
});

test("transactions that are submitted at once get a nonce each", async () => {
  const key = await account(2);
  const fields = { to: alice.address, amount: "1" };
  const txs = await Promise.all(
    Array.from({ length: 12 }, () => node.submit(key, "TRANSFER", fields)),
  );
  assert.deepEqual(txs.map(({ nonce }) => nonce), [...Array(12).keys()]);
  await assert.rejects(
    node.submit(key, "TRANSFER", { ...fields, amount: 2n ** 64n - 1n }),
    code("INSUFFICIENT_BALANCE"),
  );
  txs.push(await node.submit(key, "TRANSFER", fields));
  await node.waitFor(txs.at(-1).hash);

  const listed = [];
  const list = node.items("ombra_getAccountTransactions", [key.address], { limit: 5 });
  for await (const { hash } of list) listed.unshift(hash);
  assert.deepEqual(listed, txs.map(({ hash }) => hash));
});
