// The types of Solidity's application binary interface: how values are encoded, and read back.
//
// What is read is exactly what is written: each part stands where the encoder puts it, so reading
// takes a time that is linear in the bytes, whatever they say.

import { concat, FieldError, to32Bytes, toHex, toNumber, utf8, wrong } from "./bytes.js";

const WORD = 32;
const TEXT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A type: `words` is what it takes in the head if it has a fixed size, `isDynamic` whether it has none.
 * `decode` answers the value that begins at a place, and where it ends.
 * @typedef {{name: string, words: number, isDynamic: boolean,
 *   encode: (path: string, value: unknown) => Uint8Array,
 *   decode: (data: Uint8Array, place: number) => {value: any, end: number}}} Type
 */

/** string, bool, address or bytes. */
export class PlainType {
  words = 1;

  constructor(name) {
    this.name = name;
    this.isDynamic = name === "string" || name === "bytes";
  }

  encode(path, value) {
    if (this.name === "bool" && typeof value === "boolean") return to32Bytes(value ? 1n : 0n);
    if (this.name === "string" && typeof value === "string" && !/\p{Surrogate}/u.test(value)) {
      return counted(utf8(value));
    }
    const given = hexBytes(value);
    if (this.name === "bytes" && given) return counted(given);
    if (this.name === "address" && given?.length === 20) return concat(new Uint8Array(12), given);
    throw wrong(path, value, `a value of ${this.name}`);
  }

  decode(data, place) {
    if (!this.isDynamic) {
      const number = word(data, place);
      const text = `0x${number.toString(16).padStart(40, "0")}`;
      return { value: this.name === "bool" ? number === 1n : text, end: place + WORD };
    }
    const start = place + WORD;
    const count = length(data, place);
    const given = data.subarray(start, start + count);
    const value = this.name === "string" ? TEXT.decode(given) : `0x${toHex(given)}`;
    return { value, end: start + Math.ceil(count / WORD) * WORD };
  }
}

/** bytes1 to bytes32. */
export class FixedBytesType {
  words = 1;
  isDynamic = false;

  constructor(size) {
    this.name = `bytes${size}`;
    this.size = size;
  }

  encode(path, value) {
    const given = hexBytes(value);
    if (given?.length !== this.size) throw wrong(path, value, `0x and ${this.size} bytes of hex`);
    return concat(given, new Uint8Array(WORD - this.size));
  }

  decode(data, place) {
    const digits = word(data, place).toString(16).padStart(2 * WORD, "0");
    return { value: `0x${digits.slice(0, 2 * this.size)}`, end: place + WORD };
  }
}

/** uint8 to uint256, int8 to int256. */
export class IntegerType {
  words = 1;
  isDynamic = false;

  constructor(kind, bits) {
    this.name = `${kind}${bits}`;
    this.bits = bits;
    this.isSigned = kind === "int";
  }

  encode(path, value) {
    const isInteger = typeof value === "bigint" || Number.isSafeInteger(value);
    const text = isInteger ? `${value}` : value;
    if (typeof text !== "string" || !/^-?[0-9]{1,1024}$/.test(text)) {
      throw wrong(path, value, `a decimal string, a value of ${this.name}`);
    }
    const number = BigInt(text);
    const wrap = this.isSigned ? BigInt.asIntN : BigInt.asUintN;
    if (wrap(this.bits, number) !== number) throw wrong(path, value, `a value of ${this.name}`);
    return to32Bytes(BigInt.asUintN(256, number));
  }

  decode(data, place) {
    const number = word(data, place);
    return { value: `${this.isSigned ? BigInt.asIntN(256, number) : number}`, end: place + WORD };
  }
}

/** An array of such values, of any number or of a fixed one. */
export class ArrayType {
  constructor(item, count) {
    this.name = `${item.name}[${count ?? ""}]`;
    this.item = item;
    this.count = count;
    this.isDynamic = item.isDynamic || count === undefined;
    this.words = (count ?? 1) * item.words;
  }

  encode(path, value) {
    if (!Array.isArray(value) || value.length !== (this.count ?? value.length)) {
      throw wrong(path, value, this.count ? `an array of ${this.count} elements` : "an array");
    }
    const items = join(
      value.map((item, index) => [this.item, this.item.encode(`${path}[${index}]`, item)]),
    );
    return this.count ? items : concat(to32Bytes(BigInt(value.length)), items);
  }

  decode(data, place) {
    const count = this.count ?? length(data, place);
    if (count > data.length / WORD) throw new RangeError("more elements than bytes");
    const types = Array.from({ length: count }, () => this.item);
    const { values, end } = readParts(types, data, this.count ? place : place + WORD);
    return { value: values, end };
  }
}

