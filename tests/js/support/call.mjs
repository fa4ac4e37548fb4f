// A settled call as a node tells of it, made of the rules: three members of whom two agree.

import { computeCallId, computeCommitment, computeResultHash, priceOf } from "../../../examples/js/ombra.js";

const of = (digit) => digit.repeat(64);
const REQUESTER = "1".repeat(40);
const MEMBERS = ["a".repeat(40), "b".repeat(40), "c".repeat(40)];
const PRICES = { perCall: "1000", promptPerM: "100001", completionPerM: "1", fuelPerG: "7" };
const USAGE = { inputTokens: 100, outputTokens: 10, fuel: 3 };
const LIMITS = { inputTokens: 1000, outputTokens: 100, fuel: 1000, resultBytes: 64 };
const TERMS = {
  royalty: "500", minBond: "10000000", dissentPenalty: "1000000", absencePenalty: "10000", unrevealedPenalty: "100000",
  outsidePenalty: "2000", revealFee: "200", revealMs: 20000, appealMs: 120000,
};

/** The AGENT_CALL. */
export async function request() {
  const [chainId, from, nonce] = ["home", REQUESTER, 7];
  return {
    type: "AGENT_CALL", from, callId: await computeCallId(chainId, from, nonce), agentId: of("d"), agentVersion: "1.0.0",
    payload: "0x12345678", consensus: "majority", committeeSize: 3, prices: PRICES, limits: LIMITS, maxFee: "10000",
    timeoutMs: 60000, nonce, timestamp: 1, onResult: [], chainId,
  };
}

async function answerOf(result, outcome = "success") {
  return { outcome, resultHash: await computeResultHash(result), ...USAGE, receiptHash: of("e") };
}

async function member(callId, seat, { answer, paid = "0", penalty = "0", agreed }) {
  const [address, salt] = [MEMBERS[seat], of(String(seat + 1))];
  const hash = await computeCommitment({ callId, round: 0, member: address }, salt, answer);
  const reveal = { ...answer, salt, blockIndex: 9, position: seat };
  return { address, seat, bond: "10000000", lock: "100000", commitment: { hash, blockIndex: 8, position: seat }, reveal, agreed, paid, penalty };
}

/** The call: the first and the last agree, the second says something else. */
export async function settledCall() {
  const { type, from, nonce, timestamp, chainId, ...asked } = await request();
  const answer = await answerOf("0x796573");
  const wage = `${priceOf(PRICES, USAGE)}`;
  const agrees = { answer, paid: wage, agreed: true };
  const differs = { answer: await answerOf("0x6e6f"), penalty: "2000", agreed: false };
  const said = [agrees, differs, agrees];
  const members = await Promise.all(said.map((one, seat) => member(asked.callId, seat, one)));
  const [wages, burned] = [2n * BigInt(wage), 600n + 2000n];
  return {
    ...asked, requester: from, owner: of("f").slice(24), status: "success", settled: true, appealable: false,
    payloadHash: await computeResultHash(asked.payload), budget: `${priceOf(PRICES, LIMITS)}`, terms: TERMS,
    rounds: [{
      size: 3, elected: 3, committed: 3, revealed: 3, electedIn: 7, electedAt: 1, candidatesHash: of("0"), decidedAt: 2,
      group: { outcome: "success", answer }, agreeing: 2, members,
    }],
    answer: { ...answer, result: "0x796573" }, agreeing: 2, bondBehind: "20000000",
    wages: `${wages}`, royaltyPaid: "500", conditionalPaid: "0", appellantPaid: "0", burned: `${burned}`, penalties: "2000",
    refund: `${10000n + 2000n - wages - 500n - burned}`,
  };
}
