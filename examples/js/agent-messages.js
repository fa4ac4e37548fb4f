// The arguments and answers of `inferMessages`, checked as a miner checks them.
// docs/agent-methods.md sections 3 and 13 have the rules.

import { array, checkSchema, object, schemaBudget, short, string } from "./agent-schema.js";
import { wrong } from "./bytes.js";

/** Levels of a call's arguments: a miner reads 160 of an envelope, and these begin on the seventh. */
const DEPTH = 154;
const LIMITS = { messages: 1024, functions: 128, stops: 4, tokens: 100000000 };
const ROLES = {
  system: [],
  user: [],
  assistant: ["toolCalls"],
  tool: ["toolCallId"],
};
const CHOICES = ["auto", "none", "required"];
const OPTIONAL = ["responseSchema", "maxOutputTokens", "stop"];
const NEEDED = ["messages", "functions", "toolChoice"];

/**
 * A function that the requester runs.
 * @typedef {{name: string, description: string, parameters: Record<string, any>}} DeclaredFunction
 */
/**
 * A call of one of them.
 * @typedef {{id: string, name: string, arguments: Record<string, any>}} MessageCall
 */

/** The arguments in their order, or the first fault of them. */
export function checkMessages(args) {
  exactly("args", args, [...NEEDED, ...OPTIONAL], NEEDED);
  const budget = schemaBudget();
  const checked = {
    messages: conversation("args.messages", args.messages),
    functions: functions("args.functions", args.functions, budget),
  };
  checked.toolChoice = choice("args.toolChoice", args.toolChoice, checked.functions);
  const isForced = !["auto", "none"].includes(args.toolChoice);
  if (Object.hasOwn(args, "responseSchema")) {
    checked.responseSchema = responseSchema("args.responseSchema", args.responseSchema, budget);
    if (isForced) {
      throw wrong("args.responseSchema", "a schema", "none where calls are forced by toolChoice");
    }
  }
  if (Object.hasOwn(args, "maxOutputTokens")) {
    const tokens = args.maxOutputTokens;
    if (!Number.isInteger(tokens) || tokens < 1 || tokens > LIMITS.tokens) {
      throw wrong("args.maxOutputTokens", tokens, `an integer from 1 to ${LIMITS.tokens}`);
    }
    checked.maxOutputTokens = tokens;
  }
  const stop = Object.hasOwn(args, "stop") ? stops("args.stop", args.stop) : [];
  if (stop.length > 0 && checked.responseSchema) {
    throw wrong("args.stop", stop.length, "none beside responseSchema, whose JSON would be cut");
  }
  if (stop.length > 0) checked.stop = stop;
  return checked;
}

/**
 * The calls of an answer with `tool_calls`: of functions that the request declares and allows to call.
 * Whether their arguments fit the functions' schemas is not looked at.
 */
export function checkCalls(field, calls, { messages, functions: declared, toolChoice }) {
  const earlier = messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id));
  return toolCalls(field, calls).map((call, index) => {
    const path = `${field}[${index}]`;
    if (earlier.includes(call.id)) throw wrong(`${path}.id`, call.id, "an id that is new");
    earlier.push(call.id);
    const isAllowed = toolChoice !== "none" && (toolChoice.name ?? call.name) === call.name;
    if (!isAllowed || !declared.some(({ name }) => name === call.name)) {
      throw wrong(`${path}.name`, call.name, "a function that toolChoice allows to call");
    }
    return call;
  });
}

/** The arguments that go on after calls, which are not forced again: `results` has a text for each, by its id. */
export function withResults(args, { response, calls }, results) {
  const told = calls.map(({ id }) => {
    return { role: "tool", content: string(`results.${id}`, results[id]), toolCallId: id };
  });
  const said = { role: "assistant", content: response, toolCalls: calls };
  const toolChoice = args.toolChoice === "none" ? "none" : "auto";
  return { ...args, messages: [...args.messages, said, ...told], toolChoice };
}

function exactly(path, value, known, needed = known) {
  object(path, value);
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) throw wrong(`${path}.${unknown}`, "a key", "no such key");
  const missing = needed.find((key) => !Object.hasOwn(value, key));
  if (missing !== undefined) throw wrong(`${path}.${missing}`, undefined, "a value");
  return value;
}

function conversation(field, given) {
  const messages = array(field, given, LIMITS.messages).map((item, index) => {
    return message(`${field}[${index}]`, item);
  });
  if (messages.length === 0) throw wrong(field, "no messages", "at least one");
  const seen = new Set();
  let waiting = [];
  messages.forEach(({ role, toolCallId, toolCalls: calls = [] }, index) => {
    const path = `${field}[${index}]`;
    if (role === "tool") {
      if (!waiting.includes(toolCallId)) throw wrong(path, toolCallId, "a result for a call that waits");
      waiting = waiting.filter((id) => id !== toolCallId);
      return;
    }
    if (waiting.length > 0) throw wrong(path, role, `a result for ${waiting[0]}`);
    for (const { id } of calls) {
      if (seen.has(id)) throw wrong(path, id, "ids that are all different");
      seen.add(id);
      waiting.push(id);
    }
  });
  if (waiting.length > 0) throw wrong(field, "an end", `a result for ${waiting.join(", ")} before it`);
  return messages;
}

