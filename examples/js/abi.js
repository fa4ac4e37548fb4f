// Calls of Solidity functions: signatures, calldata, and arguments as models write them
// (docs/agent-methods.md section 7). Types are string, bool, address, uint8 to uint256, int8 to
// int256, bytes, and arrays of one of these.

import { concat, FieldError, to32Bytes, toHex, toNumber, utf8, wrong } from "./bytes.js";
import { keccak256 } from "./keccak.js";

const SIGNATURE_BYTES_MAX = 1024;
const PARAMETERS_MAX = 32;
const FIXED_ELEMENTS_MAX = 1024;
const CALLDATA_BYTES_MAX = 65536;
const WORD = 32;

const SHAPE = "name(type name, …) and nothing else, the name 1 to 64 of [A-Za-z0-9_]";
const TYPES =
  "string, bool, address, uint8 to uint256, int8 to int256, bytes, T[] or T[1] to T[1024]";
const SIGNATURE = /^([A-Za-z_][A-Za-z0-9_]{0,63})\(([^()]*)\)$/;
const TYPE = /^(string|bool|address|bytes|(u?int)([1-9][0-9]{0,2})?)(?:\[([1-9][0-9]{0,3})?(\])?)?$/;
const PARAMETER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
const TEXT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A call, its arguments in the form in which models give them: numbers as decimal strings,
 * addresses and bytes as lowercase hex behind `0x`.
 * @typedef {{name: string, arguments: Record<string, any>}} DecodedCall
 */

/** A declared function. */
export class AbiFunction {
  /**
   * @param {string} signature such as `swap(address token, uint256 amount)`
   * @param {string} [field] what messages call it
   */
  constructor(signature, field = "signature") {
    const found = typeof signature === "string" && SIGNATURE.exec(signature);
    if (!found || utf8(signature).length > SIGNATURE_BYTES_MAX) {
      throw wrong(field, signature, SHAPE);
    }
    const [, name, listed] = found;
    const given = listed.trim() === "" ? [] : listed.split(",");
    if (given.length > PARAMETERS_MAX) {
      throw wrong(field, given.length, `at most ${PARAMETERS_MAX} parameters`);
    }
    /** @type {string} */
    this.name = name;
    this.parameters = given.map((text, index) => parameter(field, signature, text, index));
    const names = this.parameters.map(([own]) => own);
    const twin = names.find((own, index) => names.indexOf(own) !== index);
    if (twin !== undefined) throw wrong(field, twin, "parameters with names of their own");
    /** Without names and white space. @type {string} */
    this.signature = `${name}(${this.parameters.map(([, type]) => type.name).join(",")})`;
    /** `0x` and 8 characters. @type {string} */
    this.selector = `0x${toHex(keccak256(utf8(this.signature)).subarray(0, 4))}`;
  }

  /**
   * The calldata of a call.
   * @param {Record<string, any>} args by the names of the parameters
   * @returns {string} `0x` and hex
   */
  encode(args) {
    if (!isObject(args)) throw wrong("arguments", args, "an object");
    const known = this.parameters.map(([name]) => name);
    const unknown = Object.keys(args).find((name) => !known.includes(name));
    if (unknown !== undefined) throw wrong(unknown, "an argument", `one of ${this.signature}`);
    const parts = this.parameters.map(([name, type]) => {
      return [type, type.encode(name, Object.hasOwn(args, name) ? args[name] : undefined)];
    });
    const encoded = join(parts);
    if (encoded.length + 4 > CALLDATA_BYTES_MAX) {
      throw wrong("calldata", encoded.length + 4, `at most ${CALLDATA_BYTES_MAX} bytes`);
    }
    return this.selector + toHex(encoded);
  }

  /**
   * The arguments of a call; what is taken is exactly what `encode` writes.
   * @param {string} calldata
   * @returns {Record<string, any>}
   */
  decode(calldata) {
    const data = hexBytes(calldata);
    if (data && data.length <= CALLDATA_BYTES_MAX) {
      const args = this.#read(data.subarray(4), calldata.toLowerCase());
      if (args) return args;
    }
    throw wrong("calldata", calldata, `a call of ${this.signature}`);
  }

