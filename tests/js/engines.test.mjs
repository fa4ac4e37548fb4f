// The library's own hashing and signing against the engine's, and what it does in an engine that
// lacks a part of Web Crypto.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { test } from "node:test";

import { ownSigner, signerOf } from "../../examples/js/ed25519.js";
import { ownHmacSha512, ownPbkdf2Sha512, ownSha256, ownSha512 } from "../../examples/js/hash.js";
import { hex, VECTORS } from "./support/repository.mjs";

test("the library's own hashes are the engine's, at every length around a block", () => {
  for (let length = 0; length < 300; length += 1) {
    const [bytes, key] = [randomBytes(length), randomBytes((length * 7) % 300)];
    const right = (name) => createHash(name).update(bytes).digest("hex");
    assert.equal(hex(ownSha256(bytes)), right("sha256"), hex(bytes));
    assert.equal(hex(ownSha512(bytes)), right("sha512"), hex(bytes));
    const mac = createHmac("sha512", key).update(bytes).digest("hex");
    assert.equal(hex(ownHmacSha512(key, bytes)), mac, `${hex(key)} ${hex(bytes)}`);
  }
  const [password, salt] = [randomBytes(200), randomBytes(20)];
  const right = pbkdf2Sync(password, salt, 100, 64, "sha512").toString("hex");
  assert.equal(hex(ownPbkdf2Sha512(password, salt, 100)), right);
});

test("the library's own signatures are the engine's", async () => {
  for (let length = 0; length < 64; length += 1) {
    const [seed, message] = [randomBytes(32), randomBytes(3 * length)];
    const [own, engines] = [await ownSigner(seed), await signerOf(seed)];
    assert.equal(hex(own.publicKey), hex(engines.publicKey), hex(seed));
    assert.equal(hex(await own.sign(message)), hex(await engines.sign(message)), hex(seed));
  }
});

const LACKING = {
  "a page over plain HTTP, without crypto.subtle": "{ getRandomValues }",
  "an engine without Ed25519": `{
    getRandomValues,
    subtle: new Proxy(subtle, {
      get: (_, name) => (...args) => {
        if (name === "importKey" && args[2].name === "Ed25519") {
          return Promise.reject(new DOMException("Ed25519", "NotSupportedError"));
        }
        return subtle[name](...args);
      },
    }),
  }`,
};

for (const [engine, lacking] of Object.entries(LACKING)) {
  test(`${engine}, signs the golden transfer`, () => {
    const { hash, signature, publicKey, type, ...tx } = VECTORS.sdk_generated.TRANSFER;
    const { from, nonce, timestamp, ...fields } = tx;
    const program = `
      const { webcrypto } = await import("node:crypto");
      const { subtle } = webcrypto;
      const getRandomValues = (bytes) => webcrypto.getRandomValues(bytes);
      Object.defineProperty(globalThis, "crypto", { value: ${lacking} });
      const { Key, generateMnemonic, transfer } = await import(process.argv[1]);
      const key = await Key.fromMnemonic(${JSON.stringify(VECTORS.wallet.mnemonic)});
      await generateMnemonic(24);
      const envelope = ${JSON.stringify({ nonce, timestamp })};
      const tx = await transfer(key, ${JSON.stringify(fields)}, envelope);
      process.stdout.write(JSON.stringify(tx));`;
    const library = new URL("../../examples/js/ombra.js", import.meta.url).href;
    const run = ["--input-type=module", "--eval", program, library];
    const printed = execFileSync(process.execPath, run, { encoding: "utf8" });
    assert.equal(printed, JSON.stringify(VECTORS.sdk_generated.TRANSFER));
  });
}
