// What happens on the chain now.

import { h, onceAFrame, picture, swap } from "../dom.js";
import { count, duration } from "../format.js";
import { address, amount, blockHash, card, empty, facts, height, line, link, row, runLink, status, table, time } from "../parts.js";
import { callAll, call, CallError, callsOf, runsOf } from "../rpc.js";
import { callTable } from "./calls.js";

const SHOWN = 12;
const CHARTED = 60;
const RUNS = 12;
const CALLS = 6;
const COLUMNS = ["Block", "When", "Transactions", "Proposer"];

/** The latest blocks, newest first. A block is known once, whoever tells of it. */
class Latest {
  blocks = [];

  add(block) {
    if (block.txCount === null || block.txCount === undefined) return false;
    const at = this.blocks.findIndex((one) => one.index <= block.index);
    if (at >= 0 && this.blocks[at].index === block.index) return false;
    this.blocks.splice(at < 0 ? this.blocks.length : at, 0, block);
    this.blocks.length = Math.min(this.blocks.length, CHARTED);
    return true;
  }

  /** Transactions per second over the blocks that are known. */
  rate() {
    const [newest, oldest] = [this.blocks[0], this.blocks.at(-1)];
    const took = newest && newest.timestamp - oldest.timestamp;
    if (!took) return null;
    const sum = this.blocks.slice(0, -1).reduce((sum, block) => sum + block.txCount, 0);
    return (sum * 1000) / took;
  }
}

const cells = (block) => [height(block.index), time(block.timestamp), count(block.txCount), address(block.proposer)];

function chart(blocks) {
  const most = Math.max(1, ...blocks.map((block) => block.txCount));
  const bars = blocks.map((block, index) => {
    const tall = block.txCount === 0 ? 1 : 4 + (block.txCount / most) * 46;
    return { x: (CHARTED - 1 - index) * 4, y: 50 - tall, width: 3, height: tall };
  });
  return h("div", { class: "chart", role: "img", "aria-label": `Transactions in each of the last ${blocks.length} blocks, at most ${most}` },
    picture("bars", CHARTED * 4, 50, bars));
}

function figures(latest) {
  const [newest] = latest.blocks;
  const rate = latest.rate();
  const figure = (name, ...value) => h("div", { class: "figure" }, h("span", { class: "label" }, name), h("strong", {}, ...value));
  return [
    figure("Height", newest ? height(newest.index) : "0"),
    figure("Last block", newest ? time(newest.timestamp) : "none yet"),
    figure("Transactions per second", rate === null ? "–" : rate.toFixed(rate < 10 ? 1 : 0)),
    figure("Block time", latest.blocks.length > 1 ? duration((newest.timestamp - latest.blocks.at(-1).timestamp) / (latest.blocks.length - 1)) : "–"),
  ];
}

function money([supply, pool, info, price]) {
  for (const found of [supply, info]) if (found instanceof CallError) throw found;
  const isPriced = !(price instanceof CallError) && price.active;
  return facts([
    ["Base fee", isPriced ? `${count(price.baseFee)} micro per KiB` : null],
    ["A transfer burns about", isPriced ? amount(price.inclusionFee) : null],
    ["Half of the tips are at most", isPriced && price.tips.sample > 0 ? amount(price.tips.p50) : null],
    ["Circulating", amount(supply.circulating)],
    ["In escrow of runs and calls, held rewards included", amount(supply.escrowed)],
    ["Bonds of miners", supply.bonded === undefined ? null : amount(supply.bonded)],
    ["Taken out of bonds, not paid yet", supply.unbonding === undefined ? null : amount(supply.unbonding)],
    ["Burned", amount(supply.burned)],
    ["Created after genesis", amount(supply.minted)],
    ["Waiting in the pool", pool instanceof CallError ? null : link(["pool"], count(pool.pending + pool.queued))],
    ["Validators", link(["network"], count(info.validators))],
    ["Peers of this node", link(["network"], count(info.peers))],
  ]);
}

/** What a run paid its miner, or is going to. */
function reward({ minerReward, heldUntil, refused }) {
  if (minerReward === undefined) return "–";
  const what = refused === true ? "refused" : heldUntil === undefined ? null : "held";
  return what === null ? amount(minerReward) : h("span", {}, amount(minerReward), " ", status(what));
}

