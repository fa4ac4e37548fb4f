// The methods of an agent as its metadata declares them (docs/market.md sections 3 and 4): payloads
// of calls, and their results.

import {
  ArrayType, exactly, FixedBytesType, hexBytes, IntegerType, isObject, join, listed, named, PlainType, readParts,
  TupleType,
} from "./abi-types.js";
import { toHex, utf8, wrong } from "./bytes.js";
import { keccak256 } from "./keccak.js";

/** The most bytes of a payload or a result (docs/protocol.md section 5). */
const BYTES_MAX = 16384;
const SELECTOR_CHARACTERS = 10;
const PARAMETERS_MAX = 32;
const ELEMENTS_MAX = 1024;
const TUPLES_MAX = 8;
const TYPES = "string, bytes, bool, address, uint8 to uint256, int8 to int256, bytes1 to bytes32, tuple, or an array of one";
const BASE = /^(?:(string|bool|address|bytes)|(u?int)([1-9][0-9]{0,2})?|bytes([1-9][0-9]?)|(tuple))$/;
const TYPE = /^([a-z]+[0-9]*)((?:\[[0-9]*\]){0,4})$/;

const ADDRESS = /^(?:ox|0x)?([0-9a-fA-F]{40})$/;

/** @typedef {import("./abi-types.js").Type} Type */

/** An address as Solidity writes it, or as this chain does. */
class AddressType extends PlainType {
  constructor() {
    super("address");
  }

  encode(path, value) {
    const found = typeof value === "string" && ADDRESS.exec(value);
    if (!found) throw wrong(path, value, "an address, 40 hex characters, with or without 0x or ox before them");
    return super.encode(path, `0x${found[1]}`);
  }

  decode(data, place) {
    const { value, end } = super.decode(data, place);
    return { value: value.slice(2), end };
  }
}

/** A method of an agent. */
export class AgentMethod {
  /**
   * @param {any} entry of the array `abi` of the metadata
   * @param {string} [field] what messages call it
   */
  constructor(entry, field = "abi") {
    if (!isObject(entry) || entry.type !== "function") throw wrong(field, entry, "a function");
    if (typeof entry.name !== "string") throw wrong(`${field}.name`, entry.name, "a name");
    /** @type {string} */
    this.name = entry.name;
    /** @type {{name: string, type: Type}[]} */
    this.inputs = parameters(entry.inputs, `${field}.inputs`);
    /** @type {{name: string, type: Type}[]} */
    this.outputs = parameters(entry.outputs, `${field}.outputs`);
    /** Such as `judge(string,(address,uint8)[])`. @type {string} */
    this.signature = `${this.name}(${this.inputs.map(({ type }) => type.name).join(",")})`;
    /** `0x` and 8 characters. @type {string} */
    this.selector = `0x${toHex(keccak256(utf8(this.signature)).subarray(0, 4))}`;
  }

  /**
   * The payload of a call.
   * @param {any[] | Record<string, any>} args in their order, or by name; numbers as BigInt or decimal
   *   strings, addresses as this chain writes them or with `0x`, bytes as hex with `0x`, tuples as
   *   arrays or objects
   * @returns {string} `0x` and hex
   */
  encode(args) {
    return bounded("payload", this.selector + toHex(joined("args", this.inputs, args)));
  }

  /**
   * The arguments of a payload; what is taken is exactly what `encode` writes.
   * @param {string} payload
   * @returns {any} by name; an array where an input has no name. Numbers are decimal strings, addresses
   *   40 hex characters, bytes hex with `0x`
   */
  decode(payload) {
    const data = hexBytes(payload);
    const args = data && read(this.inputs, data, 4, (values) => this.encode(values) === payload.toLowerCase());
    if (args) return args;
    throw wrong("payload", payload, `a call of ${this.signature}`);
  }

  /**
   * A result, as a member of a call writes it.
   * @param {any[] | Record<string, any>} values
   * @returns {string} `0x` and hex
   */
  encodeResult(values) {
    return bounded("result", `0x${toHex(joined("result", this.outputs, values))}`);
  }

