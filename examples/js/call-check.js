// Whether what a node says of a call fits together: ids, commitments, groups, and the bill to the last
// micro (docs/protocol.md section 18).
//
// It is arithmetic over one answer of a node. That the chain has this call is another question, which
// `ombra_getProof` answers.

import { hexBytes } from "./abi-types.js";
import { toHex, wrong } from "./bytes.js";
import { OmbraError } from "./errors.js";
import { AMOUNT_MAX, amount, plainInteger } from "./fields.js";
import { sha256 } from "./hash.js";
import { bareAddress } from "./keys.js";
import { computeCallId, computeCommitment } from "./transactions.js";

const EMPTY_HASH = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const USAGE = ["inputTokens", "outputTokens", "fuel"];
const ANSWER = ["outcome", "resultHash", ...USAGE, "receiptHash"];
const PRICES = ["perCall", "promptPerM", "completionPerM", "fuelPerG"];
/** What of an AGENT_CALL stands in the record of its call. */
const ASKED = ["callId", "agentId", "agentVersion", "consensus", "committeeSize", "threshold", "maxFee", "timeoutMs", "conversationId"];
const BILL = ["wages", "royaltyPaid", "conditionalPaid", "refund", "appellantPaid", "burned"];

/**
 * What an answer of this size costs (docs/protocol.md section 18.2).
 * @param {Record<string, string | bigint>} prices `perCall`, `promptPerM`, `completionPerM`, `fuelPerG`
 * @param {Record<string, number>} usage `inputTokens`, `outputTokens`, `fuel`
 * @returns {bigint} micro
 */
export function priceOf(prices, usage) {
  const [perCall, promptPerM, completionPerM, fuelPerG] = PRICES.map((name) => BigInt(amount(name, prices[name])));
  const [inputTokens, outputTokens, fuel] = USAGE.map((name) => BigInt(plainInteger(name, usage[name])));
  const part = (units, price, per) => (units * price + per - 1n) / per;
  return perCall + part(inputTokens, promptPerM, 1000000n) + part(outputTokens, completionPerM, 1000000n)
    + part(fuel, fuelPerG, 1000000000n);
}

/**
 * SHA-256 of a payload or a result.
 * @param {string} hex with `0x`
 * @returns {Promise<string>} 64 hex characters
 */
export async function computeResultHash(hex) {
  const bytes = hexBytes(hex);
  if (!bytes) throw wrong("result", hex, "0x and hex");
  return toHex(await sha256(bytes));
}

/** The error for what does not fit. */
function unfit(field, got, expected) {
  const text = (value) => (value === undefined ? "nothing" : String(value));
  const message = `${field}: the node says ${text(got)}, expected ${text(expected)}`;
  return new OmbraError(message, "CALL_UNFIT", { field, got, expected });
}

function same(field, got, expected) {
  if (String(got) !== String(expected)) throw unfit(field, got, expected);
}

const isEqual = (one, other) => ANSWER.every((name) => one[name] === other[name]);
const sum = (list, name) => list.reduce((total, one) => total + BigInt(one[name] ?? 0), 0n);
const least = (one, other) => (one < other ? one : other);
const half = (size) => Math.floor(size / 2) + 1;

/**
 * Checks a call as `Client.getCall` gives it: with its members and the salts of their reveals.
 * @param {any} call
 * @param {Record<string, any>} [tx] the signed AGENT_CALL, if it is known: the record has to be of it
 * @returns {Promise<void>}
 * @throws {OmbraError} `CALL_UNFIT` with `field`, `got` and `expected` at the first thing that does not fit
 */
export async function checkCall(call, tx) {
  if (tx) await checkRequest(call, tx);
  if (call.payload !== undefined) same("payloadHash", call.payloadHash, await computeResultHash(call.payload));
  same("budget", call.budget, priceOf(call.prices, call.limits));
  const rounds = call.rounds ?? [];
  for (const [round, one] of rounds.entries()) {
    await checkReveals(call, one, round);
    checkGroup(call, one, `rounds[${round}]`);
  }
  await checkAnswer(call);
  if (call.settled) checkBill(call);
}

