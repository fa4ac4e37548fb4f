// One account: what it has, what it did, what it waits for; and the miner that it may be.

import { wholeCalls } from "../call-data.js";
import { h, swap } from "../dom.js";
import { count } from "../format.js";
import { address, amount, callLink, card, copier, empty, face, facts, height, kind, line, more, plainHash, row, runLink, status, table, time, txLink, words } from "../parts.js";
import { call, callsOf, runsOf } from "../rpc.js";
import { byState } from "../txpool.js";
import { OFFER_COLUMNS, offerRow } from "./agents.js";
import { callTable } from "./calls.js";

const COLUMNS = ["Hash", "Type", "Direction", "With", "Amount", "Block", "When"];
const CALLS = 8;
const OFFERS = 64;
const ARROWS = { out: "out →", in: "← in", self: "to itself" };

export function account(page, [id]) {
  const bare = id.slice(-40);
  const head = page.part({
    load: (signal) => call("ombra_getAccount", [bare], signal),
    draw: (found) => [card(null, standing(found)), found.miner ? card("Miner", miner(found.miner)) : null],
    follow: true,
  });
  const stakes = page.part({
    load: (signal) => call("ombra_getBond", [bare], signal),
    draw: stake, follow: true, pause: 2000,
  });
  const waiting = page.part({
    load: (signal) => call("txpool_contentFrom", [bare], signal),
    draw: pending, follow: true,
  });
  const runs = page.part({
    load: (signal) => Promise.all([runsOf({ submitter: bare }, 10, signal), runsOf({ miner: bare }, 10, signal)]),
    draw: both, follow: true, pause: 2000,
  });
  const market = page.part({ load: (signal) => ofMarket(bare, signal), draw: (found) => marketed(found, bare), follow: true, pause: 3000 });
  // A list that somebody has made longer stays as it is.
  let isLonger = false;
  const history = page.part({
    load: (signal) => call("ombra_getAccountTransactions", [bare, { limit: 25 }], signal),
    draw: (first) => listed(page, bare, first, () => { isLonger = true; }), pause: 2000,
  });
  page.onBlock(() => {
    if (!isLonger) history.refresh();
  });
  const title = h("span", { class: "who" }, face(bare), " Account");
  page.show(title, h("p", { class: "id" }, h("code", {}, bare), copier(bare, "address")), head.box, stakes.box, waiting.box, market.box, runs.box, card("Transactions", history.box));
}

const standing = (found) => facts([
  ["Balance", amount(found.balance)],
  ["Balance after waiting transactions", found.pendingBalance === found.balance ? null : amount(found.pendingBalance)],
  ["Nonce", count(found.nonce)],
  ["Next nonce", found.pendingNonce === found.nonce ? null : count(found.pendingNonce)],
]);

/** What it has at stake as a miner, and what it did with rewards as one who asks; most have neither. */
function stake({ bonded, locked, free, unbonding, rewardsHeld, rewardsRefused }) {
  const isMiner = bonded !== "0" || unbonding.length > 0;
  if (!isMiner && rewardsHeld === 0) return [];
  const payments = unbonding.map((one) => h("li", {}, amount(one.amount), " ", time(one.due)));
  return card("At stake", facts([
    ["Bond", isMiner ? amount(bonded) : null],
    ["Locked for runs and calls", isMiner ? amount(locked) : null],
    ["Free", isMiner ? amount(free) : null],
    ["Taken out, paid on", payments.length === 0 ? null : h("ul", { class: "words" }, payments)],
    ["Rewards of its runs that were held", rewardsHeld === 0 ? null : `${count(rewardsHeld)}, of which it refused ${count(rewardsRefused)}`],
  ]));
}

/** Its offers, the calls that it asked for, and those at which it was a member, with what that brought and cost. */
async function ofMarket(bare, signal) {
  const [{ items: offers }, asked, member] = await Promise.all([
    call("ombra_listOffers", [{ miner: bare }, { limit: OFFERS }], signal),
    callsOf({ requester: bare }, CALLS, signal), callsOf({ member: bare }, CALLS, signal)]);
  const whole = await wholeCalls(member.items.map(({ callId }) => callId), signal);
  return { offers, asked: asked.items, member: whole };
}

