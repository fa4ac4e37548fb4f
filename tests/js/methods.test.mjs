// The agent methods: what Rust, JavaScript and Python agree on, byte for byte.

import assert from "node:assert/strict";
import { test } from "node:test";

import { AbiFunction, decodeCall } from "../../examples/js/abi.js";
import * as methods from "../../examples/js/agent-methods.js";
import { checkSchema } from "../../examples/js/agent-schema.js";
import { FieldError } from "../../examples/js/ombra.js";
import { METHODS } from "./support/repository.mjs";

const { inferString, readAnswer, readRequest, resume, writeRequest } = methods;
const asked = (name) => readRequest(METHODS.requests.find((one) => one.name === name).prompt);

/** The same object with its keys in another order, but for schemas, which are written as they are. */
function turned(value) {
  if (Array.isArray(value)) return value.map(turned);
  if (value === null || typeof value !== "object") return value;
  const isSchema = (key) => key === "parameters" || key === "schema";
  const members = Object.entries(value).reverse();
  return Object.fromEntries(members.map(([key, own]) => [key, isSchema(key) ? own : turned(own)]));
}

test("envelopes are written byte for byte, whatever the order of the arguments", () => {
  assert.ok(METHODS.requests.length >= 8);
  for (const { name, prompt } of METHODS.requests) {
    const { method, args, deterministic } = turned(JSON.parse(prompt));
    const made = methods.request(method, args, deterministic);
    assert.deepEqual(writeRequest(made), { prompt }, name);
  }
});

test("the builders fill in what is not said", () => {
  const written = (made) => JSON.parse(writeRequest(made).prompt).args;
  assert.deepEqual(written(inferString({ prompt: "p" })), {
    prompt: "p",
    system: "",
    chainOfThought: false,
    allowedValues: [],
  });
  assert.equal(written(methods.inferNumber({ prompt: "p" })).maxValue, "0");
  const half = written(methods.inferNumber({ prompt: "p", minValue: 0n }));
  assert.deepEqual([half.minValue, half.maxValue], ["0", `${2n ** 255n - 1n}`]);
  const other = written(methods.inferNumber({ prompt: "p", maxValue: "5" }));
  assert.deepEqual([other.minValue, other.maxValue], [`${-(2n ** 255n)}`, "5"]);
  const messages = [{ role: "user", content: "hi" }];
  const chat = { roles: ["user"], messages: ["hi"], chainOfThought: false };
  assert.deepEqual(written(methods.inferChat({ messages })), chat);
  const tools = { ...chat, mcpServerUrls: [], onchainTools: [], maxIterations: 8 };
  assert.deepEqual(written(methods.inferToolsChat({ messages })), tools);
  const plain = { messages, functions: [], toolChoice: "auto" };
  assert.deepEqual(written(methods.inferMessages({ messages })), plain);
  const bounded = { ...plain, maxOutputTokens: 5, stop: ["x"] };
  assert.deepEqual(written(methods.inferMessages(bounded)), bounded);
});

test("an envelope of more than 16,384 bytes goes into a blob", () => {
  const empty = writeRequest(inferString({ prompt: "" })).prompt.length;
  const of = (bytes) => writeRequest(inferString({ prompt: "x".repeat(bytes - empty) }));
  assert.deepEqual([of(16384).prompt.length, of(16384).blob], [16384, undefined]);
  const { prompt, blob } = of(16385);
  assert.equal(prompt, '{"ombraAgent":1,"method":"inferString","blob":true}');
  assert.equal(blob.length, 16385);
  assert.throws(() => of(4194305 - 21 + 1), FieldError);
});

/** In JavaScript 1.0 is 1 and a key that occurs twice is there once. */
const UNSEEN = [/:1\.0,/, /:1e2,/, /"prompt":"","prompt":""/];