/** The record is that of this transaction. */
async function checkRequest(call, tx) {
  same("callId", call.callId, await computeCallId(tx.chainId, tx.from, tx.nonce));
  for (const name of ASKED) same(name, call[name], tx[name]);
  same("requester", call.requester, bareAddress(tx.from));
  same("appealable", call.appealable, tx.appealable ?? false);
  same("payloadHash", call.payloadHash, await computeResultHash(tx.payload));
  for (const name of PRICES) same(`prices.${name}`, call.prices[name], tx.prices[name]);
  for (const name of [...USAGE, "resultBytes"]) same(`limits.${name}`, call.limits[name], tx.limits[name]);
  const payments = (list = []) => list.map(({ when, to, amount: sum }) => `${when} ${bareAddress(to)} ${sum}`).join(", ");
  same("onResult", payments(call.onResult), payments(tx.onResult));
}

/** Every reveal opens its member's commitment, and its result is what its hash says. */
async function checkReveals(call, { members = [] }, round) {
  for (const { address, commitment, reveal } of members) {
    if (!reveal) continue;
    const field = `rounds[${round}].members ${address}`;
    if (!commitment) throw unfit(`${field}.commitment`, undefined, "one, as there is a reveal");
    if (reveal.salt === undefined) throw unfit(`${field}.reveal.salt`, undefined, "the salt of the CALL_REVEAL");
    const opened = await computeCommitment({ callId: call.callId, round, member: address }, reveal.salt, reveal);
    same(`${field}.commitment`, commitment.hash, opened);
    if (reveal.outcome !== "success") same(`${field}.resultHash`, reveal.resultHash, EMPTY_HASH);
    if (reveal.result !== undefined) same(`${field}.resultHash`, reveal.resultHash, await computeResultHash(reveal.result));
  }
}

const answersOf = ({ members = [] }) => members.flatMap(({ reveal }) => (reveal && reveal.outcome !== "unable" ? [reveal] : []));

/** Of which members a group is. */
const isIn = (group, reveal) => (group.answer ? isEqual(group.answer, reveal) : reveal.outcome === group.outcome);

/** The members in the order of `groups`: of a threshold, the successes are asked first. */
function checkGroup(call, round, field) {
  if (round.decidedAt === undefined) {
    if (round.group) throw unfit(`${field}.decidedAt`, undefined, "a time, as a group decided");
    return;
  }
  const answers = answersOf(round);
  const isMajority = call.consensus === "majority";
  const needed = isMajority ? half(round.size) : call.threshold;
  const sizeOf = (group) => answers.filter((reveal) => isIn(group, reveal)).length;
  const groups = isMajority
    ? answers.map((answer) => ({ outcome: answer.outcome, answer }))
    : [{ outcome: "success" }, { outcome: "failure" }];
  const deciding = groups.find((group) => sizeOf(group) >= needed);
  same(`${field}.group.outcome`, round.group?.outcome, deciding?.outcome);
  if (!deciding) return;
  if (isMajority && !isEqual(round.group.answer ?? {}, deciding.answer)) {
    throw unfit(`${field}.group.answer`, JSON.stringify(round.group.answer), `what ${needed} of ${round.size} members answered`);
  }
  same(`${field}.agreeing`, round.agreeing, sizeOf(deciding));
}

/** The last round that a group decided. */
const standingOf = ({ rounds = [] }) => rounds.findLast((round) => round.group !== undefined);

/** The answer is that of the group that decided, and so is the status. */
async function checkAnswer(call) {
  const standing = standingOf(call);
  const statuses = { success: "success", failure: "failed" };
  const isOpen = ["electing", "committing", "revealing"].includes(call.status);
  const isDecided = (call.rounds ?? []).some((round) => round.decidedAt !== undefined);
  if (!isOpen && call.status !== "unassigned" && !isDecided) throw unfit("status", call.status, "a round that was decided");
  if (!isOpen && standing) same("status", call.status, statuses[standing.group.outcome]);
  if (!isOpen && !standing && call.status === "success") throw unfit("status", call.status, "a group that decided");
  if (call.answer) {
    if (!standing?.group.answer || !isEqual(call.answer, standing.group.answer)) {
      throw unfit("answer", JSON.stringify(call.answer), "that of the group that decided");
    }
    if (call.answer.result !== undefined) same("answer.resultHash", call.answer.resultHash, await computeResultHash(call.answer.result));
  }
  for (const { member, ...answer } of call.answers ?? []) {
    const own = standing?.members.find(({ address }) => address === member)?.reveal;
    if (!own || !isEqual(own, answer)) throw unfit(`answers ${member}`, JSON.stringify(answer), "what the member revealed");
    if (answer.result !== undefined) same(`answers ${member}.resultHash`, answer.resultHash, await computeResultHash(answer.result));
  }
}

