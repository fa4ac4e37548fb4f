// A call of an agent from the question to the answer (docs/market.md section 5): what it needs is
// estimated, encoded, signed, sent and waited for, and what comes back is checked.

import { agentMethods } from "./agent-abi.js";
import { toHex, utf8, wrong } from "./bytes.js";
import { checkCall } from "./call-check.js";
import { verifyElection } from "./election.js";
import { OmbraError } from "./errors.js";
import { sha256 } from "./hash.js";
import { computeAgentId } from "./transactions.js";

/** The longest that a node lets a request wait for a call. */
const WAIT_MS_MAX = 60000;
const DEFAULTS = { committeeSize: 3, timeoutMs: 60000 };
/** How many calls are sent at most for one question. */
const TRIES = 3;
/** How long to wait before each further try; the last also holds for all after it. */
const PAUSES_MS = [2000, 4000];
/** The codes of what does not exist, and of what the node no longer has. */
const ABSENT = ["NOT_FOUND", "HISTORY_UNAVAILABLE"];

/** @typedef {import("./client.js").Client} Client */
/** @typedef {import("./keys.js").Key} Key */

/**
 * What is asked of an agent. What is left out is estimated by the node, or is the default.
 * @typedef {object} Question
 * @property {string} agentId
 * @property {string} [version] the latest if not given
 * @property {string} method its name, or its signature
 * @property {any[] | Record<string, any>} [args] see `AgentMethod.encode`
 * @property {number} [committeeSize] 3 if not given
 * @property {"majority" | "threshold"} [consensus] `majority` if not given and the agent's answers can
 *   be compared, else `threshold`, of which members are paid for an empty answer as for an honest one
 *   (docs/market.md section 7)
 * @property {number} [threshold] more than half of the members if not given
 * @property {boolean} [appealable]
 * @property {{when: string, to: string, amount: string | bigint}[]} [onResult]
 * @property {number} [timeoutMs] how long members have, 60,000 if not given
 * @property {Record<string, string | bigint>} [prices]
 * @property {Record<string, number>} [limits]
 * @property {string | bigint} [maxFee]
 * @property {string} [conversationId]
 */

/**
 * An agent, after its metadata has been compared with its hash, and its id with owner and name.
 * @param {Client} client
 * @param {string} agentId
 * @param {string} [version]
 * @returns {Promise<any>} as `ombra_getAgent` tells it, with `methods`
 */
export async function readAgent(client, agentId, version) {
  const agent = await client.rpc("ombra_getAgent", version === undefined ? [agentId] : [agentId, version]);
  const told = { agentId: agent.agentId, metadataHash: agent.version.metadataHash };
  const metadata = JSON.parse(agent.metadata);
  const computed = {
    agentId: await computeAgentId(agent.owner, metadata.name),
    metadataHash: toHex(await sha256(utf8(agent.metadata))),
  };
  for (const [field, got] of Object.entries({ ...told, asked: agentId })) {
    const expected = computed[field] ?? computed.agentId;
    if (got !== expected) {
      throw new OmbraError(`${field}: the node says ${got}, expected ${expected}`, "AGENT_UNFIT", { field, got, expected });
    }
  }
  return { ...agent, methods: agentMethods(metadata) };
}

/**
 * The fields of an AGENT_CALL for a question: the arguments are encoded here, and the node estimates
 * prices, limits and `maxFee` where they are not given.
 * @param {Client} client
 * @param {Question} question
 * @returns {Promise<{fields: Record<string, any>, method: import("./agent-abi.js").AgentMethod, estimate: any}>}
 */
export async function prepareCall(client, question) {
  const asked = await encodeQuestion(client, question);
  const { fields, estimate } = await estimateFields(client, asked);
  checkEnough(estimate);
  return { fields, method: asked.method, estimate };
}

/** What of an AGENT_CALL no estimate changes, and what the question says of the rest. */
async function encodeQuestion(client, question) {
  const { version, method: wanted, args = [], prices, limits, maxFee, ...rest } = question;
  const agent = await readAgent(client, question.agentId, version);
  const method = agent.methods.find(({ name, signature }) => name === wanted || signature === wanted);
  if (!method) throw wrong("method", wanted, `one of ${agent.methods.map(({ signature }) => signature).join(", ")}`);
  const whole = { ...decided(rest, agent.version), agentVersion: agent.version.version, payload: method.encode(args) };
  const conditional = (whole.onResult ?? []).reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  return { whole, method, conditional, given: { prices, limits, maxFee } };
}

