// Keys: an Ed25519 key pair and its address (docs/protocol.md section 2).

import { fromHex, toHex, utf8, wrong } from "./bytes.js";
import { signerOf } from "./ed25519.js";
import { engine, sha256 } from "./hash.js";
import { seedAt } from "./mnemonic.js";

/** A key pair that signs transactions. */
export class Key {
  #seed;
  #signer;

  /** Use one of the functions that make a key. */
  constructor(seed, signer, address) {
    this.#seed = seed;
    this.#signer = signer;
    /** 64 lowercase hex characters. @type {string} */
    this.publicKey = toHex(signer.publicKey);
    /** 40 lowercase hex characters. @type {string} */
    this.address = address;
    Object.freeze(this);
  }

  /**
   * A new key from the engine's random numbers.
   * @returns {Promise<Key>}
   */
  static async generate() {
    return fromSeed(engine.getRandomValues(new Uint8Array(32)));
  }

  /**
   * @param {string} hex the seed, 64 lowercase hex characters
   * @returns {Promise<Key>}
   */
  static async fromPrivateKey(hex) {
    return fromSeed(fromHex("privateKey", hex, 32));
  }

  /**
   * The key of a mnemonic at `m/44'/7777'/0'/0/index`.
   * @param {string} words 12 or 24 words of the English list
   * @param {{index?: number}} [options]
   * @returns {Promise<Key>}
   */
  static async fromMnemonic(words, { index = 0 } = {}) {
    return fromSeed(await seedAt(words, index));
  }

  /**
   * The seed, 64 lowercase hex characters. This is the secret.
   * @returns {string}
   */
  exportPrivateKey() {
    return toHex(this.#seed);
  }

  /**
   * The signature of a message, 128 lowercase hex characters.
   * @param {string | Uint8Array} message a text is signed as UTF-8
   * @returns {Promise<string>}
   */
  async sign(message) {
    return toHex(await this.#signer.sign(typeof message === "string" ? utf8(message) : message));
  }
}

async function fromSeed(seed) {
  const signer = await signerOf(seed);
  return new Key(seed, signer, await addressOf(signer.publicKey));
}

/** The first 20 bytes of the SHA-256 of the public key. */
async function addressOf(publicKey) {
  return toHex((await sha256(publicKey)).subarray(0, 20));
}

/**
 * An address without the prefix `ox`, which both written forms of an account have in common.
 * @param {string} text 40 lowercase hex characters, or `ox` and these
 * @param {string} [field] what a message calls it
 * @returns {string}
 */
export function bareAddress(text, field = "address") {
  if (typeof text !== "string" || !/^(ox)?[0-9a-f]{40}$/.test(text)) {
    throw wrong(field, text, "40 lowercase hex characters, with or without ox before them");
  }
  return text.slice(-40);
}