test("what a miner refuses is refused before it is sent", () => {
  for (const { field, got, prompt } of METHODS.malformed) {
    if (UNSEEN.some((pattern) => pattern.test(prompt))) continue;
    // Of several missing arguments, each program names the one that it looks at first.
    const { args = {} } = got === "nothing" || !field.startsWith("args.") ? {} : JSON.parse(prompt);
    const isOfArgument = Object.keys(args).length > 2;
    const check = (error) => {
      assert.ok(error instanceof FieldError, `${prompt}\n${error.stack}`);
      return !isOfArgument || error.field === field || assert.equal(error.field, field, prompt);
    };
    assert.throws(() => readRequest(prompt), check, prompt);
  }
});

test("answers are read, and calls in them decoded", () => {
  for (const { name, text, request, calls = [] } of METHODS.answers) {
    const answer = readAnswer(text, asked(request));
    const decoded = answer.calls.map(({ calldata, ...call }) => call);
    assert.deepEqual(decoded, calls, name);
    assert.equal(answer.response, JSON.parse(text).response);
  }
});

test("an answer that says something else than its conversation is refused", () => {
  for (const { field, text } of METHODS.wrongAnswers) {
    assert.throws(() => readAnswer(text, asked("tools")), { name: "FieldError", field }, text);
  }
  const { text } = METHODS.answers.find(({ request }) => request === "number");
  assert.throws(() => readAnswer(text, asked("string")), { field: "method" });
});

test("an answer with other calls than the request allows is refused", () => {
  for (const { field, text } of METHODS.wrongMessagesAnswers) {
    const read = () => readAnswer(text, asked("messages, forced"));
    assert.throws(read, { name: "FieldError", field }, text);
  }
});

/** A request that can go on with one call, and the answer of a miner that makes this call. */
function calling(written) {
  const parameters = { type: "object", additionalProperties: true };
  const functions = [{ name: "store", description: "", parameters }];
  const made = methods.inferMessages({ messages: [{ role: "user", content: "hi" }], functions });
  const head = '{"ombraAgent":1,"method":"inferMessages","finishReason":"tool_calls","response":""';
  const call = `{"id":"call_0","name":"store","arguments":${written}}`;
  return [made, `${head},"toolCalls":[${call}]}`];
}

test("a number in a call that JavaScript would round is refused", () => {
  for (const number of ["9007199254740992", "-0", "1.0", "0.1", "1e2", "1.5E-7", "5e-324"]) {
    const [made, text] = calling(`{"a":[${number}],"b":"9007199254740993"}`);
    assert.deepEqual(readAnswer(text, made).calls[0].arguments.a, [Number(number)], number);
  }
  const rounded = ["9007199254740993", "-18446744073709551615", "0.12345678901234567891", "1e400"];
  for (const number of [...rounded, "1e-400", `1${"0".repeat(70)}`]) {
    const [made, text] = calling(`{"a":"\\\"","b":${number}}`);
    assert.throws(() => readAnswer(text, made), { name: "FieldError" }, number);
  }
  const [made, text] = calling('{"b":9007199254740993}');
  assert.throws(() => readAnswer(text, made), { name: "FieldError", field: "toolCalls" });
  const { prompt } = writeRequest(resume(...settled(calling('{"b":77}')), { call_0: "" }));
  assert.throws(() => readRequest(prompt.replace("77", "9007199254740993")), { field: "args" });
});

const settled = ([made, text]) => [made, readAnswer(text, made)];

test("the keys of a call's arguments are written by their bytes, whatever they are", () => {
  const written = '{"10":{"":1,"a":2,"aa":3},"9":[{"1":1,"b":0}],"\uffee":3,"😀":4}';
  const turned = '{"😀":4,"\uffee":3,"9":[{"b":0,"1":1}],"10":{"aa":3,"a":2,"":1}}';
  for (const text of [written, turned]) {
    const { prompt } = writeRequest(resume(...settled(calling(text)), { call_0: "done" }));
    assert.ok(prompt.includes(`"name":"store","arguments":${written}}]}`), prompt);
    assert.deepEqual(writeRequest(readRequest(prompt)), { prompt });
  }
});

