// JSON schemas of functions and of answers, for `inferMessages`: whether a miner takes them.
// docs/agent-methods.md section 13 has the rules.

import { utf8, wrong } from "./bytes.js";

const LIMITS = { parts: 512, values: 1024, bytes: 131072, oneBytes: 32768, depth: 32 };
const BRANCHES = 32;
const COUNT = 4096;
const OPTIONAL = 256;
const TEXT_BYTES = 256;
/** The largest whole number among values, where it is written without an exponent. */
const WHOLE = 2 ** 53;
const WORDS_BYTES = 32;

const NUMBERS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
/** The keywords that only mean something for a type. */
const KEYWORDS = {
  object: ["properties", "required", "additionalProperties"],
  array: ["items", "prefixItems", "minItems", "maxItems"],
  string: ["minLength", "maxLength"],
  number: NUMBERS,
  integer: NUMBERS,
  boolean: [],
  null: [],
};
const ANNOTATIONS = [
  "title", "description", "default", "examples", "example", "format", "deprecated", "readOnly",
  "writeOnly", "discriminator", "$comment", "$schema",
];
const CHOICES = ["anyOf", "oneOf", "allOf"];
const DEFINITIONS = ["$defs", "definitions"];
/** Digits behind the point of a bound, and a bound in units of the last of them. */
const FRACTION = 8;
const UNIT = 10n ** BigInt(FRACTION);

const has = (object, key) => Object.hasOwn(object, key);
const size = (text) => utf8(text).length;

/** What is left of the limits for all schemas of a request. */
export function schemaBudget() {
  return { ...LIMITS };
}

/**
 * Refuses a schema that a miner would refuse; it is not changed.
 * @param {string} field what messages call it
 * @param {any} schema
 * @param {{parts: number, values: number, bytes: number}} [budget] that of the whole request
 */
export function checkSchema(field, schema, budget = schemaBudget()) {
  object(field, schema);
  const definitions = new Map();
  for (const place of DEFINITIONS) {
    if (!has(schema, place)) continue;
    for (const [name, defined] of Object.entries(object(`${field}.${place}`, schema[place]))) {
      definitions.set(`#/${place}/${name}`, defined);
    }
  }
  const left = { optional: OPTIONAL };
  const form = node({ definitions, budget, left, open: [] }, field, schema, 1, true);
  if (form.type !== "object") {
    throw wrong(`${field}.type`, form.type ? JSON.stringify(form.type) : "no type", '"object"');
  }
  const bytes = size(JSON.stringify(form));
  if (bytes > LIMITS.oneBytes) throw wrong(field, bytes, `at most ${LIMITS.oneBytes} bytes`);
}

function node(walk, field, schema, depth, isRoot = false) {
  if (depth > LIMITS.depth) throw wrong(field, "one more level", `at most ${LIMITS.depth} levels`);
  object(field, schema);
  spend(walk, "parts", 1, field);
  const description = described(field, schema);
  spend(walk, "bytes", WORDS_BYTES + (description === undefined ? 0 : size(description)), field);
  const { kind, types } = kindOf(field, schema, isRoot);
  const form = {
    $ref: () => reference(walk, field, schema, depth),
    values: () => values(walk, field, schema),
    typed: () => typed(walk, field, schema, types, depth),
  }[kind]?.() ?? choice(walk, field, schema, kind, depth);
  return description === undefined ? form : { ...form, description };
}

function spend({ budget }, what, count, field) {
  budget[what] -= count;
  if (budget[what] < 0) throw wrong(field, "more", `at most ${LIMITS[what]} ${what} together`);
}

function described(field, schema) {
  const [description, format] = ["description", "format"].map((key) => {
    return has(schema, key) ? string(`${field}.${key}`, schema[key]) : undefined;
  });
  if (format === undefined) return description;
  return description === undefined ? `format: ${format}` : `${description} (format: ${format})`;
}