/** The fields with what the node estimates now; `isRaised` is for a higher `perCall` than it suggests. */
async function estimateFields(client, { whole, conditional, given }, isRaised = false) {
  const { prices, limits, maxFee } = given;
  const isTold = prices !== undefined && limits !== undefined && maxFee !== undefined;
  let estimate = isTold ? given : await estimateCall(client, { ...whole, prices, limits });
  if (isRaised && prices === undefined) {
    estimate = await estimateCall(client, { ...whole, prices: raised(estimate.prices), limits });
  }
  const held = maxFee ?? `${BigInt(estimate.maxFee) + conditional}`;
  return { fields: { ...whole, prices: estimate.prices, limits: estimate.limits, maxFee: held }, estimate };
}

/** The prices with a `perCall` that is a quarter higher, rounded up. */
function raised(prices) {
  return { ...prices, perCall: `${(BigInt(prices.perCall) * 5n + 3n) / 4n}` };
}

function isTooFew({ eligible, needed }) {
  return eligible < needed;
}

function checkEnough(estimate) {
  if (!isTooFew(estimate)) return;
  const message = `${estimate.eligible} miners work for this agent at these prices now, and the call needs ${estimate.needed}`;
  throw new OmbraError(message, "TOO_FEW_MINERS", estimate);
}

/** Whether the question allows to hold the least that the chain takes for such a call. */
function isAffordable({ conditional, given: { maxFee } }, { floor = "0" }) {
  return maxFee === undefined || BigInt(floor) + conditional <= BigInt(maxFee);
}

/** The question with who decides: where answers cannot be compared, as many as else have to agree. */
function decided(question, { deterministic }) {
  const whole = { ...DEFAULTS, consensus: deterministic ? "majority" : "threshold", ...question };
  if (whole.consensus !== "threshold") return whole;
  return { threshold: Math.floor(whole.committeeSize / 2) + 1, ...whole };
}

function estimateCall(client, { agentId, agentVersion, ...whole }) {
  const { committeeSize, threshold, appealable, payload, prices, limits } = whole;
  const asked = { agentId, version: agentVersion, committeeSize, threshold, appealable, payload, prices, limits };
  const given = Object.entries(asked).filter(([, value]) => value !== undefined);
  return client.rpc("ombra_estimateCall", [Object.fromEntries(given)]);
}

/**
 * Asks an agent and waits for the answer. A call that ends `unassigned` is sent again after a pause, with
 * what the node estimates then; from the third try on, `perCall` is a quarter higher than estimated, unless
 * the question has `prices`. Where the question has a `maxFee`, no more than that is held.
 * @param {Client} client
 * @param {Key} key
 * @param {Question} question
 * @param {{until?: "decided" | "settled", waitMs?: number, tries?: number, signal?: AbortSignal,
 *   maxBaseFee?: string | bigint, tip?: string | bigint}} [options] `decided`, ten minutes for all tries
 *   together, and 3 tries if not given; with 1, nothing is sent again. `signal` ends all waiting for members
 *   and between tries, and nothing more is sent; it needs an engine with `AbortSignal.any`
 * @returns {Promise<{callId: string, status: string, values: any, call: any, tx: any, tries: number}>}
 *   `values` are the outputs of a `success`, null else; with a threshold, what each member answered is in
 *   `call.answers`. The call has passed {@link checkCall}. `tries` is how many calls were sent; the others
 *   are of the last one
 * @throws {OmbraError} with `tries`: `TOO_FEW_MINERS`, with the estimate, before anything is sent;
 *   `TIMEOUT` if it is not decided in time, with the call as `data`; `ABORTED` by the signal, with the
 *   `callId` of the last call in `data`, if one was sent; `CALL_UNFIT` if what the node says does not fit
 *   together
 */
export async function callAgent(client, key, question, { tries = TRIES, ...options } = {}) {
  const progress = { sent: 0, last: null, deadline: undefined };
  try {
    if (!Number.isInteger(tries) || tries < 1) throw wrong("tries", tries, "an integer, 1 or more");
    const asked = await encodeQuestion(client, question);
    for (let retry = 0; retry < tries; retry += 1) {
      if (!(await tryOnce({ client, key, asked, options }, progress, retry))) break;
    }
    return { ...progress.last, tries: progress.sent };
  } catch (error) {
    error.tries = progress.sent;
    throw error;
  }
}

