// The agent methods for those who ask: envelopes, answers, and going on after calls of the
// requester's own functions. docs/agent-methods.md has the rules; what a miner would refuse is
// refused here, before it costs anything.

import { AbiFunction, decodeCall } from "./abi.js";
import { checkCalls, checkMessages, withResults, writeMessages } from "./agent-messages.js";
import { utf8, wrong } from "./bytes.js";
import { exactNumbers } from "./exact-numbers.js";

/** Bytes of an AGENT_REQUEST's prompt; a longer envelope goes into a blob. */
const PROMPT_BYTES_MAX = 16384;
const ENVELOPE_BYTES_MAX = 4194304;
const LIMITS = { values: 256, servers: 16, functions: 64, messages: 1024, iterations: 200 };
/** The most bytes of all allowed values together. */
const VALUES_BYTES = 8192;
const INTEGER_MIN = -(2n ** 255n);
const INTEGER_MAX = 2n ** 255n - 1n;
/** Room for the key `deterministic`, so that asking for it cannot make a request too long. */
const ROOM = '"deterministic":true,'.length;
/** White space as the miner takes it from the ends of outputs. */
const BLANK = "[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const BLANK_AT_AN_END = new RegExp(`^${BLANK}|${BLANK}$`);

/** The arguments of each method in their order. */
const ARGUMENTS = {
  inferString: ["prompt", "system", "chainOfThought", "allowedValues"],
  inferNumber: ["prompt", "system", "minValue", "maxValue", "chainOfThought"],
  inferChat: ["roles", "messages", "chainOfThought"],
  inferToolsChat: [
    "roles",
    "messages",
    "mcpServerUrls",
    "onchainTools",
    "maxIterations",
    "chainOfThought",
  ],
};
/** Those of `inferMessages` are checked apart. */
const METHODS = [...Object.keys(ARGUMENTS), "inferMessages"];
const PLAIN = ["ombraAgent", "method", "finishReason", "response"];
const LISTS = ["updatedRoles", "updatedMessages", "pendingToolCallIds", "pendingToolCalls"];

/**
 * A request that keeps every rule.
 * @typedef {{method: string, deterministic: boolean, args: Record<string, any>}} Request
 */
/** A message of a conversation. @typedef {{role: string, content: string}} Message */
/**
 * A call that the requester is to execute, decoded; `calldata` only from `inferToolsChat`.
 * @typedef {{id: string, name: string, arguments: Record<string, any>, calldata?: string}} Call
 */
/**
 * What a miner answered; `roles`, `messages` and `calls` are empty but for `tool_calls`.
 * @typedef {{method: string, finishReason: string, response: string, roles: string[],
 *   messages: string[], calls: Call[]}} Answer
 */

// ---- requests -----------------------------------------------------------------------------------

/**
 * A text; with `allowedValues` exactly one of them.
 * @param {{prompt: string, system?: string, chainOfThought?: boolean, allowedValues?: string[],
 *   deterministic?: boolean}} wanted
 * @returns {Request}
 */
export function inferString({ deterministic, ...wanted }) {
  const args = { system: "", chainOfThought: false, allowedValues: [], ...wanted };
  return request("inferString", args, deterministic);
}

/**
 * A whole number. A bound that is not given is that of 256 bits.
 * @param {{prompt: string, system?: string, minValue?: string | bigint,
 *   maxValue?: string | bigint, chainOfThought?: boolean, deterministic?: boolean}} wanted
 * @returns {Request}
 */
export function inferNumber({ deterministic, minValue, maxValue, ...wanted }) {
  const isBounded = minValue !== undefined || maxValue !== undefined;
  const bounds = {
    minValue: isBounded ? (minValue ?? INTEGER_MIN) : "0",
    maxValue: isBounded ? (maxValue ?? INTEGER_MAX) : "0",
  };
  const args = { system: "", chainOfThought: false, ...bounds, ...wanted };
  return request("inferNumber", args, deterministic);
}

/**
 * The next message of a conversation.
 * @param {{messages: Message[], chainOfThought?: boolean, deterministic?: boolean}} wanted
 * @returns {Request}
 */
export function inferChat({ deterministic, messages, ...wanted }) {
  const args = { chainOfThought: false, ...wanted, ...lists(messages) };
  return request("inferChat", args, deterministic);
}