/** What a schema is. Every keyword must be known for that, or say nothing. */
function kindOf(field, schema, isRoot) {
  let [kind, types, known] = ["typed", [], []];
  const choices = CHOICES.find((key) => has(schema, key));
  if (has(schema, "$ref")) [kind, known] = ["$ref", ["$ref"]];
  else if (choices) [kind, known] = [choices, [choices]];
  else if (has(schema, "enum") || has(schema, "const")) {
    [kind, known] = ["values", ["enum", "const", "type", "nullable"]];
  } else {
    types = typesOf(field, schema) ?? implied(schema, isRoot);
    if (isNullable(field, schema) && types.length > 0) types = [...new Set([...types, "null"])];
    known = ["type", "nullable", ...types.flatMap((type) => KEYWORDS[type])];
  }
  if (isRoot) known = [...known, ...DEFINITIONS];
  const unknown = Object.keys(schema).find((key) => {
    const isIdle = key === "uniqueItems" && schema[key] === false;
    return !known.includes(key) && !ANNOTATIONS.includes(key) && !key.startsWith("x-") && !isIdle;
  });
  if (unknown === undefined) return { kind, types };
  throw wrong(`${field}.${unknown}`, "a keyword", `beside what says nothing only ${known}`);
}

function implied(schema, isRoot) {
  const found = ["object", "array", "string", "number"].find((type) => {
    return KEYWORDS[type].some((key) => has(schema, key));
  });
  return found ? [found] : isRoot ? ["object"] : [];
}

function typesOf(field, schema) {
  if (!has(schema, "type")) return undefined;
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  const isWrong = (type, index) => {
    return typeof type !== "string" || !has(KEYWORDS, type) || types.indexOf(type) !== index;
  };
  if (types.length === 0 || types.some(isWrong)) {
    throw wrong(`${field}.type`, JSON.stringify(schema.type), `of ${Object.keys(KEYWORDS)}, each once`);
  }
  return types;
}

function isNullable(field, { nullable = false }) {
  if (typeof nullable !== "boolean") throw wrong(`${field}.nullable`, nullable, "true or false");
  return nullable;
}

function reference(walk, field, schema, depth) {
  const [path, name] = [`${field}.$ref`, string(`${field}.$ref`, schema.$ref)];
  const defined = walk.definitions.get(name);
  if (defined === undefined) throw wrong(path, name, "a definition here, as #/$defs/name");
  if (walk.open.includes(name)) throw wrong(path, name, "no schema that contains itself");
  const open = [...walk.open, name];
  return node({ ...walk, open }, `${path}(${name})`, defined, depth + 1);
}

function choice(walk, field, schema, key, depth) {
  const path = `${field}.${key}`;
  const branches = array(path, schema[key], key === "allOf" ? 1 : BRANCHES);
  if (branches.length === 0) throw wrong(path, "no schemas", "at least one");
  const forms = branches.map((branch, index) => node(walk, `${path}[${index}]`, branch, depth + 1));
  return forms.length === 1 ? forms[0] : { anyOf: forms };
}

function values(walk, field, schema) {
  const types = typesOf(field, schema);
  const key = has(schema, "const") ? "const" : "enum";
  const path = `${field}.${key}`;
  const given = key === "const" ? [schema.const] : array(path, schema.enum, Infinity);
  if (given.length === 0) throw wrong(path, "no values", "at least one");
  spend(walk, "values", given.length, path);
  const seen = [];
  given.forEach((value, index) => {
    const at = key === "enum" ? `${path}[${index}]` : path;
    if (!isPlain(value)) throw wrong(at, typeof value, "a plain value");
    if (typeof value === "string") short(at, value, TEXT_BYTES);
    if (Number.isInteger(value) && Math.abs(value) > WHOLE && Math.abs(value) < 1e21) {
      throw wrong(at, value, "a whole number from -2^53 to 2^53");
    }
    const fits = !types || types.some((type) => isOf(type, value));
    if (!fits || seen.includes(value)) throw wrong(at, value, "each once, and of the type");
    spend(walk, "bytes", typeof value === "string" ? size(value) : WORDS_BYTES, at);
    seen.push(value);
  });
  if (isNullable(field, schema) && !seen.includes(null)) seen.push(null);
  return { enum: seen };
}

function isPlain(value) {
  return value === null || ["string", "boolean"].includes(typeof value) || Number.isFinite(value);
}

function isOf(type, value) {
  if (type === "integer") return Number.isInteger(value);
  return type === "null" ? value === null : typeof value === type;
}

function typed(walk, field, schema, types, depth) {
  const form = types.length === 0 ? {} : { type: types.length === 1 ? types[0] : types };
  bounds(field, schema, types, form);
  counts(field, schema, form);
  if (types.includes("object")) members(walk, field, schema, depth, form);
  if (has(schema, "items")) form.items = node(walk, `${field}.items`, schema.items, depth + 1);
  if (has(schema, "prefixItems")) {
    const path = `${field}.prefixItems`;
    form.prefixItems = array(path, schema.prefixItems, BRANCHES).map((item, index) => {
      return node(walk, `${path}[${index}]`, item, depth + 1);
    });
  }
  return form;
}

