// SHA-256, SHA-512, HMAC, PBKDF2: by the engine where it offers them, otherwise by the code here.
//
// A page that came over plain HTTP from another machine has no `crypto.subtle`.

import { concat } from "./bytes.js";

/** The engine's cryptography. Node.js 18 has it in a module only. @type {Crypto} */
export const engine = globalThis.crypto ?? (await import("node:crypto")).webcrypto;

const BLOCK = { "SHA-256": 64, "SHA-512": 128 };

/**
 * @param {Uint8Array} bytes
 * @returns {Promise<Uint8Array>} 32 bytes
 */
export async function sha256(bytes) {
  return digest("SHA-256", bytes);
}

/**
 * @param {Uint8Array} bytes
 * @returns {Promise<Uint8Array>} 64 bytes
 */
export async function sha512(bytes) {
  return digest("SHA-512", bytes);
}

async function digest(name, bytes) {
  if (engine.subtle) return new Uint8Array(await engine.subtle.digest(name, bytes));
  return name === "SHA-256" ? ownSha256(bytes) : ownSha512(bytes);
}

/**
 * HMAC-SHA512.
 * @param {Uint8Array} key
 * @param {Uint8Array} bytes
 * @returns {Promise<Uint8Array>} 64 bytes
 */
export async function hmacSha512(key, bytes) {
  if (!engine.subtle) return ownHmacSha512(key, bytes);
  const algorithm = { name: "HMAC", hash: "SHA-512" };
  const imported = await engine.subtle.importKey("raw", key, algorithm, false, ["sign"]);
  return new Uint8Array(await engine.subtle.sign("HMAC", imported, bytes));
}

/**
 * PBKDF2-HMAC-SHA512 with 64 bytes of output.
 * @param {Uint8Array} password
 * @param {Uint8Array} salt
 * @param {number} iterations
 * @returns {Promise<Uint8Array>} 64 bytes
 */
export async function pbkdf2Sha512(password, salt, iterations) {
  if (!engine.subtle) return ownPbkdf2Sha512(password, salt, iterations);
  const key = await engine.subtle.importKey("raw", password, "PBKDF2", false, ["deriveBits"]);
  const algorithm = { name: "PBKDF2", hash: "SHA-512", salt, iterations };
  return new Uint8Array(await engine.subtle.deriveBits(algorithm, key, 512));
}

// ---- without the engine -------------------------------------------------------------------------

/** The first so many prime numbers. */
function primes(count) {
  const found = [];
  for (let n = 2; found.length < count; n += 1) {
    if (found.every((prime) => n % prime !== 0)) found.push(n);
  }
  return found;
}

/** The first 64 bits after the point of the root of a whole number; `power` is 2 or 3. */
function rootFraction(number, power) {
  const scaled = BigInt(number) << BigInt(64 * power);
  let low = 0n;
  let high = 1n << 70n;
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if (middle ** BigInt(power) <= scaled) low = middle;
    else high = middle;
  }
  return BigInt.asUintN(64, low);
}

// FIPS 180-4: the constants of both functions are the fractions of roots of the first primes.
const PRIMES = primes(80);
const K = PRIMES.map((prime) => rootFraction(prime, 3));
const H = PRIMES.slice(0, 8).map((prime) => rootFraction(prime, 2));
const highWords = (numbers) => Int32Array.from(numbers, (n) => Number(BigInt.asIntN(32, n >> 32n)));
const lowWords = (numbers) => Int32Array.from(numbers, (n) => Number(BigInt.asIntN(32, n)));
const K_HIGH = highWords(K);
const K_LOW = lowWords(K);
const H_HIGH = highWords(H);
const H_LOW = lowWords(H);

/** The message with its padding. `before` bytes have gone into the state already. */
function padded(bytes, block, before = 0) {
  const lengthBytes = block / 8;
  const blocks = Math.ceil((bytes.length + 1 + lengthBytes) / block);
  const whole = new Uint8Array(blocks * block);
  whole.set(bytes);
  whole[bytes.length] = 0x80;
  const bits = BigInt(bytes.length + before) * 8n;
  new DataView(whole.buffer).setBigUint64(whole.length - 8, bits);
  return whole;
}