/**
 * The next message of a conversation, with tools.
 * @param {{messages: Message[], onchainTools?: {signature: string, description: string}[],
 *   mcpServerUrls?: string[], maxIterations?: number, chainOfThought?: boolean,
 *   deterministic?: boolean}} wanted
 * @returns {Request}
 */
export function inferToolsChat({ deterministic, messages, ...wanted }) {
  const defaults = { onchainTools: [], mcpServerUrls: [], maxIterations: 8, chainOfThought: false };
  return request("inferToolsChat", { ...defaults, ...wanted, ...lists(messages) }, deterministic);
}

/**
 * The next message of a conversation, with functions and schemas as chat programs have them.
 * @param {{messages: Record<string, any>[],
 *   functions?: import("./agent-messages.js").DeclaredFunction[],
 *   toolChoice?: "auto" | "none" | "required" | {name: string},
 *   responseSchema?: {name?: string, schema: Record<string, any>}, maxOutputTokens?: number,
 *   stop?: string[], deterministic?: boolean}} wanted
 * @returns {Request}
 */
export function inferMessages({ deterministic, ...wanted }) {
  return request("inferMessages", { functions: [], toolChoice: "auto", ...wanted }, deterministic);
}

function lists(messages) {
  return {
    roles: messages.map(({ role }) => role),
    messages: messages.map(({ content }) => content),
  };
}

/**
 * A request for a method with exactly its arguments, as they stand in an envelope.
 * @param {string} method
 * @param {Record<string, any>} args
 * @param {boolean} [deterministic] whether the answer must be reproducible
 * @returns {Request}
 */
export function request(method, args, deterministic = false) {
  one("method", method, METHODS);
  const checked = method === "inferMessages" ? checkMessages(args) : checkArguments(method, args);
  if (method === "inferNumber" && BigInt(checked.minValue) > BigInt(checked.maxValue)) {
    throw wrong("args.minValue", checked.minValue, `at most maxValue, ${checked.maxValue}`);
  }
  if (checked.roles) {
    const waiting = openCalls("args.roles", "args.messages", checked, method === "inferToolsChat");
    if (waiting.length > 0) {
      const ids = waiting.map(({ id }) => id).join(", ");
      throw wrong("args.messages", "an end", `a result for ${ids} before it`);
    }
  }
  const made = { method, deterministic: boolean("deterministic", deterministic), args: checked };
  const bytes = utf8(envelope(made)).length + (deterministic ? 0 : ROOM);
  if (bytes > ENVELOPE_BYTES_MAX) throw wrong("args", bytes, `at most ${ENVELOPE_BYTES_MAX} bytes`);
  return made;
}

function checkArguments(method, args) {
  members("args", args, ARGUMENTS[method]);
  const checked = {};
  for (const name of ARGUMENTS[method]) checked[name] = CHECKS[name](`args.${name}`, args[name]);
  return checked;
}

/**
 * The prompt of the AGENT_REQUEST, and the content of its `promptBlobId` if the envelope is too
 * long for a transaction.
 * @param {Request} made
 * @returns {{prompt: string, blob?: string}}
 */
export function writeRequest(made) {
  const whole = envelope(made);
  if (utf8(whole).length <= PROMPT_BYTES_MAX) return { prompt: whole };
  const prompt = JSON.stringify({ ombraAgent: 1, method: made.method, blob: true });
  return { prompt, blob: whole };
}

/**
 * The request of an envelope that this or another program wrote.
 * @param {string} text
 * @returns {Request}
 */
export function readRequest(text) {
  const read = parse("prompt", text);
  one("ombraAgent", read?.ombraAgent, [1]);
  const { ombraAgent, method, args, deterministic = false, ...others } = read;
  members("", others, []);
  const made = request(method, args, deterministic);
  if (method === "inferMessages") exactNumbers("args", text);
  return made;
}

function envelope({ method, deterministic, args }) {
  const head = { ombraAgent: 1, method };
  if (deterministic) head.deterministic = true;
  const written = method === "inferMessages" ? writeMessages(args) : JSON.stringify(args);
  return `${JSON.stringify(head).slice(0, -1)},"args":${written}}`;
}

