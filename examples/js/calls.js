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
  const { version, method: wanted, args = [], prices, limits, maxFee, ...rest } = question;
  const agent = await readAgent(client, question.agentId, version);
  const method = agent.methods.find(({ name, signature }) => name === wanted || signature === wanted);
  if (!method) throw wrong("method", wanted, `one of ${agent.methods.map(({ signature }) => signature).join(", ")}`);
  const whole = { ...decided(rest, agent.version), agentVersion: agent.version.version, payload: method.encode(args) };
  const isTold = prices !== undefined && limits !== undefined && maxFee !== undefined;
  const estimate = isTold ? { prices, limits, maxFee } : await estimateCall(client, { ...whole, prices, limits });
  if (estimate.eligible < estimate.needed) {
    const message = `${estimate.eligible} miners work for this agent at these prices now, and the call needs ${estimate.needed}`;
    throw new OmbraError(message, "TOO_FEW_MINERS", estimate);
  }
  const conditional = (whole.onResult ?? []).reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  const held = maxFee ?? `${BigInt(estimate.maxFee) + conditional}`;
  return { fields: { ...whole, prices: estimate.prices, limits: estimate.limits, maxFee: held }, method, estimate };
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
 * Asks an agent and waits for the answer.
 * @param {Client} client
 * @param {Key} key
 * @param {Question} question
 * @param {{until?: "decided" | "settled", waitMs?: number, maxBaseFee?: string | bigint,
 *   tip?: string | bigint}} [options] `decided` and ten minutes if not given
 * @returns {Promise<{callId: string, status: string, values: any, call: any, tx: any}>} `values` are
 *   the outputs of a `success`, null else; with a threshold, what each member answered is in
 *   `call.answers`. The call has passed {@link checkCall}
 * @throws {OmbraError} `TOO_FEW_MINERS`, with the estimate, before anything is sent; `TIMEOUT` if it is not decided in time, with the call as `data`; `CALL_UNFIT` if
 *   what the node says does not fit together
 */
export async function callAgent(client, key, question, { until = "decided", waitMs = 600000, ...bid } = {}) {
  const { fields, method } = await prepareCall(client, question);
  const tx = await client.submit(key, "AGENT_CALL", fields, bid);
  await client.waitFor(tx.hash);
  const call = await waitForCall(client, tx.callId, { until, timeoutMs: waitMs });
  await checkCall(call, tx);
  const result = call.status === "success" ? call.answer?.result : undefined;
  const values = result === undefined ? null : method.decodeResult(result);
  return { callId: tx.callId, status: call.status, values, call, tx };
}

/**
 * Waits until a call is decided or settled, and answers it with its salts.
 * @param {Client} client
 * @param {string} callId
 * @param {{until?: "decided" | "settled", timeoutMs?: number}} [options]
 * @returns {Promise<any>}
 */
export async function waitForCall(client, callId, { until = "decided", timeoutMs = 600000 } = {}) {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const rest = Math.min(Math.max(deadline - Date.now(), 0), WAIT_MS_MAX);
    const options = { until, timeoutMs: rest };
    const call = await client.rpc("ombra_waitForCall", [callId, options], { timeoutMs: rest + WAIT_MS_MAX });
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
