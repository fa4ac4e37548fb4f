// What a field may hold (docs/protocol.md section 5). A check answers the value as it is written
// into the transaction, or throws a FieldError that names the field.
//
// The kinds, their fields and their limits come from the node's own declarations (kinds.js).

import { FieldError, utf8, wrong } from "./bytes.js";
import { bareAddress } from "./keys.js";
import { DECLARATIONS } from "./kinds.js";

/** The largest amount, 2^64 − 1 micro. */
export const AMOUNT_MAX = 2n ** 64n - 1n;
/** The most bytes of a prompt, a turn or an answer. */
export const INLINE_TEXT_BYTES_MAX = 16384;
/** The most entries of a list of names. */
const NAMES_MAX = 64;

/** @typedef {(field: string, value: unknown) => any} Check */

/** @type {Check} */
export function amount(field, value) {
  const text = typeof value === "bigint" ? value.toString() : value;
  const isDecimal = typeof text === "string" && /^(0|[1-9][0-9]{0,19})$/.test(text);
  if (!isDecimal || BigInt(text) > AMOUNT_MAX) {
    const expected = `micro as a BigInt or a string of digits, 0 to ${AMOUNT_MAX}`;
    throw wrong(field, value, expected);
  }
  return text;
}

/** @returns {Check} */
const integer = (least = 0, most = Number.MAX_SAFE_INTEGER) => (field, value) => {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw wrong(field, value, `an integer from ${least} to ${most}`);
  }
  return value;
};

/** @type {Check} */
export function string(field, value) {
  if (typeof value !== "string") throw wrong(field, value, "a string");
  // With the flag `u` a surrogate is only seen where it is no half of a pair.
  if (/\p{Surrogate}/u.test(value)) {
    throw wrong(field, value, "text without halves of surrogate pairs");
  }
  return value;
}

/** @returns {Check} */
const text = (least, most) => (field, value) => {
  const { length } = utf8(string(field, value));
  if (length < least) throw wrong(field, value, `${least} to ${most} bytes`);
  if (length > most) throw new FieldError(field, `${length} bytes`, `at most ${most} bytes`);
  return value;
};

/** 128 hex characters. @type {Check} */
function signature(field, value) {
  if (typeof value !== "string" || !/^[0-9a-f]{128}$/.test(value)) {
    throw wrong(field, value, "128 lowercase hex characters");
  }
  return value;
}

/** 64 hex characters: a hash, an id or a key. @type {Check} */
export function hash(field, value) {
  if (typeof value !== "string" || !/^[0-9a-f]{64}$/.test(value)) {
    throw wrong(field, value, "64 lowercase hex characters");
  }
  return value;
}

/** @type {Check} */
function address(field, value) {
  bareAddress(value, field);
  return value;
}

/** @type {Check} */
export function blobId(field, value) {
  if (typeof value !== "string" || !/^[A-Za-z0-9_-]{1,128}$/.test(value)) {
    throw wrong(field, value, "1 to 128 characters of [A-Za-z0-9_-]");
  }
  return value;
}

/** @type {Check} */
function boolean(field, value) {
  if (typeof value !== "boolean") throw wrong(field, value, "true or false");
  return value;
}

/** @returns {Check} */
const oneOf = (words) => (field, value) => {
  if (!words.includes(value)) throw wrong(field, value, `one of ${words.join(", ")}`);
  return value;
};

/** @returns {Check} */
const arrayOf = (check, most) => (field, value) => {
  if (!Array.isArray(value)) throw wrong(field, value, "an array");
  if (value.length > most) {
    throw new FieldError(field, `${value.length} entries`, `at most ${most} entries`);
  }
  return Array.from(value, (item, at) => check(`${field}[${at}]`, item));
};

/** @returns {Check} */
const names = (most) => (field, value) => {
  const list = arrayOf(text(0, most), NAMES_MAX)(field, value);
  const twice = list.find((name, at) => list.indexOf(name) !== at);
  if (twice !== undefined) throw new FieldError(field, `${twice} twice`, "each entry once");
  return list;
};