function members(walk, field, schema, depth, form) {
  const named = has(schema, "properties");
  // A member may be called __proto__.
  const properties = Object.create(null);
  if (named) {
    const path = `${field}.properties`;
    for (const [name, member] of Object.entries(object(path, schema.properties))) {
      short(`${path}.${name}`, name, TEXT_BYTES);
      spend(walk, "bytes", 2 * size(name), `${path}.${name}`);
      properties[name] = node(walk, `${path}.${name}`, member, depth + 1);
    }
  }
  const required = has(schema, "required") ? array(`${field}.required`, schema.required, Infinity) : [];
  required.forEach((name, index) => {
    const isName = typeof name === "string" && has(properties, name);
    if (!isName || required.indexOf(name) !== index) {
      throw wrong(`${field}.required[${index}]`, name, "a name of properties, each once");
    }
  });
  walk.left.optional -= Object.keys(properties).length - required.length;
  if (walk.left.optional < 0) {
    const expected = `at most ${OPTIONAL} in a schema that are not in required`;
    throw wrong(`${field}.properties`, "more members that may be left out", expected);
  }
  if (named) Object.assign(form, { properties, required });
  if (has(schema, "additionalProperties")) {
    const others = schema.additionalProperties;
    const path = `${field}.additionalProperties`;
    form.additionalProperties =
      typeof others === "boolean" ? others : node(walk, path, others, depth + 1);
  } else if (named) form.additionalProperties = false;
}

function counts(field, schema, form) {
  for (const [low, high] of [["minItems", "maxItems"], ["minLength", "maxLength"]]) {
    for (const key of [low, high]) {
      if (!has(schema, key)) continue;
      const count = schema[key];
      if (!Number.isInteger(count) || count < 0 || count > COUNT) {
        throw wrong(`${field}.${key}`, count, `a whole number from 0 to ${COUNT}`);
      }
      form[key] = count;
    }
    if (form[low] > form[high]) throw wrong(`${field}.${low}`, form[low], `at most ${form[high]}`);
  }
}

/** The bounds of numbers; some number must lie within them. */
function bounds(field, schema, types, form) {
  const scaled = NUMBERS.map((key) => {
    if (!has(schema, key)) return undefined;
    const found = typeof schema[key] === "number" && /^(-?)(\d{1,16})(?:\.(\d{1,8}))?$/.exec(schema[key]);
    const expected = "a number of at most 16 digits before and 8 behind the point";
    if (!found) throw wrong(`${field}.${key}`, schema[key], expected);
    form[key] = schema[key];
    const all = BigInt(found[2] + (found[3] ?? "").padEnd(FRACTION, "0"));
    return found[1] ? -all : all;
  });
  const step = types.includes("integer") && !types.includes("number") ? UNIT : 1n;
  const down = (bound) => (bound - (((bound % step) + step) % step)) / step;
  const up = (bound) => -down(-bound);
  const [min, max, above, below] = scaled;
  const least = [min !== undefined && up(min), above !== undefined && down(above) + 1n];
  const most = [max !== undefined && down(max), below !== undefined && up(below) - 1n];
  const isEmpty = least.some((low) => most.some((high) => low !== false && high !== false && low > high));
  if (!isEmpty) return;
  const key = min === undefined ? "exclusiveMinimum" : "minimum";
  throw wrong(`${field}.${key}`, schema[key], "bounds with a number between them");
}

/** @internal */
export function object(field, value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw wrong(field, Array.isArray(value) ? "an array" : value, "an object");
  }
  return value;
}

/** @internal */
export function array(field, value, most) {
  if (!Array.isArray(value)) throw wrong(field, typeof value, "an array");
  if (value.length > most) throw wrong(field, value.length, `at most ${most} entries`);
  return value;
}

/** @internal */
export function string(field, value) {
  if (typeof value !== "string" || /\p{Surrogate}/u.test(value)) {
    throw wrong(field, value, "a string of whole characters");
  }
  return value;
}

/** @internal */
export function short(field, value, most) {
  if (size(string(field, value)) > most) throw wrong(field, size(value), `at most ${most} bytes`);
}
