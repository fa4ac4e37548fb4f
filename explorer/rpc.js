// Calls to the node that served this page, and to nobody else.

import { member } from "./rawjson.js";

const ENDPOINT = new URL("../", document.baseURI);
const TIMEOUT_MS = 15_000;
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

async function post(body, signal) {
  const signals = [AbortSignal.timeout(TIMEOUT_MS)];
  if (signal) signals.push(signal);
  let response;
  let text;
  try {
    response = await fetch(ENDPOINT, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.any(signals),
      credentials: "omit",
      redirect: "error",
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new CallError("The node does not answer.", { kind: "gone" });
  }
  try {
    return { text, answer: JSON.parse(text) };
  } catch {
    const said = `The node answers with status ${response.status}.`;
    throw new CallError(said, { kind: response.status >= 500 ? "gone" : "refused" });
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

/** The address of the node's WebSocket. */
export function socketAddress() {
  const address = new URL(ENDPOINT);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  return address;
}
