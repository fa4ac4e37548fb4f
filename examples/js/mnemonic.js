// Words to keys: BIP-39 English, then BIP-32 over secp256k1 (docs/protocol.md section 2).

import { concat, FieldError, to32Bytes, toNumber, utf8, wrong } from "./bytes.js";
import { engine, hmacSha512, pbkdf2Sha512, sha256 } from "./hash.js";
import { WORDS } from "./wordlist.js";

const HARDENED = 2 ** 31;

/**
 * A new mnemonic from the engine's random numbers.
 * @param {12 | 24} [count] how many words
 * @returns {Promise<string>}
 */
export async function generateMnemonic(count = 12) {
  if (count !== 12 && count !== 24) throw wrong("count", count, "12 or 24 words");
  return mnemonicOf(engine.getRandomValues(new Uint8Array(count === 12 ? 16 : 32)));
}

/**
 * The words of random bytes: 11 bits a word, the last bits being a checksum.
 * @param {Uint8Array} entropy 16 or 32 bytes
 * @returns {Promise<string>}
 */
export async function mnemonicOf(entropy) {
  const sum = await sha256(entropy);
  const bits = toBits(concat(entropy, sum)).slice(0, entropy.length * 8 + entropy.length / 4);
  const words = [];
  for (let at = 0; at < bits.length; at += 11) {
    words.push(WORDS[parseInt(bits.slice(at, at + 11), 2)]);
  }
  return words.join(" ");
}

const toBits = (bytes) => Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("");

/**
 * A mnemonic in lower case with single spaces.
 * @param {string} text 12 or 24 words of the English list with a right checksum
 * @returns {Promise<string>}
 */
export async function parseMnemonic(text) {
  // The words are a secret, so messages tell a word's place and never the word.
  if (typeof text !== "string") throw new FieldError("mnemonic", typeof text, "12 or 24 words");
  const words = text.normalize("NFKD").toLowerCase().trim().split(/\s+/);
  if (words.length !== 12 && words.length !== 24) {
    throw new FieldError("mnemonic", `${words.length} words`, "12 or 24 words");
  }
  const numbers = words.map((word) => WORDS.indexOf(word));
  const unknown = numbers.indexOf(-1);
  if (unknown >= 0) {
    throw new FieldError("mnemonic", `an unknown word ${unknown + 1}`, "words of the English list");
  }
  const bits = numbers.map((number) => number.toString(2).padStart(11, "0")).join("");
  const entropy = new Uint8Array((words.length * 4) / 3);
  entropy.forEach((_, at) => {
    entropy[at] = parseInt(bits.slice(8 * at, 8 * at + 8), 2);
  });
  const right = await mnemonicOf(entropy);
  if (right !== words.join(" ")) {
    throw new FieldError("mnemonic", "a wrong checksum", "words as they were written down");
  }
  return right;
}

/**
 * The Ed25519 seed at `m/44'/7777'/0'/0/index`.
 * @param {string} mnemonic
 * @param {number} index 0 to 2^31 − 1
 * @returns {Promise<Uint8Array>} 32 bytes
 */
export async function seedAt(mnemonic, index) {
  if (!Number.isInteger(index) || index < 0 || index >= HARDENED) {
    throw wrong("index", index, "an integer from 0 to 2147483647");
  }
  const words = await parseMnemonic(mnemonic);
  const seed = await pbkdf2Sha512(utf8(words), utf8("mnemonic"), 2048);
  return derive(seed, [44 + HARDENED, 7777 + HARDENED, HARDENED, 0, index]);
}

/**
 * The private key of BIP-32 at the end of a path.
 * @param {Uint8Array} seed
 * @param {number[]} path child numbers; 2^31 and above are hardened
 * @returns {Promise<Uint8Array>} 32 bytes
 */
export async function derive(seed, path) {
  const master = await hmacSha512(utf8("Bitcoin seed"), seed);
  let key = toNumber(master.subarray(0, 32));
  let chain = master.subarray(32);
  checkKey(key);
  for (const number of path) {
    const parent = number >= HARDENED ? concat(Uint8Array.of(0), to32Bytes(key)) : publicKeyOf(key);
    const at = new Uint8Array(4);
    new DataView(at.buffer).setUint32(0, number);
    const child = await hmacSha512(chain, concat(parent, at));
    const shift = toNumber(child.subarray(0, 32));
    checkKey(shift);
    key = (key + shift) % ORDER;
    checkKey(key);
    chain = child.subarray(32);
  }
  return to32Bytes(key);
}

/** BIP-32 has no key where a number falls outside the group, which nobody has seen yet. */
function checkKey(key) {
  if (key === 0n || key >= ORDER) {
    throw new FieldError("index", "a path without a key", "another index");
  }
}

// ---- secp256k1 ----------------------------------------------------------------------------------

const P = 2n ** 256n - 2n ** 32n - 977n;
const ORDER = BigInt("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
const BASE = [
  BigInt("0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"),
  BigInt("0x483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8"),
];

const modulo = (number) => {
  const rest = number % P;
  return rest < 0n ? rest + P : rest;
};

/** By Euclid's algorithm. */
function inverse(number) {
  let [a, b, x, y] = [modulo(number), P, 1n, 0n];
  while (a > 1n) {
    const quotient = b / a;
    [a, b] = [b - quotient * a, a];
    [x, y] = [y - quotient * x, x];
  }
  return modulo(x);
}

/** `null` is the point at infinity. */
function add(left, right) {
  if (!left) return right;
  if (!right) return left;
  const [[x1, y1], [x2, y2]] = [left, right];
  if (x1 === x2 && y1 !== y2) return null;
  const slope = x1 === x2
    ? modulo(3n * x1 * x1 * inverse(2n * y1))
    : modulo((y2 - y1) * inverse(x2 - x1));
  const x = modulo(slope * slope - x1 - x2);
  return [x, modulo(slope * (x1 - x) - y1)];
}

/** The public key in its short form: whether y is odd, and x. */
function publicKeyOf(key) {
  let sum = null;
  let point = BASE;
  for (let bits = key; bits > 0n; bits >>= 1n) {
    if (bits & 1n) sum = add(sum, point);
    point = add(point, point);
  }
  const [x, y] = sum;
  return concat(Uint8Array.of(y & 1n ? 3 : 2), to32Bytes(x));
}
