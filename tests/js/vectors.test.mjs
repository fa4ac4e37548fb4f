// The published vectors, and the repository's own: what this library derives and signs is right.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { ownSigner, signerOf } from "../../examples/js/ed25519.js";
import { derive, mnemonicOf } from "../../examples/js/mnemonic.js";
import {
  computeAgentRunId,
  computeConversationId,
  generateMnemonic,
  Key,
  parseMnemonic,
  signTransaction,
} from "../../examples/js/ombra.js";
import { WORDS } from "../../examples/js/wordlist.js";
import { bytes, CLIENTS, hex, takeApart, VECTORS } from "./support/repository.mjs";

const { wallet } = VECTORS;
const DEVELOPMENT = `${"test ".repeat(11)}junk`;
const HARDENED = 2 ** 31;
const golden = () => Key.fromMnemonic(wallet.mnemonic);

test("the golden mnemonic gives the golden keys", async () => {
  const key = await golden();
  assert.equal(key.exportPrivateKey(), wallet.index0.privateKey);
  assert.equal(key.publicKey, wallet.index0.publicKey);
  assert.equal(key.address, wallet.index0.address);
  assert.equal(
    (await Key.fromMnemonic(wallet.mnemonic, { index: 1 })).address,
    wallet.index1.address,
  );
  assert.equal((await Key.fromMnemonic(DEVELOPMENT)).address, wallet.devMnemonicIndex0Address);
  assert.equal((await Key.fromPrivateKey(wallet.index0.privateKey)).address, wallet.index0.address);
});

test("every golden transaction comes out byte for byte", async () => {
  const key = await golden();
  const { TRANSFER, MINER_REGISTER } = VECTORS.sdk_generated;
  for (const tx of [TRANSFER, MINER_REGISTER, ...Object.values(VECTORS.inferred_v6)]) {
    const { type, fields, envelope } = takeApart(tx);
    const signed = await signTransaction(key, type, fields, envelope);
    assert.equal(JSON.stringify(signed), JSON.stringify(tx));
  }
});

test("texts of every kind are signed as other clients sign them", async () => {
  const key = await golden();
  const others = ["the wallet's own order", "unknown keys", "Python's numbers"];
  const clients = CLIENTS.filter(({ name }) => !others.includes(name));
  assert.equal(clients.length, CLIENTS.length - others.length);
  for (const { name, payload, hash, signature } of clients) {
    const { type, fields, envelope } = takeApart(JSON.parse(payload));
    const signed = await signTransaction(key, type, fields, envelope);
    assert.deepEqual([signed.hash, signed.signature], [hash, signature], name);
  }
});

test("ids are those of other clients", async () => {
  const run = VECTORS.inferred_agentRunId;
  assert.equal(await computeAgentRunId(run.from, run.nonce, run.prompt), run.id);
  const talk = VECTORS.inferred_conversationId;
  assert.equal(await computeConversationId(talk.creator, talk.seed, talk.now), talk.id);
  const requests = CLIENTS.filter(({ agentRunId }) => agentRunId);
  assert.equal(requests.length, 6);
  for (const { name, payload, prompt, agentRunId } of requests) {
    const { from, nonce } = JSON.parse(payload);
    assert.equal(await computeAgentRunId(from, nonce, prompt), agentRunId, name);
  }
});

// RFC 8032 section 7.1, tests 1 to 3: seed, public key, message, signature.
const RFC8032 = [
  [
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "",
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
  ],
  [
    "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    "72",
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
  ],
  [
    "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
    "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    "af82",
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
  ],
];

test("Ed25519 signs as RFC 8032 says, by the engine and by the library's own code", async () => {
  for (const make of [signerOf, ownSigner]) {
    for (const [seed, publicKey, message, signature] of RFC8032) {
      const signer = await make(bytes(seed));
      assert.equal(hex(signer.publicKey), publicKey);
      assert.equal(hex(await signer.sign(bytes(message))), signature);
    }
  }
});