// ---- answers ------------------------------------------------------------------------------------

/**
 * The answer to the request `asked`. Each call of `inferToolsChat` is compared with what the model said in the
 * conversation, so that a miner cannot slip in a call that the model did not make.
 * @param {string} text the run's final answer
 * @param {Request} asked
 * @returns {Answer}
 */
export function readAnswer(text, asked) {
  short("finalAnswer", text, ENVELOPE_BYTES_MAX);
  const read = parse("finalAnswer", text);
  if (read?.method === "inferMessages") {
    const answer = readMessagesAnswer(read, asked);
    exactNumbers("toolCalls", text);
    return answer;
  }
  const hasLists = read?.method === "inferToolsChat";
  members("", read, hasLists ? [...PLAIN, ...LISTS] : PLAIN);
  const { method, finishReason, response } = read;
  one("ombraAgent", read.ombraAgent, [1]);
  one("method", method, [...METHODS, ""]);
  const more = hasLists ? ["tool_calls", "max_iterations"] : [];
  one("finishReason", finishReason, ["stop", "error", ...more]);
  string("response", response);
  // A miner that did not understand the request names no method.
  if (finishReason !== "error") one("method", method, [asked.method]);
  const [roles, messages, ids, calldata] = LISTS.map((name) => {
    return hasLists ? strings(name, read[name]) : [];
  });
  const answer = { method, finishReason, response, roles, messages };
  if (finishReason === "tool_calls") {
    return { ...answer, calls: pending(asked, answer, ids, calldata) };
  }
  if (roles.length + messages.length + ids.length + calldata.length > 0) {
    throw wrong("updatedMessages", messages.length, `none with ${finishReason}`);
  }
  return { ...answer, calls: [] };
}

function readMessagesAnswer(read, asked) {
  members("", read, [...PLAIN, "toolCalls"]);
  const { ombraAgent, method, finishReason, response, toolCalls } = read;
  one("ombraAgent", ombraAgent, [1]);
  one("finishReason", finishReason, ["stop", "tool_calls", "length", "error"]);
  string("response", response);
  if (finishReason !== "error") one("method", method, [asked.method]);
  const isCalling = finishReason === "tool_calls";
  if (array("toolCalls", toolCalls).length > 0 !== isCalling) {
    throw wrong("toolCalls", toolCalls.length, `calls with tool_calls only, not ${finishReason}`);
  }
  const calls = isCalling ? checkCalls("toolCalls", toolCalls, asked.args) : [];
  return { method, finishReason, response, roles: [], messages: [], calls };
}

function pending(asked, answer, ids, calldata) {
  const [rolesField, field] = LISTS;
  const waiting = answer.messages.length > 0 ? openCalls(rolesField, field, answer, true) : [];
  const wanted = waiting.map(({ id }) => id);
  if (ids.length === 0 || `${wanted.map(quote)}` !== `${ids.map(quote)}`) {
    throw wrong("pendingToolCallIds", `${ids}`, `the calls that wait: ${wanted}`);
  }
  if (calldata.length !== ids.length) {
    throw wrong("pendingToolCalls", calldata.length, `${ids.length} entries`);
  }
  beginsAs(asked.args, answer);
  const functions = declare("args.onchainTools", asked.args.onchainTools);
  return waiting.map(({ id, name, arguments: args }, index) => {
    const path = `pendingToolCalls[${index}]`;
    const called = functions.find((one) => one.name === name);
    if (!called) throw wrong(path, name, "a call of a declared function");
    const encoded = called.encode(args);
    const given = calldata[index].toLowerCase();
    if (encoded !== given) throw wrong(path, given, `${encoded}, the call of ${name}`);
    return { id, ...decodeCall(functions, encoded), calldata: given };
  });
}

/** What goes on is signed by the requester, so a miner must not change what the requester said. */
function beginsAs({ roles, messages }, answer) {
  const changed = roles.findIndex((role, index) => {
    const same = role === answer.roles[index] && sameText(messages[index], answer.messages[index]);
    return !same;
  });
  if (changed === -1) return;
  const path = `updatedMessages[${changed}]`;
  throw wrong(path, answer.messages[changed], "first the messages of the request, as they were");
}

