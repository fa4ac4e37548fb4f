// One transaction: what became of it, what it says, and its text as it was signed.

import { h } from "../dom.js";
import { count } from "../format.js";
import { decoded } from "../kinds.js";
import { toHex, utf8 } from "../lib/bytes.js";
import { sha256 } from "../lib/hash.js";
import { amount, blockHash, card, copier, facts, height, kind, line, plainHash, status, time } from "../parts.js";
import { indented } from "../rawjson.js";
import { callWithText } from "../rpc.js";
import { block as text } from "../text.js";

export function transaction(page, [hash]) {
  let isSettled = false;
  const whole = page.part({
    load: async (signal) => {
      const loaded = await callWithText("ombra_getTransaction", [hash], "tx", signal);
      return { ...loaded, check: await hashOf(loaded.text) };
    },
    draw: ({ result, text: raw, check }) => {
      isSettled = result.status === "included";
      page.title(`${result.tx.type} ${hash.slice(0, 8)}`);
      return draw(result, raw, check);
    },
  });
  page.onBlock(() => {
    if (!isSettled) whole.refresh();
  });
  page.show("Transaction", whole.box);
}

function draw(found, raw, check) {
  const { dropped, waiting } = found;
  return [
    card(null, facts([
      ["Type", kind(found.tx.type)],
      ["Status", status(found.status)],
      ["Why", dropped ? [line(dropped.code), ": ", line(dropped.message, 400), " ", time(dropped.at)] : null],
      ["Why it waits", waiting ? [line(waiting.code), ": ", line(waiting.message, 400)] : null],
      ["Block", found.blockIndex === undefined ? null : [height(found.blockIndex), ", place ", count(found.position)]],
      ["Block hash", found.blockHash === undefined ? null : blockHash(found.blockHash, true)],
      ["Block time", found.timestamp === undefined ? null : time(found.timestamp, { full: true })],
      ["Burned for its place", found.inclusionFee === undefined ? null : amount(found.inclusionFee)],
      ["Hash", [plainHash(found.hash, "transaction hash", true), check === null ? null : verdict(check === found.hash)]],
    ])),
    card("What it says", decoded(found.tx)),
    card("As it was signed", h("details", {}, h("summary", {}, "JSON"), copier(raw, "JSON"), text(indented(raw), { mono: true, max: 20_000 })),
      facts([["Signature", h("code", { class: "long" }, line(found.tx.signature, 128))]])),
  ];
}

const verdict = (isRight) =>
  h("p", { class: isRight ? "fine" : "wrong" }, isRight ? "✓ This browser has computed the same hash from the text." : "✗ This is not the hash of the text.");

/** The hash of the payload, which is the text without hash and signature; `null` if it ends otherwise. */
async function hashOf(raw) {
  const end = /,"hash":"[0-9a-f]{64}","signature":"[0-9a-f]{128}"\}$/.exec(raw);
  return end === null ? null : toHex(await sha256(utf8(`${raw.slice(0, end.index)}}`)));
}