test("BIP-32 derives the keys of its test vectors 1 and 3", async () => {
  const first = bytes("000102030405060708090a0b0c0d0e0f");
  const path = [HARDENED, 1, HARDENED + 2, 2, 1000000000];
  const keys = [
    "e8f32e723decf4051aefac8e2c93c9c5b214313817cdb01a1494b917c8436b35",
    "edb2e14f9ee77d26dd93b4ecede8d16ed408ce149b6cd80b0715a2d911a0afea",
    "3c6cb8d0f6a264c91ea8b5030fadaa8e538b020f0a387421a12de9319dc93368",
    "cbce0d719ecf7431d88e6a89fa1483e02e35092af60c042b1df2ff59fa424dca",
    "0f479245fb19a38a1954c5c7c0ebab2f9bdfd96a17563ef28a6a4b1a2a764ef4",
    "471b76e389e528d6de6d816857e012c5455051cad6660850e58372a6c3e6e7c8",
  ];
  for (const [depth, key] of keys.entries()) {
    assert.equal(hex(await derive(first, path.slice(0, depth))), key, `depth ${depth}`);
  }
  // Here the keys begin with zeros.
  const third = bytes(
    "4b381541583be4423346c643850da4b320e46a87ae3d2a4e6da11eba819cd4acba45d239319ac14f863b8d5ab5a0d0c64d2e8a1e7d1457df2e5a3c51c73235be",
  );
  const [master, child] = [await derive(third, []), await derive(third, [HARDENED])];
  assert.equal(hex(master), "00ddb80b067e0d4993197fe10f2657a844a384589847602d56f0c629c81aae32");
  assert.equal(hex(child), "491f7a2eebc7b57028e0d3faa0acda02e75c33b03c48fb288c41e2ea44e1daef");
});

test("the word list is the English one of BIP-39", () => {
  const digest = createHash("sha256").update(`${WORDS.join("\n")}\n`).digest("hex");
  assert.equal(digest, "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda");
});

test("BIP-39 makes the words of its test vectors", async () => {
  const vectors = [
    ["00".repeat(16), `${"abandon ".repeat(11)}about`],
    [
      "7f".repeat(16),
      "legal winner thank year wave sausage worth useful legal winner thank yellow",
    ],
    [
      "80".repeat(16),
      "letter advice cage absurd amount doctor acoustic avoid letter advice cage above",
    ],
    ["ff".repeat(16), `${"zoo ".repeat(11)}wrong`],
    ["00".repeat(32), `${"abandon ".repeat(23)}art`],
    ["ff".repeat(32), `${"zoo ".repeat(23)}vote`],
  ];
  for (const [entropy, words] of vectors) assert.equal(await mnemonicOf(bytes(entropy)), words);
});

test("a new mnemonic is valid and never the same", async () => {
  for (const count of [12, 24]) {
    const [one, other] = [await generateMnemonic(count), await generateMnemonic(count)];
    assert.equal(one.split(" ").length, count);
    assert.notEqual(one, other);
    assert.equal(await parseMnemonic(` ${one.toUpperCase().replaceAll(" ", "\n ")}\n`), one);
  }
});

test("words that are no mnemonic are refused without being shown", async () => {
  const refusals = [
    [
      "abandon ".repeat(12),
      "mnemonic: got a wrong checksum, expected words as they were written down",
    ],
    [
      `${"abandon ".repeat(11)}abuot`,
      "mnemonic: got an unknown word 12, expected words of the English list",
    ],
    ["abandon", "mnemonic: got 1 words, expected 12 or 24 words"],
    [`${"abandon ".repeat(17)}agent`, "mnemonic: got 18 words, expected 12 or 24 words"],
    [undefined, "mnemonic: got undefined, expected 12 or 24 words"],
  ];
  for (const [words, message] of refusals) {
    await assert.rejects(Key.fromMnemonic(words), { name: "FieldError", message });
  }
  const index = { name: "FieldError", field: "index" };
  for (const at of [-1, 0.5, HARDENED, "0"]) {
    await assert.rejects(Key.fromMnemonic(wallet.mnemonic, { index: at }), index);
  }
});

test("a key does not show its secret unless it is asked", async () => {
  const key = await golden();
  const { inspect } = await import("node:util");
  for (
    const shown of [JSON.stringify(key), String(key), inspect(key, { showHidden: true, depth: 9 })]
  ) {
    assert.ok(!shown.includes(wallet.index0.privateKey), shown);
  }
  const refused = {
    message: "privateKey: got something else, expected 64 lowercase hex characters",
  };
  for (const wrong of [wallet.index0.privateKey.toUpperCase(), "00", undefined]) {
    await assert.rejects(Key.fromPrivateKey(wrong), refused);
  }
});

test("a generated key signs what its exported form signs", async () => {
  const key = await Key.generate();
  const same = await Key.fromPrivateKey(key.exportPrivateKey());
  assert.equal(same.address, key.address);
  assert.equal(await same.sign("hello"), await key.sign("hello"));
  assert.notEqual((await Key.generate()).address, key.address);
});
