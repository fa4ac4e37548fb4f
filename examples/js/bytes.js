// Bytes as hex, base64 and text, and the errors about fields.

const UTF8 = new TextEncoder();

/** A value that is not what a field wants. */
export class FieldError extends Error {
  /**
   * @param {string} field the name of the field, such as `amount` or `toolCalls[1].name`
   * @param {string} got what was there, in words
   * @param {string} expected what would have been right
   */
  constructor(field, got, expected) {
    super(`${field}: got ${got}, expected ${expected}`);
    this.name = "FieldError";
    /** @type {string} */
    this.field = field;
    /** @type {string} */
    this.expected = expected;
  }
}

/**
 * The error for a value, which is shown in at most 80 characters and without control characters.
 * @param {string} field
 * @param {unknown} value
 * @param {string} expected
 * @returns {FieldError}
 */
export function wrong(field, value, expected) {
  if (value === undefined) return new FieldError(field, "nothing", expected);
  const isText = typeof value === "string";
  const text = isText ? JSON.stringify(value) : String(value);
  const short = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  const plain = short.replace(/[\p{Cc}\p{Surrogate}]/gu, "\ufffd");
  return new FieldError(field, isText ? plain : `${plain} (${typeof value})`, expected);
}

/**
 * Text as UTF-8. Half of a surrogate pair becomes U+FFFD.
 * @param {string} text
 * @returns {Uint8Array}
 */
export function utf8(text) {
  return UTF8.encode(text);
}

/**
 * Lowercase hex.
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function toHex(bytes) {
  let hex = "";
  for (const byte of bytes) hex += byte.toString(16).padStart(2, "0");
  return hex;
}

/**
 * The bytes of a text of lowercase hex.
 * @param {string} field what a message calls the text
 * @param {unknown} hex
 * @param {number} length how many bytes there must be
 * @returns {Uint8Array}
 */
export function fromHex(field, hex, length) {
  if (typeof hex !== "string" || hex.length !== 2 * length || !/^[0-9a-f]*$/.test(hex)) {
    // The text may be a secret, so the message does not show it.
    throw new FieldError(field, "something else", `${2 * length} lowercase hex characters`);
  }
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 1) bytes[at] = parseInt(hex.slice(2 * at, 2 * at + 2), 16);
  return bytes;
}

/**
 * Standard base64 with padding.
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function toBase64(bytes) {
  // A call takes only so many arguments, so the text is put together from pieces.
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(text);
}

/**
 * @param {...Uint8Array} parts
 * @returns {Uint8Array}
 */
export function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * Bytes as a number, the first byte the most significant.
 * @param {Uint8Array} bytes
 * @returns {bigint}
 */
export function toNumber(bytes) {
  return bytes.length === 0 ? 0n : BigInt(`0x${toHex(bytes)}`);
}

/**
 * A number as 32 bytes, the first byte the most significant.
 * @param {bigint} number
 * @returns {Uint8Array}
 */
export function to32Bytes(number) {
  return fromHex("number", number.toString(16).padStart(64, "0"), 32);
}