  /**
   * The values of a result; what is taken is exactly what `encodeResult` writes.
   * @param {string} result
   * @returns {any} by name; an array where an output has no name
   */
  decodeResult(result) {
    const data = hexBytes(result);
    const same = (values) => this.encodeResult(values) === result.toLowerCase();
    const values = data && read(this.outputs, data, 0, same);
    if (values) return values;
    throw wrong("result", result, `a result of ${this.signature}`);
  }
}

/**
 * The methods of an agent.
 * @param {string | {abi: any[]}} metadata the JSON text or what is in it
 * @returns {AgentMethod[]}
 */
export function agentMethods(metadata) {
  const { abi } = typeof metadata === "string" ? JSON.parse(metadata) : metadata;
  if (!Array.isArray(abi)) throw wrong("abi", abi, "an array");
  return abi.map((entry, at) => new AgentMethod(entry, `abi[${at}]`));
}

/**
 * The method that a payload calls.
 * @param {AgentMethod[]} methods
 * @param {string} payload
 * @returns {AgentMethod | undefined}
 */
export function methodOf(methods, payload) {
  const selector = typeof payload === "string" ? payload.slice(0, SELECTOR_CHARACTERS).toLowerCase() : "";
  return methods.find((one) => one.selector === selector);
}

function bounded(field, hex) {
  const bytes = (hex.length - 2) / 2;
  if (bytes > BYTES_MAX) throw wrong(field, bytes, `at most ${BYTES_MAX} bytes`);
  return hex;
}

function joined(path, declared, given) {
  const values = listed(path, declared, given);
  return join(declared.map(({ name, type }, at) => [type, type.encode(`${path}.${name || at}`, values[at])]));
}

/** The values from a place on; nothing if they are not encoded so. */
function read(declared, data, start, isSame) {
  const types = declared.map(({ type }) => type);
  return exactly(() => named(declared, readParts(types, data, start).values), isSame);
}

function parameters(list, field, depth = 0) {
  if (!Array.isArray(list) || list.length > PARAMETERS_MAX) {
    throw wrong(field, list, `an array of at most ${PARAMETERS_MAX} parameters`);
  }
  return list.map((one, at) => {
    const path = `${field}[${at}]`;
    if (!isObject(one) || typeof one.name !== "string") throw wrong(`${path}.name`, one?.name, "a name, or an empty text");
    return { name: one.name, type: typeOf(one, path, depth) };
  });
}

/** The type of a parameter with its dimensions, the innermost first. */
function typeOf({ type, components }, field, depth) {
  const found = typeof type === "string" && TYPE.exec(type);
  const base = found && BASE.exec(found[1]);
  if (!base) throw wrong(`${field}.type`, type, TYPES);
  const [, plain, integer, bits = "256", size, tuple] = base;
  const isBad = integer ? Number(bits) > 256 || Number(bits) % 8 !== 0 : size !== undefined && Number(size) > 32;
  if (isBad) throw wrong(`${field}.type`, type, TYPES);
  const item = () => {
    if (tuple) return tupleOf(components, field, depth);
    if (integer) return new IntegerType(integer, Number(bits));
    if (size) return new FixedBytesType(Number(size));
    return plain === "address" ? new AddressType() : new PlainType(plain);
  };
  const dimensions = [...found[2].matchAll(/\[([0-9]*)\]/g)].map(([, count]) => count);
  return dimensions.reduce((inner, count) => {
    if (count === "") return new ArrayType(inner, undefined);
    if (count.startsWith("0") || Number(count) > ELEMENTS_MAX) throw wrong(`${field}.type`, type, TYPES);
    return new ArrayType(inner, Number(count));
  }, item());
}

function tupleOf(components, field, depth) {
  if (depth >= TUPLES_MAX) throw wrong(field, "a tuple", `at most ${TUPLES_MAX} tuples in each other`);
  const own = parameters(components, `${field}.components`, depth + 1);
  if (own.length === 0) throw wrong(`${field}.components`, "nothing", "at least one parameter");
  return new TupleType(own);
}