/** A tuple: an object by the names of its components; an array where one of them has no name. */
export class TupleType {
  /** @param {{name: string, type: Type}[]} components */
  constructor(components) {
    const types = components.map(({ type }) => type);
    this.name = `(${types.map(({ name }) => name).join(",")})`;
    this.components = components;
    this.isDynamic = types.some(({ isDynamic }) => isDynamic);
    this.words = types.reduce((sum, { words }) => sum + words, 0);
  }

  encode(path, value) {
    const values = listed(path, this.components, value);
    return join(this.components.map(({ name, type }, at) => {
      return [type, type.encode(`${path}.${name || at}`, values[at])];
    }));
  }

  decode(data, place) {
    const { values, end } = readParts(this.components.map(({ type }) => type), data, place);
    return { value: named(this.components, values), end };
  }
}

/**
 * Values in the order of their parameters, given in this order or by name.
 * @param {string} path what messages call them
 * @param {{name: string}[]} parameters
 * @param {unknown} given
 * @returns {any[]}
 */
export function listed(path, parameters, given) {
  const names = parameters.map(({ name }) => name);
  if (Array.isArray(given)) {
    if (given.length === names.length) return given;
    throw wrong(path, given.length, `${names.length} values`);
  }
  if (!isObject(given)) throw wrong(path, given, "an array, or an object by names");
  const unknown = Object.keys(given).find((name) => name === "" || !names.includes(name));
  if (unknown !== undefined) throw wrong(`${path}.${unknown}`, "a value", `one of ${names.join(", ")}`);
  const missing = names.find((name) => !Object.hasOwn(given, name));
  if (missing !== undefined) throw wrong(`${path}.${missing}`, undefined, "a value");
  return names.map((name) => given[name]);
}

/** Values by the names of their parameters; as they are where one has no name. */
export function named(parameters, values) {
  if (parameters.some(({ name }) => name === "")) return values;
  return Object.fromEntries(parameters.map(({ name }, at) => [name, values[at]]));
}

/**
 * Values one after the other, those of no fixed size behind the others.
 * @param {[Type, Uint8Array][]} parts
 */
export function join(parts) {
  let tail = parts.reduce((sum, [type, own]) => sum + (type.isDynamic ? WORD : own.length), 0);
  const heads = parts.map(([type, own]) => {
    if (!type.isDynamic) return own;
    tail += own.length;
    return to32Bytes(BigInt(tail - own.length));
  });
  const tails = parts.filter(([type]) => type.isDynamic).map(([, own]) => own);
  return concat(...heads, ...tails);
}

/**
 * The values that `join` has put together from a place on, and where they end.
 * @param {Type[]} types
 * @param {Uint8Array} data
 * @param {number} start
 * @throws {RangeError} where a part stands elsewhere than there
 */
export function readParts(types, data, start) {
  let head = start;
  let tail = types.reduce((at, type) => at + WORD * (type.isDynamic ? 1 : type.words), start);
  const values = types.map((type) => {
    if (!type.isDynamic) {
      const { value, end } = type.decode(data, head);
      head = end;
      return value;
    }
    if (word(data, head) !== BigInt(tail - start)) throw new RangeError("a part at another place");
    head += WORD;
    const { value, end } = type.decode(data, tail);
    tail = end;
    return value;
  });
  return { values, end: tail };
}

/** What `read` gives if `isSame` finds it encoded to the same bytes again; else nothing. */
export function exactly(read, isSame) {
  try {
    const values = read();
    return isSame(values) ? values : null;
  } catch (error) {
    // A part beyond the end, no UTF-8, a value that its type has not.
    const isOfData = [RangeError, TypeError, FieldError].some((kind) => error instanceof kind);
    if (isOfData) return null;
    throw error;
  }
}

/** Bytes with their number before them, filled up to whole words. */
function counted(bytes) {
  const filled = new Uint8Array(Math.ceil(bytes.length / WORD) * WORD);
  filled.set(bytes);
  return concat(to32Bytes(BigInt(bytes.length)), filled);
}

function word(data, place) {
  if (place + WORD > data.length) throw new RangeError("beyond the end");
  return toNumber(data.subarray(place, place + WORD));
}

/** A number of bytes or a place among them. */
function length(data, place) {
  const number = word(data, place);
  if (number > BigInt(data.length)) throw new RangeError("beyond the end");
  return Number(number);
}

/** The bytes of `0x` and hex of either case; null for anything else. */
export function hexBytes(text) {
  if (typeof text !== "string" || !/^0x(?:[0-9a-fA-F]{2})*$/.test(text)) return null;
  const bytes = new Uint8Array((text.length - 2) / 2);
  bytes.forEach((_, index) => {
    bytes[index] = parseInt(text.slice(2 + 2 * index, 4 + 2 * index), 16);
  });
  return bytes;
}

export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