function message(path, item) {
  object(path, item);
  const { role } = item;
  if (typeof role !== "string" || !Object.hasOwn(ROLES, role)) {
    throw wrong(`${path}.role`, role, `one of ${Object.keys(ROLES).join(", ")}`);
  }
  const needed = ["role", "content", ...(role === "tool" ? ["toolCallId"] : [])];
  exactly(path, item, ["role", "content", ...ROLES[role]], needed);
  const checked = { role, content: string(`${path}.content`, item.content) };
  if (role === "tool") checked.toolCallId = callId(`${path}.toolCallId`, item.toolCallId);
  if (Object.hasOwn(item, "toolCalls")) {
    const calls = toolCalls(`${path}.toolCalls`, item.toolCalls);
    if (calls.length > 0) checked.toolCalls = calls;
  }
  return checked;
}

function toolCalls(field, calls) {
  return array(field, calls, Infinity).map((call, index) => {
    const path = `${field}[${index}]`;
    exactly(path, call, ["id", "name", "arguments"]);
    name(`${path}.name`, call.name);
    const args = jsonValue(`${path}.arguments`, object(`${path}.arguments`, call.arguments));
    return { id: callId(`${path}.id`, call.id), name: call.name, arguments: args };
  });
}

/** A copy of arguments, in which everything is as JSON will have it. */
function jsonValue(field, value, depth = 1) {
  if (typeof value === "string") return string(field, value);
  if (value === null || typeof value === "boolean" || Number.isFinite(value)) return value;
  if (typeof value !== "object") throw wrong(field, value, "a value of JSON");
  if (depth > DEPTH) throw wrong(field, "one more level", `at most ${DEPTH} levels`);
  const inner = (path, item) => jsonValue(path, item, depth + 1);
  if (Array.isArray(value)) return value.map((item, at) => inner(`${field}[${at}]`, item));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      return [string(`${field}.${key}`, key), inner(`${field}.${key}`, item)];
    }),
  );
}

/**
 * Checked arguments as they stand in an envelope. Every program writes the keys of a call's arguments by
 * their bytes; `JSON.stringify` would write a key such as "10" first, as objects of JavaScript have it.
 */
export function writeMessages({ messages, ...others }) {
  const whole = messages.map(({ toolCalls: calls, ...message }) => {
    const head = JSON.stringify(message);
    return calls ? `${head.slice(0, -1)},"toolCalls":[${calls.map(writeCall)}]}` : head;
  });
  return `{"messages":[${whole}],${JSON.stringify(others).slice(1)}`;
}

function writeCall({ arguments: args, ...call }) {
  return `${JSON.stringify(call).slice(0, -1)},"arguments":${writeInOrder(args)}}`;
}

function writeInOrder(value) {
  if (Array.isArray(value)) return `[${value.map(writeInOrder)}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).sort(byBytes);
  return `{${keys.map((key) => `${JSON.stringify(key)}:${writeInOrder(value[key])}`)}}`;
}

/** The order of two texts by the bytes of their UTF-8, which is that of their code points. */
function byBytes(one, other) {
  const [ours, theirs] = [one, other].map((text) => Array.from(text, (letter) => letter.codePointAt(0)));
  const at = ours.findIndex((point, index) => point !== theirs[index]);
  if (at === -1) return ours.length - theirs.length;
  return at < theirs.length ? ours[at] - theirs[at] : 1;
}

function functions(field, given, budget) {
  const checked = array(field, given, LIMITS.functions).map((item, index) => {
    const path = `${field}[${index}]`;
    exactly(path, item, ["name", "description", "parameters"]);
    const { description, parameters } = item;
    short(`${path}.description`, description, 4096);
    checkSchema(`${path}.parameters`, parameters, budget);
    return { name: name(`${path}.name`, item.name), description, parameters };
  });
  const names = checked.map((one) => one.name);
  const twin = names.findIndex((one, index) => names.indexOf(one) !== index);
  if (twin >= 0) throw wrong(`${field}[${twin}].name`, names[twin], "functions of different names");
  return checked;
}

function choice(field, given, declared) {
  if (CHOICES.includes(given)) {
    if (given === "required" && declared.length === 0) {
      throw wrong(field, given, "functions that can be called");
    }
    return given;
  }
  const expected = "\"auto\", \"none\", \"required\" or {\"name\":…}";
  if (given === null || typeof given !== "object") throw wrong(field, given, expected);
  exactly(field, given, ["name"]);
  if (!declared.some((one) => one.name === given.name)) {
    throw wrong(`${field}.name`, given.name, "the name of a function");
  }
  return { name: given.name };
}

function responseSchema(field, given, budget) {
  exactly(field, given, ["name", "schema"], ["schema"]);
  checkSchema(`${field}.schema`, given.schema, budget);
  if (!Object.hasOwn(given, "name")) return { schema: given.schema };
  return { name: name(`${field}.name`, given.name), schema: given.schema };
}

function stops(field, given) {
  array(field, given, LIMITS.stops).forEach((text, index) => {
    short(`${field}[${index}]`, text, 256);
    if (text === "" || given.indexOf(text) !== index) {
      throw wrong(`${field}[${index}]`, text, "some text, each once");
    }
  });
  return [...given];
}

function name(field, text) {
  if (typeof text === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(text)) return text;
  throw wrong(field, text, "1 to 64 of [A-Za-z0-9_-]");
}

function callId(field, id) {
  if (string(field, id) === "") throw wrong(field, id, "1 to 128 bytes");
  short(field, id, 128);
  return id;
}
