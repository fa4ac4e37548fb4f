// A node that answers for one agent what a test tells it, and keeps what it was sent: calls that end as
// the test says.

import { Client, computeAgentId, computeContentHash, computeResultHash, OmbraError, priceOf } from "../../../examples/js/ombra.js";
import { ABI } from "./repository.mjs";

const OWNER = "0de4bf8ed54bbd167495522b71b48a7e37b0d933";
const METADATA = JSON.stringify({ name: "judge", abi: [ABI[0].method] });
const LIMITS = { inputTokens: 10, outputTokens: 10, fuel: 0, resultBytes: 64 };
const FREE = { promptPerM: "0", completionPerM: "0", fuelPerG: "0" };
const NOTHING = { wages: "0", royaltyPaid: "0", conditionalPaid: "0", appellantPaid: "0", burned: "0", penalties: "0" };

/** What the scripted agent is asked. */
export const QUESTION = { agentId: await computeAgentId(OWNER, "judge"), method: "f", args: ABI[0].values };

/** What a call holds at least and what the node suggests, for this price. */
export const floorOf = (perCall) => `${3 * (Number(perCall) + 100)}`;
export const heldOf = (perCall) => `${3 * (Number(perCall) + 200)}`;

/** The record of a call that nobody answered. */
async function unanswered({ from, payload, prices, limits, ...tx }, status) {
  const round = { size: 3, elected: 0, committed: 0, revealed: 0, members: [], decidedAt: status === "unassigned" ? undefined : 9 };
  return {
    ...tx, payload, prices, limits, requester: from, status, appealable: false, settled: status === "unassigned",
    payloadHash: await computeResultHash(payload), budget: `${priceOf(prices, limits)}`, rounds: [round],
    ...NOTHING, refund: tx.maxFee,
  };
}

/**
 * A client of a node whose calls end as `ends` says, and which suggests one of `perCalls` after the other.
 * The other members are members of the agent's version.
 */
export class Scripted extends Client {
  /** The calls that were sent. */
  sent = [];
  /** The parameters of each request for an estimate. */
  estimated = [];
  #ends;
  #perCalls;
  #eligible;
  #version;

  constructor({ ends, perCalls = ["1000"], eligible = [], ...version }) {
    super();
    [this.#ends, this.#perCalls, this.#eligible, this.#version] = [ends, [...perCalls], [...eligible], version];
  }

  async rpc(method, [first] = []) {
    const answers = {
      ombra_getAgent: async () => {
        const metadataHash = await computeContentHash(METADATA);
        const version = { version: "1.0.0", deterministic: true, metadataHash, ...this.#version };
        return { ...QUESTION, owner: OWNER, metadata: METADATA, version };
      },
      ombra_chainInfo: () => ({ chainId: "home", genesisHash: "0".repeat(64) }),
      ombra_getAccount: () => ({ pendingNonce: 7 + this.sent.length }),
      ombra_estimateCall: () => this.#estimate(first),
      ombra_sendTransaction: () => (this.sent.push(first), { hash: first.hash }),
      ombra_waitForTransaction: () => ({ status: "included" }),
      ombra_waitForCall: () => unanswered(this.sent.at(-1), this.#ends[this.sent.length - 1]),
    };
    return answers[method]();
  }

  #estimate(asked) {
    this.estimated.push(asked);
    const next = () => (this.#perCalls.length > 1 ? this.#perCalls.shift() : this.#perCalls[0]);
    const prices = asked.prices ?? { ...FREE, perCall: next() };
    if (prices.perCall === "away") throw new OmbraError("no answer", "UNREACHABLE");
    const [eligible, floor, maxFee] = [this.#eligible.shift() ?? 3, floorOf(prices.perCall), heldOf(prices.perCall)];
    return { prices, limits: LIMITS, eligible, needed: 3, floor, maxFee };
  }
}

/** Has the pauses of a test end at once, with the clock advanced by them; answers their lengths. */
export function skipPauses(t, isOver = () => {}) {
  const pauses = [];
  let now = 1000;
  t.mock.method(Date, "now", () => now);
  t.mock.method(globalThis, "setTimeout", (end, ms) => {
    pauses.push(ms);
    now += ms;
    queueMicrotask(isOver(ms) ?? end);
    return pauses.length;
  });
  return pauses;
}