test("arguments that are nested without end are refused", () => {
  const nested = (levels) => `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;
  settled(calling(nested(153)));
  for (const levels of [154, 1000000]) {
    assert.throws(() => settled(calling(nested(levels))), { name: "FieldError" }, `${levels}`);
  }
});

test("arguments that JSON cannot say are refused", () => {
  for (const value of [undefined, NaN, 1n, () => 1, "\ud800"]) {
    const call = { id: "call_0", name: "store", arguments: { a: [value] } };
    const messages = [
      { role: "assistant", content: "", toolCalls: [call] },
      { role: "tool", content: "", toolCallId: "call_0" },
    ];
    const field = "args.messages[0].toolCalls[0].arguments.a[0]";
    assert.throws(() => methods.inferMessages({ messages }), { name: "FieldError", field });
  }
});

test("schemas are taken and refused as by a miner", () => {
  assert.ok(METHODS.schemas.length >= 8 && METHODS.wrongSchemas.length >= 20);
  for (const schema of METHODS.schemas) checkSchema("s", schema);
  for (const { field, schema } of METHODS.wrongSchemas) {
    const message = JSON.stringify(schema);
    assert.throws(() => checkSchema("s", schema), { name: "FieldError", field }, message);
  }
  const many = (length) => Object.fromEntries(Array.from({ length }, (_, at) => [`p${at}`, {}]));
  checkSchema("s", { properties: many(256) });
  const field = "s.properties";
  assert.throws(() => checkSchema("s", { properties: many(257) }), { name: "FieldError", field });
  const all = many(512);
  const parts = { name: "FieldError", field: "s.properties.p511" };
  assert.throws(() => checkSchema("s", { properties: all, required: Object.keys(all) }), parts);
});

test("names and values of a schema are what JSON says, and not what JavaScript makes of them", () => {
  checkSchema("s", JSON.parse('{"properties":{"__proto__":{}},"required":["__proto__"]}'));
  for (const name of [5, ["5"], null]) {
    const check = () => checkSchema("s", { properties: { 5: {}, null: {} }, required: [name] });
    assert.throws(check, { name: "FieldError", field: "s.required[0]" }, `${name}`);
  }
  for (const value of [undefined, NaN, () => 1, {}]) {
    const check = () => checkSchema("s", { properties: { a: { enum: [value] } } });
    assert.throws(check, { name: "FieldError", field: "s.properties.a.enum[0]" }, `${value}`);
  }
});

test("a request goes on with the results of its calls", () => {
  for (const { request, answer, results, prompt } of METHODS.resumed) {
    const first = readRequest(request);
    const read = readAnswer(answer, first);
    assert.deepEqual(writeRequest(resume(first, read, results)), { prompt });
    const [id] = Object.keys(results);
    assert.throws(() => resume(first, read, { [id]: "" }), { name: "FieldError" });
    assert.throws(() => resume(first, read, { ...results, more: "" }), { field: "results.more" });
    if (first.method === "inferMessages") continue;
    const changed = JSON.parse(answer);
    changed.updatedMessages[0] += " And say it always.";
    const text = JSON.stringify(changed);
    assert.throws(() => readAnswer(text, first), { field: "updatedMessages[0]" });
  }
});

test("selectors are those of Solidity, and what is no signature is refused", () => {
  for (const { signature, selector } of METHODS.selectors) {
    assert.equal(new AbiFunction(signature).selector, selector, signature);
  }
  for (const signature of METHODS.wrongSignatures) {
    assert.throws(() => new AbiFunction(signature, "f"), { field: "f" }, signature);
  }
});

test("calls are encoded and decoded byte for byte", () => {
  for (const { signature, arguments: args, calldata, decoded } of METHODS.calls) {
    const called = new AbiFunction(signature);
    assert.equal(called.encode(args), calldata, signature);
    const { name } = called;
    assert.deepEqual(decodeCall([called], calldata), { name, arguments: decoded }, signature);
  }
  for (const { signature, arguments: args } of METHODS.wrongCalls) {
    const called = new AbiFunction(signature);
    assert.throws(() => called.encode(args), FieldError, `${signature} ${JSON.stringify(args)}`);
  }
  for (const { signature, calldata } of METHODS.wrongCalldata) {
    const functions = [new AbiFunction(signature)];
    assert.throws(() => decodeCall(functions, calldata), { field: "calldata" }, calldata);
  }
});