/** @returns {Check} */
const addresses = (most) => (field, value) => {
  const list = arrayOf(address, most)(field, value);
  if (list.length === 0) throw new FieldError(field, "empty", "at least one address");
  const bare = list.map((item) => bareAddress(item, field));
  const twice = bare.find((item, at) => bare.indexOf(item) !== at);
  if (twice !== undefined) throw new FieldError(field, `${twice} twice`, "each address once");
  return list;
};

/**
 * Members of an object in the order of their checks; members that have none are refused.
 * @returns {Check}
 */
const objectOf = (checks) => (field, value) => {
  if (value === null || typeof value !== "object") throw wrong(field, value, "an object");
  const within = (name) => `${field}.${name}`;
  refuseUnknown(value, Object.keys(checks), within);
  const entries = Object.entries(checks);
  return Object.fromEntries(
    entries.map(([name, check]) => [name, check(within(name), value[name])]),
  );
};

/** Throws for a member that is not in the list. */
export function refuseUnknown(object, known, within = (name) => name) {
  for (const name of Object.keys(object)) {
    if (!known.includes(name)) {
      throw wrong(within(name), object[name], `no such field, but ${known.join(", ")}`);
    }
  }
}

/** @type {Check} */
function base64(field, value) {
  const isBase64 = typeof value === "string" &&
    value.length % 4 === 0 &&
    /^[A-Za-z0-9+/]*={0,2}$/.test(value) &&
    btoa(atob(value)) === value;
  if (!isBase64) throw wrong(field, value, "standard base64 with padding");
  return value;
}

/** @returns {Check} */
const hex = (most) => (field, value) => {
  if (typeof value !== "string" || !/^0x(?:[0-9a-f]{2})*$/.test(value)) {
    throw wrong(field, value, "0x and an even number of lowercase hex characters");
  }
  const bytes = (value.length - 2) / 2;
  if (bytes > most) throw new FieldError(field, `${bytes} bytes`, `at most ${most} bytes`);
  return value;
};

/** How a declared form is checked. @type {Record<string, (field: any) => Check>} */
const FORMS = {
  address: () => address,
  addresses: ({ max }) => addresses(max),
  amount: () => amount,
  base64: () => base64,
  blobId: () => blobId,
  boolean: () => boolean,
  hash: () => hash,
  hex: ({ maxBytes }) => hex(maxBytes),
  integer: ({ min, max }) => integer(min, max),
  key: () => hash,
  names: ({ maxBytes }) => names(maxBytes),
  object: ({ members }) => objectOf(checks(members)),
  objects: ({ members, max }) => arrayOf(objectOf(checks(members)), max),
  signature: () => signature,
  text: ({ minBytes, maxBytes }) => text(minBytes, maxBytes),
  word: ({ words }) => oneOf(words),
};

/** The checks of declared fields by name. */
function checks(fields) {
  return Object.fromEntries(fields.map((field) => [field.name, FORMS[field.form](field)]));
}

/**
 * A kind of transaction: its checks in the order in which the fields are written, and how what is
 * left out is filled in, by field.
 * @typedef {{required: Record<string, Check>, optional: Record<string, Check>,
 *   filled: Record<string, string>, forms: Record<string, string>}} Kind
 */

/** @returns {Kind} */
function kind({ required, optional }) {
  const filled = required.filter((field) => field.filled !== undefined);
  return {
    required: checks(required),
    optional: checks(optional),
    filled: Object.fromEntries(filled.map((field) => [field.name, field.filled])),
    forms: Object.fromEntries(required.map((field) => [field.name, field.form])),
  };
}

/** Every kind by its type. @type {Record<string, Kind>} */
export const KINDS = Object.fromEntries(DECLARATIONS.kinds.map((it) => [it.type, kind(it)]));

/** What every kind may have beside its own fields, in the order in which it is written. */
export const EVERY_KIND = checks(DECLARATIONS.everyKind.optional);

/** @type {Check} */
export const plainInteger = integer();