/** What was held is what was paid, returned and burned, and each member got and lost what it should. */
function checkBill(call) {
  const rounds = call.rounds ?? [];
  const members = rounds.flatMap((round) => round.members ?? []);
  const held = BigInt(call.maxFee) + BigInt(call.appeal?.payment ?? 0) + BigInt(call.appeal?.deposit ?? 0);
  const went = BILL.reduce((total, name) => total + BigInt(call[name]), 0n);
  same("the sum of the bill", went, held + BigInt(call.penalties));
  if (call.status === "unassigned") {
    same("refund", call.refund, call.maxFee);
    return;
  }
  same("wages", call.wages, sum(members, "paid"));
  same("penalties", call.penalties, sum(members, "penalty"));
  const standing = standingOf(call)?.group;
  for (const member of members) checkMember(call, standing, member);
  const isSuccess = call.status === "success";
  const made = (call.onResult ?? []).filter((one) => isSuccess && fires(one, call));
  same("royaltyPaid", call.royaltyPaid, isSuccess ? call.terms.royalty : 0);
  same("conditionalPaid", call.conditionalPaid, sum(made, "amount"));
  if (standing) {
    const agreeing = members.filter((one) => agrees(one, standing));
    same("agreeing", call.agreeing, agreeing.length);
    const behind = sum(agreeing, "bond");
    // The chain stops at the largest amount.
    same("bondBehind", call.bondBehind, behind < AMOUNT_MAX ? behind : AMOUNT_MAX);
  }
  if (call.appeal || rounds.length === 0) return;
  const fees = rounds[0].group ? rounds[0].revealed : rounds[0].size;
  same("burned", call.burned, BigInt(fees) * BigInt(call.terms.revealFee) + BigInt(call.penalties));
}

const agrees = ({ reveal }, group) => reveal !== undefined && reveal.outcome !== "unable" && isIn(group, reveal);
const fires = ({ when }, { answer }) => when === "success" || when === `result:${answer?.resultHash}`;

/** What a member got and lost (docs/protocol.md sections 18.6 and 18.7). */
function checkMember(call, standing, member) {
  const isPaid = standing !== undefined && agrees(member, standing);
  same(`what ${member.address} got`, member.paid, isPaid ? wageOf(call, standing) : 0);
  const penalty = isPaid ? 0n : penaltyOf(call, standing, member);
  same(`what ${member.address} lost`, member.penalty, least(penalty, BigInt(member.lock)));
}

function wageOf({ prices, budget, consensus }, group) {
  if (consensus === "threshold") return BigInt(prices.perCall);
  const wage = least(priceOf(prices, group.answer), BigInt(budget));
  return group.outcome === "failure" ? least(wage, BigInt(prices.perCall)) : wage;
}

function penaltyOf({ rounds, terms }, standing, { commitment, reveal }) {
  const isSecond = rounds.length > 1;
  const isFinal = isSecond && rounds[1].group !== undefined;
  // What silence costs after an appeal that came to nothing, where nobody loses for an answer.
  const silence = isSecond && !isFinal ? BigInt(terms.dissentPenalty) / 2n : null;
  if (!commitment) return silence ?? BigInt(terms.absencePenalty);
  if (!reveal) return silence ?? BigInt(terms.unrevealedPenalty);
  if (reveal.outcome === "unable") return silence ?? 0n;
  if (isFinal) return BigInt(terms.dissentPenalty);
  return standing && !isSecond ? BigInt(terms.outsidePenalty) : 0n;
}
