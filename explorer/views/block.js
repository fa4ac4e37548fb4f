// One block, and its transactions a page at a time: a block may hold thousands.

import { h, swap } from "../dom.js";
import { HEIGHT, count } from "../format.js";
import { summary } from "../kinds.js";
import { node } from "../live.js";
import { address, amount, blockHash, card, empty, facts, kind, link, plainHash, problem, table, time, txLink } from "../parts.js";
import { call, callAll, CallError } from "../rpc.js";

const PER_PAGE = 25;

export function block(page, [id]) {
  const wanted = HEIGHT.test(id) ? Number(id) : id;
  const whole = page.part({
    load: (signal) => call("ombra_getBlock", [wanted, false], signal),
    draw: (found) => {
      page.title(`Block ${found.index}`);
      return draw(page, found);
    },
  });
  page.show(HEIGHT.test(id) ? `Block ${count(id)}` : "Block", whole.box);
  // A block that is still to come appears when it is there.
  const isNext = () => HEIGHT.test(id) && !whole.box.querySelector(".facts");
  page.onBlock((latest) => {
    if (isNext() && latest.index >= wanted) whole.refresh();
  });
}

function draw(page, found) {
  return [
    neighbours(page, found.index),
    card(null, facts([
      ["Height", count(found.index)],
      ["Hash", plainHash(found.hash, "block hash", true)],
      ["Previous block", found.index > 1 ? blockHash(found.previousHash, true) : [plainHash(found.previousHash, "hash", true), " (genesis)"]],
      ["Time", time(found.timestamp, { full: true })],
      ["Proposer", address(found.proposer, true)],
      ["Transactions", count(found.txCount)],
      ["Burned", amount(found.tokensBurned)],
      ...places(found),
      ["Root of transactions", plainHash(found.txRoot, "root", true)],
      ["Root of state before", plainHash(found.stateRoot, "root", true)],
      ...randomness(found),
      ["Chain", h("bdi", {}, found.chainId)],
    ])),
    card("Transactions", transactions(page, found.transactions)),
    found.commit ? card("Certificate", certificate(found.commit)) : null,
  ];
}

/** What the places in the block cost, from fork v7 on. */
function places({ baseFee, inclusionFees, tips }) {
  if (baseFee === undefined) return [];
  return [
    ["Base fee", `${count(baseFee)} micro per KiB`],
    ["Burned for places", amount(inclusionFees)],
    ["Tips", amount(tips)],
  ];
}

/** What nobody could know before the block was made, from fork v7 on. */
function randomness({ randomness: value }) {
  return value === undefined ? [] : [["Randomness", plainHash(value, "randomness", true)]];
}

/** The blocks before and after; the latest one gets its next when that comes. */
function neighbours(page, index) {
  const last = () => node.latest?.index ?? node.info?.height ?? index;
  const before = index > 1 ? link(["block", index - 1], "← Previous block") : h("span", { class: "faint" }, "The first block");
  const after = h("span", {});
  const show = () => swap(after, index < last() ? link(["block", index + 1], "Next block →") : h("span", { class: "faint" }, "The latest block"));
  show();
  page.onBlock(() => {
    if (after.querySelector("a") === null) show();
  });
  return h("p", { class: "beside" }, before, after);
}

function certificate({ round, signatures }) {
  const rows = signatures.map(({ address: who, signature }) => [address(who), h("code", { class: "cut", title: signature }, signature)]);
  return [
    h("p", {}, `${count(signatures.length)} of ${count(node.info?.validators ?? signatures.length)} validators signed it in round ${count(round)}.`),
    h("details", {}, h("summary", {}, "Signatures"), table("Signatures", ["Validator", "Signature"], rows)),
  ];
}

/** Only the transactions of the page that is open are asked for. */
function transactions(page, hashes) {
  if (hashes.length === 0) return empty("This block has no transactions.");
  const box = h("div", { class: "part" });
  const where = h("span", { role: "status" });
  const turn = (label, by) => h("button", { type: "button", on: { click: () => show(first + by) } }, label);
  const [back, on] = [turn("← Earlier", -PER_PAGE), turn("Later →", PER_PAGE)];
  let first = 0;
  async function show(from) {
    first = Math.max(0, Math.min(from, Math.floor((hashes.length - 1) / PER_PAGE) * PER_PAGE));
    const part = hashes.slice(first, first + PER_PAGE);
    swap(where, `${count(first + 1)} to ${count(first + part.length)} of ${count(hashes.length)}`);
    back.disabled = first === 0;
    on.disabled = first + PER_PAGE >= hashes.length;
    const asked = first;
    try {
      const found = await callAll(part.map((hash) => ["ombra_getTransaction", [hash]]), page.signal);
      if (asked === first) swap(box, rows(part, found, first));
    } catch (error) {
      if (!page.isLeft) swap(box, problem(error, () => show(first)));
    }
  }
  show(0);
  return [box, hashes.length > PER_PAGE ? h("div", { class: "turns" }, back, where, on) : null];
}

function rows(hashes, found, first) {
  const columns = ["Place", "Hash", "Type", "From", "What"];
  return table("Transactions", columns, hashes.map((hash, index) => {
    const one = found[index];
    const place = count(first + index);
    if (one instanceof CallError) return [place, txLink(hash), "–", "–", one.message];
    return [place, txLink(hash), kind(one.tx.type), address(one.tx.from), summary(one.tx)];
  }));
}

