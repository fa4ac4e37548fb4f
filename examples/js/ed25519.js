// Ed25519 (RFC 8032): by the engine where it offers it, otherwise by the code here.
//
// The code here takes a time that depends on the secret. It is meant for test chains, not for keys
// that hold value on a machine that others share.

import { concat, toNumber } from "./bytes.js";
import { engine, sha512 } from "./hash.js";

const P = 2n ** 255n - 19n;
/** The order of the base point. */
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
/** What PKCS #8 writes before the 32 bytes of an Ed25519 seed (RFC 8410). */
const PKCS8 = Uint8Array.of(48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32);

/**
 * @typedef {object} Signer
 * @property {Uint8Array} publicKey 32 bytes
 * @property {(message: Uint8Array) => Promise<Uint8Array>} sign gives a signature of 64 bytes
 */

/**
 * The key pair of a seed.
 * @param {Uint8Array} seed 32 bytes
 * @returns {Promise<Signer>}
 */
export async function signerOf(seed) {
  return (await engineSigner(seed)) ?? ownSigner(seed);
}

/** By Web Crypto, or nothing where that does not know Ed25519. */
async function engineSigner(seed) {
  const { subtle } = engine;
  if (!subtle) return null;
  const name = "Ed25519";
  const bytes = concat(PKCS8, seed);
  let readable;
  try {
    readable = await subtle.importKey("pkcs8", bytes, { name }, true, ["sign"]);
  } catch (error) {
    // Engines without Ed25519 say that they do not support the name, or that the name is wrong.
    if (["NotSupportedError", "SyntaxError", "TypeError"].includes(error.name)) return null;
    throw error;
  }
  // Web Crypto tells a public key only as a part of a key that it writes as JWK.
  const { x } = await subtle.exportKey("jwk", readable);
  const publicKey = x ? fromBase64Url(x) : (await ownSigner(seed)).publicKey;
  const key = await subtle.importKey("pkcs8", bytes, { name }, false, ["sign"]);
  const sign = async (message) => new Uint8Array(await subtle.sign({ name }, key, message));
  return { publicKey, sign };
}

function fromBase64Url(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

// ---- without the engine -------------------------------------------------------------------------

/**
 * The key pair of a seed, in JavaScript.
 * @param {Uint8Array} seed 32 bytes
 * @returns {Promise<Signer>}
 */
export async function ownSigner(seed) {
  const expanded = await sha512(seed);
  const scalarBytes = expanded.slice(0, 32);
  scalarBytes[0] &= 248;
  scalarBytes[31] = (scalarBytes[31] & 127) | 64;
  const scalar = littleEndian(scalarBytes);
  const prefix = expanded.slice(32);
  const publicKey = encode(multiply(scalar, BASE));
  const sign = async (message) => {
    const r = littleEndian(await sha512(concat(prefix, message))) % ORDER;
    const point = encode(multiply(r, BASE));
    const k = littleEndian(await sha512(concat(point, publicKey, message))) % ORDER;
    return concat(point, to32LittleEndian((r + k * scalar) % ORDER));
  };
  return { publicKey, sign };
}

const littleEndian = (bytes) => toNumber(Uint8Array.from(bytes).reverse());

function to32LittleEndian(number) {
  const hex = number.toString(16).padStart(64, "0");
  return Uint8Array.from(
    { length: 32 },
    (_, at) => parseInt(hex.slice(62 - 2 * at, 64 - 2 * at), 16),
  );
}

const modulo = (number) => {
  const rest = number % P;
  return rest < 0n ? rest + P : rest;
};

function power(base, exponent) {
  let result = 1n;
  for (let bits = exponent; bits > 0n; bits >>= 1n) {
    if (bits & 1n) result = (result * base) % P;
    base = (base * base) % P;
  }
  return result;
}

const inverse = (number) => power(number, P - 2n);

// Points are in the extended coordinates of RFC 8032 section 5.1.4: [X, Y, Z, T] with x = X/Z,
// y = Y/Z, x·y = T/Z.
const D = modulo(-121665n * inverse(121666n));
const ZERO = [0n, 1n, 1n, 0n];
const BASE = basePoint();

/** The point with y = 4/5 and an even x. */
function basePoint() {
  const y = modulo(4n * inverse(5n));
  const square = modulo((y * y - 1n) * inverse(D * y * y + 1n));
  let x = power(square, (P + 3n) / 8n);
  if ((x * x) % P !== square) x = (x * power(2n, (P - 1n) / 4n)) % P;
  if (x & 1n) x = P - x;
  return [x, y, 1n, (x * y) % P];
}

function add([x1, y1, z1, t1], [x2, y2, z2, t2]) {
  const a = modulo((y1 - x1) * (y2 - x2));
  const b = modulo((y1 + x1) * (y2 + x2));
  const c = modulo(2n * t1 * t2 * D);
  const d = modulo(2n * z1 * z2);
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [modulo(e * f), modulo(g * h), modulo(f * g), modulo(e * h)];
}

function multiply(scalar, point) {
  let sum = ZERO;
  for (let bits = scalar; bits > 0n; bits >>= 1n) {
    if (bits & 1n) sum = add(sum, point);
    point = add(point, point);
  }
  return sum;
}

/** y with the lowest bit of x as its highest bit. */
function encode([x, y, z]) {
  const scale = inverse(z);
  const odd = modulo(x * scale) & 1n;
  return to32LittleEndian(modulo(y * scale) | (odd << 255n));
}