const rotate = (word, bits) => (word >>> bits) | (word << (32 - bits));

/**
 * SHA-256 in JavaScript.
 * @param {Uint8Array} bytes
 * @returns {Uint8Array}
 */
export function ownSha256(bytes) {
  const state = Int32Array.from(H_HIGH);
  const whole = padded(bytes, BLOCK["SHA-256"]);
  const view = new DataView(whole.buffer);
  const w = new Int32Array(64);
  for (let start = 0; start < whole.length; start += 64) {
    for (let t = 0; t < 16; t += 1) w[t] = view.getInt32(start + 4 * t);
    for (let t = 16; t < 64; t += 1) {
      const [x, y] = [w[t - 15], w[t - 2]];
      const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
      const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
      w[t] = (w[t - 16] + s0 + w[t - 7] + s1) | 0;
    }
    mix256(state, w);
  }
  return bigEndian(state);
}

function mix256(state, w) {
  let [a, b, c, d, e, f, g, h] = state;
  for (let t = 0; t < 64; t += 1) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K_HIGH[t] + w[t]) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, at) => {
    state[at] += word;
  });
}

function bigEndian(words) {
  const bytes = new Uint8Array(4 * words.length);
  const view = new DataView(bytes.buffer);
  words.forEach((word, at) => view.setInt32(4 * at, word));
  return bytes;
}

/** The state of SHA-512: eight words of 64 bits as 16 halves, the high half first. */
function start512() {
  return Int32Array.from({ length: 16 }, (_, at) => (at % 2 ? H_LOW : H_HIGH)[at >> 1]);
}

/**
 * SHA-512 in JavaScript.
 * @param {Uint8Array} bytes
 * @returns {Uint8Array}
 */
export function ownSha512(bytes) {
  const state = start512();
  absorb512(state, padded(bytes, BLOCK["SHA-512"]));
  return bigEndian(state);
}

const W = new Int32Array(160);

/** Takes whole blocks into the state. */
function absorb512(state, whole) {
  const view = new DataView(whole.buffer, whole.byteOffset, whole.length);
  for (let start = 0; start < whole.length; start += 128) {
    for (let t = 0; t < 32; t += 1) W[t] = view.getInt32(start + 4 * t);
    for (let t = 32; t < 160; t += 2) expand512(t);
    mix512(state);
  }
}

/** How many times 2^32 fit into a sum of low halves. */
const carry = (sum) => Math.floor(sum / 4294967296);

/** The word of the schedule whose halves are at `t` and `t + 1`. */
function expand512(t) {
  const [xh, xl] = [W[t - 30], W[t - 29]];
  const [yh, yl] = [W[t - 4], W[t - 3]];
  const s0h = ((xh >>> 1) | (xl << 31)) ^ ((xh >>> 8) | (xl << 24)) ^ (xh >>> 7);
  const s0l = ((xl >>> 1) | (xh << 31)) ^ ((xl >>> 8) | (xh << 24)) ^ ((xl >>> 7) | (xh << 25));
  const s1h = ((yh >>> 19) | (yl << 13)) ^ ((yl >>> 29) | (yh << 3)) ^ (yh >>> 6);
  const s1l = ((yl >>> 19) | (yh << 13)) ^ ((yh >>> 29) | (yl << 3)) ^ ((yl >>> 6) | (yh << 26));
  const low = (W[t - 31] >>> 0) + (s0l >>> 0) + (W[t - 13] >>> 0) + (s1l >>> 0);
  W[t] = W[t - 32] + s0h + W[t - 14] + s1h + carry(low);
  W[t + 1] = low;
}