const WORKED = ["Call", "Status", "Round", "Locked", "Answer", "Got", "Lost", "When"];

function marketed({ offers, asked, member }, bare) {
  const seats = member.flatMap((one) => one.rounds.flatMap(({ members }, round) =>
    (members ?? []).filter((own) => own.address === bare).map((own) => [
      callLink(one.callId), status(one.status), count(round), amount(own.lock), own.reveal ? status(own.reveal.outcome) : own.commitment ? "hidden" : "none yet",
      amount(own.paid), amount(own.penalty), time(one.createdAt)])));
  return [
    offers.length === 0 ? null : card("Offers", table("Offers", ["Executor", ...OFFER_COLUMNS.slice(1, 5)], offers.map((one) => [h("code", { class: "long" }, line(one.executor, 80)), ...offerRow(one).slice(1, 5)]))),
    seats.length === 0 ? null : card("Calls in which it is a member", table("Calls in which it is a member", WORKED, seats)),
    asked.length === 0 ? null : card("Calls that it requested", callTable("Calls that it requested", asked, "")),
  ];
}

export const miner = (found) => facts([
  ["Name", line(found.name, 256)],
  ["Model", line(found.modelInfo, 256)],
  ["Capabilities", words(found.capabilities)],
  ["Registered", time(found.registeredAt, { full: true })],
  ["Runs", `${count(found.runsClaimed)} claimed, ${count(found.runsCompleted)} completed, ${count(found.runsFailed)} failed, ${count(found.runsTimedOut)} timed out`],
  ["Tokens", count(found.tokens)],
  ["Earned", amount(found.earnings)],
  ["Miner id", plainHash(found.minerId, "miner id", true)],
]);

function pending(content) {
  const rows = byState(content).flatMap(([state, byNonce]) =>
    Object.values(byNonce).slice(0, 25).map((tx) => [txLink(tx.hash), kind(tx.type), status(state), count(tx.nonce)]));
  return rows.length === 0 ? [] : card("Waiting in the pool", table("Waiting transactions", ["Hash", "Type", "State", "Nonce"], rows));
}

function both([asked, mined]) {
  const list = (found, title, other) => {
    if (found.items.length === 0) return null;
    const rows = found.items.map((run) => [runLink(run.agentRunId), status(run.status), line(run.prompt, 60), run[other] ? address(run[other]) : "–", amount(run.maxFee), time(run.submittedAt)]);
    return card(title, table(title, ["Run", "Status", "Asked for", other === "submitter" ? "Asked by" : "Miner", "Budget", "When"], rows));
  };
  return [list(asked, "Runs that it requested", "minerAddress"), list(mined, "Runs that it mined", "submitter")];
}

function cells(tx, bare) {
  const other = tx.direction === "in" ? tx.from : tx.to;
  return [
    txLink(tx.hash), kind(tx.type), ARROWS[tx.direction] ?? "–",
    tx.agentRunId ? runLink(tx.agentRunId) : other && other !== bare ? address(other) : "–",
    tx.amount === undefined ? "–" : amount(tx.amount), height(tx.blockIndex), time(tx.timestamp),
  ];
}

function listed(page, bare, { items, nextCursor }, onLonger) {
  if (items.length === 0) return empty("It has not sent or received anything.");
  const shown = table("Transactions", COLUMNS, items.map((tx) => cells(tx, bare)));
  let cursor = nextCursor;
  const below = h("div", {});
  const button = more(async () => {
    onLonger();
    const next = await call("ombra_getAccountTransactions", [bare, { limit: 50, cursor }], page.signal);
    shown.querySelector("tbody").append(...next.items.map((tx) => row(COLUMNS, cells(tx, bare))));
    cursor = next.nextCursor;
    if (cursor === null) swap(below);
  });
  if (cursor !== null) below.append(button);
  return [shown, below];
}