/** Whether two messages say the same; those with calls and results are JSON, in any form. */
function sameText(one, other) {
  if (one === other) return true;
  try {
    return JSON.stringify(sorted(JSON.parse(one))) === JSON.stringify(sorted(JSON.parse(other)));
  } catch {
    return false;
  }
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

/**
 * The request that goes on after an answer with calls.
 * @param {Request} asked
 * @param {Answer} answer
 * @param {Record<string, string>} results a text for each call, by its id
 * @returns {Request}
 */
export function resume(asked, answer, results) {
  const ids = answer.calls.map(({ id }) => id);
  if (ids.length === 0) throw wrong("answer", answer.finishReason, "tool_calls");
  members("results", results, ids);
  if (asked.method === "inferMessages") {
    return request(asked.method, withResults(asked.args, answer, results), asked.deterministic);
  }
  const told = ids.map((id) => toolResult(id, results[id]));
  const roles = [...answer.roles, ...told.map(() => "tool")];
  const args = { ...asked.args, roles, messages: [...answer.messages, ...told] };
  return request(asked.method, args, asked.deterministic);
}

/**
 * The text of a message of role `tool`.
 * @param {string} id
 * @param {string} content
 * @returns {string}
 */
export function toolResult(id, content) {
  return JSON.stringify({ tool_call_id: callId("id", id), content: string("content", content) });
}

// ---- arguments ----------------------------------------------------------------------------------

const quote = (text) => JSON.stringify(text);
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function parse(field, text) {
  try {
    return JSON.parse(text);
  } catch {
    throw wrong(field, text, "JSON");
  }
}

/** An object with exactly these members. */
function members(path, value, names) {
  if (!isObject(value)) throw wrong(path, value, "an object");
  const prefix = path === "" ? "" : `${path}.`;
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) throw wrong(`${prefix}${unknown}`, "a key", "no such key");
  const missing = names.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) throw wrong(`${prefix}${missing}`, undefined, "a value");
}

function one(field, value, known) {
  if (!known.includes(value)) throw wrong(field, value, `one of ${known.join(", ")}`);
}

function string(field, value) {
  if (typeof value !== "string" || /\p{Surrogate}/u.test(value)) {
    throw wrong(field, value, "a string of whole characters");
  }
  return value;
}

function short(field, value, most) {
  const bytes = utf8(string(field, value)).length;
  if (bytes > most) throw wrong(field, bytes, `at most ${most} bytes`);
  return value;
}

function boolean(field, value) {
  if (typeof value !== "boolean") throw wrong(field, value, "true or false");
  return value;
}

function array(field, value, most) {
  if (!Array.isArray(value)) throw wrong(field, value, "an array");
  if (value.length > most) throw wrong(field, value.length, `at most ${most} entries`);
  return value;
}

function strings(field, value, most = Infinity) {
  return array(field, value, most).map((text, index) => string(`${field}[${index}]`, text));
}

function once(field, values) {
  const twin = values.findIndex((value, index) => values.indexOf(value) !== index);
  if (twin >= 0) throw wrong(`${field}[${twin}]`, values[twin], "every value once");
  return values;
}

function integer(field, value) {
  const text = typeof value === "bigint" ? `${value}` : value;
  const number =
    typeof text === "string" && /^-?[0-9]{1,1024}$/.test(text) ? BigInt(text) : INTEGER_MAX + 1n;
  if (number < INTEGER_MIN || number > INTEGER_MAX) {
    throw wrong(field, value, "a decimal string ^-?[0-9]+$ from -2^255 to 2^255-1");
  }
  return `${number}`;
}

function allowedValues(field, values) {
  strings(field, values, LIMITS.values).forEach((value, index) => {
    short(`${field}[${index}]`, value, 1024);
    if (value === "" || BLANK_AT_AN_END.test(value)) {
      throw wrong(`${field}[${index}]`, value, "some text without white space at its ends");
    }
  });
  const bytes = values.reduce((sum, value) => sum + utf8(value).length, 0);
  if (bytes > VALUES_BYTES) {
    throw wrong(field, bytes, `at most ${VALUES_BYTES} bytes in all values together`);
  }
  return once(field, [...values]);
}

