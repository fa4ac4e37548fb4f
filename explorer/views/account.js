// One account: what it has, what it did, what it waits for; and the miner that it may be.

import { h, swap } from "../dom.js";
import { count } from "../format.js";
import { address, amount, card, copier, empty, face, facts, height, kind, line, more, plainHash, row, runLink, status, table, time, txLink, words } from "../parts.js";
import { call, runsOf } from "../rpc.js";

const COLUMNS = ["Hash", "Type", "Direction", "With", "Amount", "Block", "When"];
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
  page.show(title, h("p", { class: "id" }, h("code", {}, bare), copier(bare, "address")), head.box, stakes.box, waiting.box, runs.box, card("Transactions", history.box));
}

const standing = (found) => facts([
  ["Balance", amount(found.balance)],
  ["Balance with what waits", found.pendingBalance === found.balance ? null : amount(found.pendingBalance)],
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
    ["Locked for runs", isMiner ? amount(locked) : null],
    ["Free", isMiner ? amount(free) : null],
    ["Taken out, paid then", payments.length === 0 ? null : h("ul", { class: "words" }, payments)],
    ["Rewards of its runs that were held", rewardsHeld === 0 ? null : `${count(rewardsHeld)}, of which it refused ${count(rewardsRefused)}`],
  ]));
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
  const rows = ["pending", "queued"].flatMap((state) =>
    Object.values(content[state]).slice(0, 25).map((tx) => [txLink(tx.hash), kind(tx.type), status(state), count(tx.nonce)]));
  return rows.length === 0 ? [] : card("Waiting in the pool", table("Waiting transactions", ["Hash", "Type", "State", "Nonce"], rows));
}

function both([asked, mined]) {
  const list = (found, title, other) => {
    if (found.items.length === 0) return null;
    const rows = found.items.map((run) => [runLink(run.agentRunId), status(run.status), line(run.prompt, 60), run[other] ? address(run[other]) : "–", amount(run.maxFee), time(run.submittedAt)]);
    return card(title, table(title, ["Run", "Status", "Asked for", other === "submitter" ? "Asked by" : "Miner", "Budget", "When"], rows));
  };
  return [list(asked, "Runs that it asked for", "minerAddress"), list(mined, "Runs that it mined", "submitter")];
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

