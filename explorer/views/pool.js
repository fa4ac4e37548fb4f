// What waits to be included.

import { h } from "../dom.js";
import { bytes, count } from "../format.js";
import { summary } from "../kinds.js";
import { address, card, facts, kind, status, table, txLink } from "../parts.js";
import { call, callAll, CallError } from "../rpc.js";
import { byState } from "../txpool.js";

const SENDERS = 30;
const SHOWN = 60;
const LOOK_EVERY_MS = 1_000;

export function pool(page) {
  const counts = page.part({
    load: (signal) => call("txpool_status", [], signal),
    draw: figures,
    pause: LOOK_EVERY_MS,
  });
  const content = page.part({
    load: (signal) => callAll([["txpool_content", [{ limit: SENDERS }]]], signal),
    draw: ([found]) => waiting(found),
    pause: LOOK_EVERY_MS,
  });
  page.every(LOOK_EVERY_MS, () => {
    if (document.hidden) return;
    counts.refresh();
    content.refresh();
  });
  page.show("Pool", card(null, counts.box), card("Waiting transactions", content.box));
}

function figures(found) {
  const types = Object.entries(found.types).filter(([, of]) => of.pending + of.queued > 0);
  const rows = types.map(([type, of]) => [kind(type), count(of.pending), count(of.queued), bytes(of.bytes)]);
  return [
    facts([["Can be executed", count(found.pending)], ["Wait for an earlier nonce", count(found.queued)], ["Size", bytes(found.bytes)]]),
    rows.length === 0 ? null : table("By type", ["Type", "Pending", "Queued", "Size"], rows),
  ];
}

function waiting(found) {
  if (found instanceof CallError) throw found;
  const all = byState(found).flatMap(([state, bySender]) =>
    Object.entries(bySender).flatMap(([sender, byNonce]) =>
      Object.values(byNonce).map((tx) => [txLink(tx.hash), kind(tx.type), address(sender), count(tx.nonce), status(state), summary(tx)])));
  const shown = table("Waiting transactions", ["Hash", "Type", "From", "Nonce", "State", "What"], all.slice(0, SHOWN), { none: "The pool is empty." });
  return all.length > SHOWN || found.nextCursor !== null ? [shown, h("p", { class: "faint" }, `The first ${Math.min(all.length, SHOWN)} are shown.`)] : shown;
}
