// Calls of Solidity functions: signatures, calldata, and arguments as models write them
// (docs/agent-methods.md section 7). Types are string, bool, address, uint8 to uint256, int8 to
// int256, bytes, and arrays of one of these.

import { ArrayType, exactly, hexBytes, IntegerType, isObject, join, PlainType, readParts } from "./abi-types.js";
import { toHex, utf8, wrong } from "./bytes.js";
import { keccak256 } from "./keccak.js";

const SIGNATURE_BYTES_MAX = 1024;
const PARAMETERS_MAX = 32;
const FIXED_ELEMENTS_MAX = 1024;
const CALLDATA_BYTES_MAX = 65536;

const SHAPE = "name(type name, …) and nothing else, the name 1 to 64 of [A-Za-z0-9_]";
const TYPES =
  "string, bool, address, uint8 to uint256, int8 to int256, bytes, T[] or T[1] to T[1024]";
const SIGNATURE = /^([A-Za-z_][A-Za-z0-9_]{0,63})\(([^()]*)\)$/;
const TYPE = /^(string|bool|address|bytes|(u?int)([1-9][0-9]{0,2})?)(?:\[([1-9][0-9]{0,3})?(\])?)?$/;
const PARAMETER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

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
      const types = this.parameters.map(([, type]) => type);
      const read = () => {
        const { values } = readParts(types, data, 4);
        return Object.fromEntries(this.parameters.map(([name], at) => [name, values[at]]));
      };
      const args = exactly(read, (given) => this.encode(given) === calldata.toLowerCase());
      if (args) return args;
    }
    throw wrong("calldata", calldata, `a call of ${this.signature}`);
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