/** The 80 rounds. */
function mix512(state) {
  let [ah, al, bh, bl, ch, cl, dh, dl, eh, el, fh, fl, gh, gl, hh, hl] = state;
  for (let t = 0; t < 80; t += 1) {
    const s1h = ((eh >>> 14) | (el << 18)) ^ ((eh >>> 18) | (el << 14)) ^ ((el >>> 9) | (eh << 23));
    const s1l = ((el >>> 14) | (eh << 18)) ^ ((el >>> 18) | (eh << 14)) ^ ((eh >>> 9) | (el << 23));
    const chooseLow = (el & fl) ^ (~el & gl);
    const low1 = (hl >>> 0) + (s1l >>> 0) + (chooseLow >>> 0) + (K_LOW[t] >>> 0) +
      (W[2 * t + 1] >>> 0);
    const t1l = low1 | 0;
    const t1h = (hh + s1h + ((eh & fh) ^ (~eh & gh)) + K_HIGH[t] + W[2 * t] + carry(low1)) | 0;
    const s0h = ((ah >>> 28) | (al << 4)) ^ ((al >>> 2) | (ah << 30)) ^ ((al >>> 7) | (ah << 25));
    const s0l = ((al >>> 28) | (ah << 4)) ^ ((ah >>> 2) | (al << 30)) ^ ((ah >>> 7) | (al << 25));
    const low2 = (s0l >>> 0) + (((al & bl) ^ (al & cl) ^ (bl & cl)) >>> 0);
    const t2l = low2 | 0;
    const t2h = (s0h + ((ah & bh) ^ (ah & ch) ^ (bh & ch)) + carry(low2)) | 0;
    [hh, hl, gh, gl, fh, fl] = [gh, gl, fh, fl, eh, el];
    const lowE = (dl >>> 0) + (t1l >>> 0);
    [eh, el] = [(dh + t1h + carry(lowE)) | 0, lowE | 0];
    [dh, dl, ch, cl, bh, bl] = [ch, cl, bh, bl, ah, al];
    const lowA = (t1l >>> 0) + (t2l >>> 0);
    [ah, al] = [(t1h + t2h + carry(lowA)) | 0, lowA | 0];
  }
  const words = [ah, al, bh, bl, ch, cl, dh, dl, eh, el, fh, fl, gh, gl, hh, hl];
  for (let at = 0; at < 16; at += 2) {
    const low = (state[at + 1] >>> 0) + (words[at + 1] >>> 0);
    state[at] += words[at] + carry(low);
    state[at + 1] = low;
  }
}

/** A function of HMAC-SHA512 with this key; the key's own blocks are absorbed once. */
function keyed512(key) {
  const block = new Uint8Array(128);
  block.set(key.length > 128 ? ownSha512(key) : key);
  const [inner, outer] = [0x36, 0x5c].map((pad) => {
    const state = start512();
    absorb512(state, block.map((byte) => byte ^ pad));
    return state;
  });
  const finish = (begun, bytes) => {
    const state = Int32Array.from(begun);
    absorb512(state, padded(bytes, 128, 128));
    return bigEndian(state);
  };
  return (bytes) => finish(outer, finish(inner, bytes));
}

/**
 * HMAC-SHA512 in JavaScript.
 * @param {Uint8Array} key
 * @param {Uint8Array} bytes
 * @returns {Uint8Array}
 */
export function ownHmacSha512(key, bytes) {
  return keyed512(key)(bytes);
}

/**
 * PBKDF2-HMAC-SHA512 in JavaScript, 64 bytes.
 * @param {Uint8Array} password
 * @param {Uint8Array} salt
 * @param {number} iterations
 * @returns {Uint8Array}
 */
export function ownPbkdf2Sha512(password, salt, iterations) {
  const hmac = keyed512(password);
  let round = hmac(concat(salt, Uint8Array.of(0, 0, 0, 1)));
  const sum = Uint8Array.from(round);
  for (let done = 1; done < iterations; done += 1) {
    round = hmac(round);
    round.forEach((byte, at) => {
      sum[at] ^= byte;
    });
  }
  return sum;
}