function servers(field, urls) {
  strings(field, urls, LIMITS.servers).forEach((url, index) => {
    short(`${field}[${index}]`, url, 2048);
    if (!/^https?:\/\//.test(url)) {
      throw wrong(`${field}[${index}]`, url, "an address that begins with https:// or http://");
    }
  });
  return once(field, [...urls]);
}

function tools(field, declarations) {
  const checked = array(field, declarations, LIMITS.functions).map((declaration, index) => {
    const path = `${field}[${index}]`;
    members(path, declaration, ["signature", "description"]);
    const { signature, description } = declaration;
    return {
      signature: string(`${path}.signature`, signature),
      description: short(`${path}.description`, description, 4096),
    };
  });
  declare(field, checked);
  return checked;
}

/** The functions of declarations; each name and each selector once. */
function declare(field, declarations) {
  const functions = [];
  declarations.forEach(({ signature }, index) => {
    const path = `${field}[${index}].signature`;
    const made = new AbiFunction(signature, path);
    const twin = functions.find((other) => {
      return other.name === made.name || other.selector === made.selector;
    });
    if (twin) throw wrong(path, signature, `another name and selector than ${twin.signature}`);
    functions.push(made);
  });
  return functions;
}

function iterations(field, value) {
  if (!Number.isInteger(value) || value < 1 || value > LIMITS.iterations) {
    throw wrong(field, value, `an integer from 1 to ${LIMITS.iterations}`);
  }
  return value;
}

const CHECKS = {
  prompt: string,
  system: string,
  chainOfThought: boolean,
  allowedValues,
  minValue: integer,
  maxValue: integer,
  roles: strings,
  messages: strings,
  mcpServerUrls: servers,
  onchainTools: tools,
  maxIterations: iterations,
};

// ---- conversations ------------------------------------------------------------------------------

/** The calls that wait for a result at the end of a conversation. */
function openCalls(rolesField, field, { roles, messages }, withTools) {
  if (roles.length !== messages.length) {
    throw wrong(field, messages.length, `${roles.length} entries`);
  }
  if (messages.length === 0) throw wrong(field, "no messages", "at least one");
  array(field, messages, LIMITS.messages);
  const known = ["system", "user", "assistant", ...(withTools ? ["tool"] : [])];
  const seen = new Set();
  let waiting = [];
  messages.forEach((text, index) => {
    const [role, place] = [roles[index], `${field}[${index}]`];
    one(`${rolesField}[${index}]`, role, known);
    if (role === "tool") {
      const answered = resultOf(place, text);
      if (!waiting.some(({ id }) => id === answered)) {
        throw wrong(place, answered, "a result for a call that waits");
      }
      waiting = waiting.filter(({ id }) => id !== answered);
      return;
    }
    if (waiting.length > 0) throw wrong(place, role, `a result for ${waiting[0].id}`);
    if (!withTools || role !== "assistant") return;
    for (const call of callsOf(place, text)) {
      if (seen.has(call.id)) throw wrong(place, call.id, "ids that are all different");
      seen.add(call.id);
      waiting.push(call);
    }
  });
  return waiting;
}

/** The call that a message of role `tool` answers. */
function resultOf(place, text) {
  const read = parse(place, text);
  members(place, read, ["tool_call_id", "content"]);
  string(`${place}.content`, read.content);
  return callId(`${place}.tool_call_id`, read.tool_call_id);
}

/** The calls in a message of role `assistant`; none in plain text. */
function callsOf(place, text) {
  let read;
  try {
    read = JSON.parse(text);
  } catch {
    return [];
  }
  if (!isObject(read) || !Object.hasOwn(read, "tool_calls")) return [];
  members(place, read, ["content", "tool_calls"]);
  string(`${place}.content`, read.content);
  array(`${place}.tool_calls`, read.tool_calls, Infinity).forEach((call, index) => {
    const path = `${place}.tool_calls[${index}]`;
    members(path, call, ["id", "name", "arguments"]);
    callId(`${path}.id`, call.id);
    string(`${path}.name`, call.name);
    if (!isObject(call.arguments)) throw wrong(`${path}.arguments`, call.arguments, "an object");
  });
  return read.tool_calls;
}

function callId(field, value) {
  if (string(field, value) === "") throw wrong(field, value, "1 to 128 bytes");
  return short(field, value, 128);
}