  /** The arguments, or nothing if they are not written as `encode` writes them. */
  #read(data, calldata) {
    try {
      let place = 0;
      const read = this.parameters.map(([name, type]) => {
        const value = type.decode(data, type.isDynamic ? length(data, place) : place);
        place += type.isDynamic ? WORD : type.words * WORD;
        return [name, value];
      });
      const args = Object.fromEntries(read);
      return this.encode(args) === calldata ? args : null;
    } catch (error) {
      // A part beyond the end, no UTF-8, a value that its type has not.
      const isOfData = [RangeError, TypeError, FieldError].some((kind) => error instanceof kind);
      if (isOfData) return null;
      throw error;
    }
  }
}

/**
 * The call that calldata is.
 * @param {AbiFunction[]} functions
 * @param {string} calldata
 * @returns {DecodedCall}
 */
export function decodeCall(functions, calldata) {
  const selector = typeof calldata === "string" ? calldata.slice(0, 10).toLowerCase() : "";
  const called = functions.find((one) => one.selector === selector);
  if (!called) throw wrong("calldata", calldata, "the selector of a declared function");
  return { name: called.name, arguments: called.decode(calldata) };
}

/** `uint256 amount`, `bytes calldata data`, `bool`. */
function parameter(field, signature, text, index) {
  const [type, ...names] = text.trim().split(/\s+/);
  if (["memory", "calldata"].includes(names[0])) names.shift();
  if (type === "" || names.length > 1 || (names.length === 1 && !PARAMETER.test(names[0]))) {
    throw wrong(field, signature, SHAPE);
  }
  return [names[0] ?? `arg${index}`, typeOf(field, type)];
}

function typeOf(field, text) {
  const found = TYPE.exec(text);
  if (!found) throw wrong(field, `type ${text}`, TYPES);
  const [, plain, integer, bits = "256", count, closed] = found;
  const isArray = text.includes("[");
  const fits = !integer || (Number(bits) <= 256 && Number(bits) % 8 === 0);
  if (!fits || isArray !== (closed === "]") || Number(count ?? 1) > FIXED_ELEMENTS_MAX) {
    throw wrong(field, `type ${text}`, TYPES);
  }
  const item = integer ? new IntegerType(integer, Number(bits)) : new PlainType(plain);
  return isArray ? new ArrayType(item, count && Number(count)) : item;
}

/** string, bool, address or bytes. */
class PlainType {
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
      return this.name === "bool" ? number === 1n : `0x${number.toString(16).padStart(40, "0")}`;
    }
    const start = place + WORD;
    const given = data.subarray(start, start + length(data, place));
    return this.name === "string" ? TEXT.decode(given) : `0x${toHex(given)}`;
  }
}

/** uint8 to uint256, int8 to int256. */
class IntegerType {
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
    return `${this.isSigned ? BigInt.asIntN(256, number) : number}`;
  }
}

/** An array of such values, of any number or of a fixed one. */
class ArrayType {
  constructor(item, count) {
    this.name = `${item.name}[${count ?? ""}]`;
    this.item = item;
    this.count = count;
    this.isDynamic = item.isDynamic || count === undefined;
    this.words = count ?? 1;
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
    const start = this.count ? place : place + WORD;
    if (count > data.length / WORD) throw new RangeError("more elements than bytes");
    return Array.from({ length: count }, (_, index) => {
      const head = start + WORD * index;
      return this.item.decode(data, this.item.isDynamic ? start + length(data, head) : head);
    });
  }
}

/** Values one after the other, those of no fixed size behind the others. */
function join(parts) {
  let tail = parts.reduce((sum, [type, own]) => sum + (type.isDynamic ? WORD : own.length), 0);
  const heads = parts.map(([type, own]) => {
    if (!type.isDynamic) return own;
    tail += own.length;
    return to32Bytes(BigInt(tail - own.length));
  });
  const tails = parts.filter(([type]) => type.isDynamic).map(([, own]) => own);
  return concat(...heads, ...tails);
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
function hexBytes(text) {
  if (typeof text !== "string" || !/^0x(?:[0-9a-fA-F]{2})*$/.test(text)) return null;
  const bytes = new Uint8Array((text.length - 2) / 2);
  bytes.forEach((_, index) => {
    bytes[index] = parseInt(text.slice(2 + 2 * index, 4 + 2 * index), 16);
  });
  return bytes;
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