/** Sends one call and waits for it; answers whether another one may follow. */
async function tryOnce({ client, key, asked, options }, progress, retry) {
  const { until, waitMs = 600000, signal, ...bid } = options;
  if (retry > 0 && !(await pauseBefore(retry, progress.deadline, signal))) return false;
  checkSignal(signal, progress);
  const { fields, estimate } = await estimateFields(client, asked, retry > 1);
  checkSignal(signal, progress);
  if (retry === 0) checkEnough(estimate);
  if (retry > 0 && !isAffordable(asked, estimate)) return false;
  // The election would fail again, and cost another inclusion fee.
  if (isTooFew(estimate)) return true;
  progress.sent += 1;
  const tx = await client.submit(key, "AGENT_CALL", fields, bid);
  await client.waitFor(tx.hash);
  progress.deadline ??= Date.now() + waitMs;
  const timeoutMs = Math.max(progress.deadline - Date.now(), 0);
  const call = await waitForCall(client, tx.callId, { until, timeoutMs, signal });
  await checkCall(call, tx);
  const result = call.status === "success" ? call.answer?.result : undefined;
  const values = result === undefined ? null : asked.method.decodeResult(result);
  progress.last = { callId: tx.callId, status: call.status, values, call, tx };
  return call.status === "unassigned";
}

function checkSignal(signal, { last }) {
  if (signal?.aborted) throw new OmbraError("ended by the signal", "ABORTED", last?.call);
}

/** Waits before a further try, or until the signal; answers whether there is time for it. */
async function pauseBefore(retry, deadline, signal) {
  const ms = PAUSES_MS[Math.min(retry, PAUSES_MS.length) - 1];
  if (Date.now() + ms >= deadline) return false;
  if (!signal?.aborted) await pause(ms, signal);
  return true;
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}

/**
 * Waits until a call is decided or settled, and answers it with its salts.
 * @param {Client} client
 * @param {string} callId
 * @param {{until?: "decided" | "settled", timeoutMs?: number, signal?: AbortSignal}} [options]
 * @returns {Promise<any>}
 * @throws {OmbraError} `TIMEOUT`, with the call as `data`; `ABORTED` by the signal, with `callId` in `data`
 */
export async function waitForCall(client, callId, { until = "decided", timeoutMs = 600000, signal } = {}) {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const rest = Math.min(Math.max(deadline - Date.now(), 0), WAIT_MS_MAX);
    const options = { until, timeoutMs: rest };
    const call = await client.rpc("ombra_waitForCall", [callId, options], { timeoutMs: rest + WAIT_MS_MAX, signal })
      .catch((error) => {
        if (error.code === "ABORTED") error.data = { callId };
        throw error;
      });
    const isOpen = ["electing", "committing", "revealing"].includes(call.status);
    if (until === "settled" ? call.settled : !isOpen) return withSalts(client, call);
    if (Date.now() >= deadline) {
      throw new OmbraError(`call ${callId} is ${call.status} after ${timeoutMs} ms`, "TIMEOUT", call);
    }
  }
}

/**
 * A call with the salts of its reveals, which {@link checkCall} needs.
 * @param {Client} client
 * @param {string} callId
 * @returns {Promise<any>}
 */
export async function readCall(client, callId) {
  return withSalts(client, await client.rpc("ombra_getCall", [callId]));
}

/**
 * Draws the members of a round again, of the candidates that the node names and the randomness of the
 * block (docs/protocol.md section 17.2). That the candidates' bonds are those of the state before that
 * block, and that the randomness is proved, is not looked at.
 * @param {Client} client
 * @param {any} call
 * @param {number} [round]
 * @returns {Promise<void>}
 * @throws {OmbraError} `ELECTION_UNFIT` if others were drawn, or of other candidates
 */
export async function checkElection(client, call, round = 0) {
  const { electedIn, size, candidatesHash, members } = call.rounds[round];
  const [{ candidates }, { value: randomness }] = await Promise.all([
    client.rpc("ombra_getElection", [call.callId, round]), client.rpc("ombra_getRandomness", [electedIn])]);
  const told = { callId: call.callId, round, randomness, size, candidatesHash, members: members.map(({ address }) => address) };
  const wrong = await verifyElection(told, candidates);
  if (wrong !== null) throw new OmbraError(`round ${round}: ${wrong}`, "ELECTION_UNFIT");
}

/** Salts stand in the CALL_REVEALs only. Where the node has such a block no longer, they stay away. */
async function withSalts(client, call) {
  const members = (call.rounds ?? []).flatMap((round) => round.members ?? []);
  const reveals = members.flatMap(({ reveal }) => (reveal && reveal.salt === undefined ? [reveal] : []));
  const blocks = new Map();
  for (const reveal of reveals) {
    try {
      const { blockIndex, position } = reveal;
      if (!blocks.has(blockIndex)) blocks.set(blockIndex, await client.rpc("ombra_getBlock", [blockIndex, false]));
      const { tx } = await client.rpc("ombra_getTransaction", [blocks.get(blockIndex).transactions[position]]);
      reveal.salt = tx.salt;
    } catch (error) {
      if (!ABSENT.includes(error.code)) throw error;
    }
  }
  return call;
}