const runs = ({ items }) => table("Latest agent runs", ["Run", "Status", "Asked for", "Miner", "Budget", "Reward", "When"],
  items.map((run) => [runLink(run.agentRunId), status(run.status), line(run.prompt, 70),
    run.minerAddress ? address(run.minerAddress) : "–", amount(run.maxFee), reward(run), time(run.submittedAt)]),
  { none: "Nobody has asked for a run yet." });

export function overview(page) {
  const latest = new Latest();
  const top = h("div", { class: "figures" });
  const bars = h("div", {});
  const list = h("div", {}, empty("Loading …"));
  const draw = onceAFrame(() => {
    swap(top, figures(latest));
    swap(bars, chart(latest.blocks));
    drawList(list, latest.blocks.slice(0, SHOWN));
  });
  const first = page.part({
    load: (signal) => call("ombra_getBlocks", [{ limit: CHARTED }], signal),
    draw: ({ items }) => {
      for (const block of items) latest.add(block);
      draw();
      return [bars, list];
    },
  });
  page.onBlock((block) => {
    if (latest.add(block)) draw();
    else if (block.txCount === undefined) first.refresh();
  });
  const supply = page.part({
    load: (signal) => callAll([["ombra_getSupply", []], ["txpool_status", []], ["ombra_chainInfo", []], ["ombra_feeEstimate", []]], signal),
    draw: money, pause: 2000, follow: true,
  });
  const recent = page.part({ load: (signal) => runsOf({}, RUNS, signal), draw: runs, pause: 2000, follow: true });
  // Only a chain with the agent market has any.
  const asked = page.part({
    load: (signal) => callsOf({}, CALLS, signal),
    draw: ({ items }) => (items.length === 0 ? [] : card("Latest calls of agents", callTable("Latest calls of agents", items, ""), h("p", {}, link(["calls"], "All calls"), ", ", link(["agents"], "the agents")))),
    pause: 2000, follow: true,
  });
  page.show("Overview", asked.box, card("Latest agent runs", recent.box, h("p", {}, link(["runs"], "All runs"))), top,
    h("div", { class: "columns" },
      card("Latest blocks", first.box, h("p", {}, link(["blocks"], "All blocks"))),
      card("The chain", supply.box)));
}

/** Rows that are there already stay: only new ones are made, and the last ones go. */
function drawList(list, blocks) {
  let body = list.querySelector("tbody");
  if (body === null || blocks.length === 0) {
    swap(list, table("Latest blocks", COLUMNS, blocks.map(cells), { none: "There is no block yet.", tight: true }));
    body = list.querySelector("tbody");
    blocks.forEach((block, index) => { body.rows[index].dataset.block = block.index; });
    return;
  }
  const wanted = new Set(blocks.map((block) => String(block.index)));
  const known = new Map([...body.rows].map((one) => [one.dataset.block, one]));
  for (const [index, one] of known) if (!wanted.has(index)) one.remove();
  blocks.forEach((block, at) => {
    if (known.has(String(block.index))) return;
    const made = row(COLUMNS, cells(block));
    made.dataset.block = block.index;
    made.classList.add("new");
    body.insertBefore(made, body.rows[at] ?? null);
  });
}

const BLOCKS = ["Block", "When", "Transactions", "Burned", "Proposer", "Hash"];

/** All blocks, newest first. */
export function blocks(page) {
  const list = page.part({
    load: (signal) => call("ombra_getBlocks", [{ limit: 30 }], signal),
    draw: (first) => pages(first, page),
    follow: true,
  });
  page.show("Blocks", h("section", { class: "card" }, list.box));
}

const wide = (block) => [height(block.index), time(block.timestamp), count(block.txCount), amount(block.tokensBurned), address(block.proposer), blockHash(block.hash)];

/** The newest page is live; older ones are asked for from where it began. */
function pages({ items, nextCursor }) {
  const shown = table("Blocks", BLOCKS, items.map(wide), { none: "There is no block yet." });
  const oldest = items.at(-1)?.index;
  if (nextCursor === null || oldest === undefined) return [shown];
  return [shown, h("p", {}, link(["blocks", oldest - 1], "Older blocks"))];
}

/** Blocks up to a height. */
export function blocksTo(page, [to]) {
  const list = page.part({
    load: (signal) => call("ombra_getBlocks", [{ to: Number(to), limit: 30 }], signal),
    draw: (first) => pages(first),
  });
  page.show(`Blocks up to ${count(to)}`, h("section", { class: "card" }, h("p", {}, link(["blocks"], "The newest blocks")), list.box));
}
