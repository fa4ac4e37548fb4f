// Calls to the node that served this page, and to nobody else.

import { member } from "./rawjson.js";

const ENDPOINT = new URL("../", document.baseURI);
const TIMEOUT_MS = 15_000;
const BLOB_TIMEOUT_MS = 120_000;
let nextId = 1;

/** Why a call failed. `kind` is `refused` (the node says no) or `gone` (it does not answer). */
export class CallError extends Error {
  constructor(message, { kind, number, code, data } = {}) {
    super(message);
    this.kind = kind;
    this.number = number;
    this.code = code;
    this.data = data ?? {};
  }

  static refused({ code, message, data }) {
    return new CallError(String(message), { kind: "refused", number: code, code: data?.code, data });
  }

  get isNotFound() {
    return this.number === -32051;
  }
}

/** Sends a request to the node and reads its answer. */
async function reach(address, options, read, signal) {
  const signals = [AbortSignal.timeout(options.timeoutMs)];
  if (signal) signals.push(signal);
  try {
    const response = await fetch(address, { ...options, signal: AbortSignal.any(signals), credentials: "omit", redirect: "error" });
    return { status: response.status, read: await read(response) };
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new CallError("The node does not answer.", { kind: "gone" });
  }
}

const failed = (status) => new CallError(`The node answers with status ${status}.`, { kind: status >= 500 ? "gone" : "refused" });

async function post(body, signal) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), timeoutMs: TIMEOUT_MS };
  const { status, read: text } = await reach(ENDPOINT, options, (response) => response.text(), signal);
  try {
    return { text, answer: JSON.parse(text) };
  } catch {
    throw failed(status);
  }
}

/** What `/readyz` says; it does so with another status, too, while the node cannot serve. */
export async function readiness(signal) {
  const options = { timeoutMs: TIMEOUT_MS };
  const { status, read: text } = await reach(new URL("readyz", ENDPOINT), options, (response) => response.text(), signal);
  try {
    return JSON.parse(text);
  } catch {
    throw failed(status);
  }
}

const request = (method, params) => ({ jsonrpc: "2.0", id: nextId++, method, params });

function result(answer) {
  if (answer?.error) throw CallError.refused(answer.error);
  return answer?.result;
}

/** The result of a method. */
export async function call(method, params = [], signal = undefined) {
  return result((await post(request(method, params), signal)).answer);
}

/** The result, and one of its members as the text that the node sent. */
export async function callWithText(method, params, name, signal) {
  const { text, answer } = await post(request(method, params), signal);
  return { result: result(answer), text: member(text, ["result", name]) };
}

/** Many calls in one request; for each its result, or its `CallError`. */
export async function callAll(calls, signal) {
  if (calls.length === 0) return [];
  const requests = calls.map(([method, params]) => request(method, params));
  const { answer } = await post(requests, signal);
  if (!Array.isArray(answer)) result(answer);
  const byId = new Map(answer.map((one) => [one.id, one]));
  return requests.map(({ id }) => {
    const one = byId.get(id);
    if (!one) return new CallError("The node left out an answer.", { kind: "refused" });
    return one.error ? CallError.refused(one.error) : one.result;
  });
}

/** Pages that are asked for to make one list. */
const PAGES_MAX = 20;

/** What of a list meets a filter, in its order: `limit` of them, if there are so many. A page of the
 * node can be short or empty and have a cursor to go on. */
export async function listOf(method, filter, limit, signal, from = undefined) {
  const items = [];
  let cursor = from;
  for (let page = 0; page < PAGES_MAX && items.length < limit && cursor !== null; page += 1) {
    const found = await call(method, [filter, { limit: limit - items.length, cursor }], signal);
    items.push(...found.items);
    cursor = found.nextCursor;
  }
  return { items, nextCursor: cursor };
}

/** Agent runs, newest first. */
export const runsOf = (...wanted) => listOf("ombra_listAgentRuns", ...wanted);

/** Calls of agents, newest first. */
export const callsOf = (...wanted) => listOf("ombra_listCalls", ...wanted);

/** The bytes of a blob that is final. They are not taken from an earlier chain that used the same id. */
export async function blobBytes(id, signal) {
  const address = new URL(`api/blob/${encodeURIComponent(id)}`, ENDPOINT);
  const { status, read } = await reach(address, { cache: "no-store", timeoutMs: BLOB_TIMEOUT_MS }, (response) => response.arrayBuffer(), signal);
  if (status !== 200) throw failed(status);
  return new Uint8Array(read);
}

/** The address of the node's WebSocket. */
export function socketAddress() {
  const address = new URL(ENDPOINT);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  return address;
}
