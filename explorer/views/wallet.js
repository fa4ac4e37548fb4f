// A wallet for test chains: a key in this page, and four things to do with it. The key is never sent;
// it is made, kept and used here, and what leaves the page is signed transactions.

import { h, swap } from "../dom.js";
import { HASH, count } from "../format.js";
import { node } from "../live.js";
import { address, amount, card, copier, empty, facts } from "../parts.js";
import { call, callAll, CallError } from "../rpc.js";
import { busy, field, forms } from "./wallet-forms.js";
import { sentList } from "./wallet-send.js";

/** The chain that a key was opened for: it signs for no other, whatever the node says later. */
const chainOf = (info) => (info === null ? null : { chainId: info.chainId, genesisHash: info.genesisHash });

/** Where the key is kept, if somebody wants that: one for each chain. */
const place = () => `ombra.key.${node.info?.genesisHash ?? "unknown"}`;

/** The key that is open, while the page is; it is there again when one comes back from another page. */
const held = { key: null, chain: null, sent: [] };

export async function wallet(page, [, conversationId]) {
  page.show("Wallet", empty("Loading …"));
  const [keys, transactions] = await Promise.all([
    import("../lib/keys.js"), import("../lib/transactions.js"), known(page)]);
  if (page.isLeft) return;
  const library = { ...keys, ...transactions };
  if (held.key === null) held.key = await kept(library);
  draw(page, library, conversationId);
}

/** Waits until it is known which chain this is: a key belongs to one. */
async function known(page) {
  if (node.info !== null) return;
  try {
    node.info = await call("ombra_chainInfo", [], page.signal);
  } catch {
    // The header says that the node is gone; a key can be opened without it.
  }
}

async function kept(library) {
  try {
    const seed = localStorage.getItem(place());
    return seed !== null && HASH.test(seed) ? await library.Key.fromPrivateKey(seed) : null;
  } catch {
    return null;
  }
}

function draw(page, library, conversationId) {
  const again = () => draw(page, library, conversationId);
  const warning = h("p", { class: "warning" }, h("strong", {}, "For test chains."), " The key is in this page only and is never sent. A page in a browser is no place for a key that is worth something.");
  if (held.key === null) {
    page.show("Wallet", warning, card("Open a key", opening(library, again)));
    return;
  }
  const { key } = held;
  held.chain ??= chainOf(node.info);
  const own = page.part({
    load: (signal) => callAll([["ombra_getAccount", [key.address]], ["txpool_contentFrom", [key.address]]], signal),
    draw: ([found, waiting]) => {
      if (found instanceof CallError) throw found;
      return standing(found, waiting);
    },
    follow: true,
  });
  const sent = sentList(page, held.sent, own.refresh);
  page.show("Wallet", warning,
    card("Your account", h("p", {}, address(key.address, true)), own.box, keeping(again)),
    card("Do something", forms({ page, library, key, sent, conversationId, chain: () => (held.chain ??= chainOf(node.info)) })),
    card("Sent from here", sent.box));
}

const standing = (found, waiting) => facts([
  ["Balance", amount(found.balance)],
  ["Balance with what waits", found.pendingBalance === found.balance ? null : amount(found.pendingBalance)],
  ["Next nonce", count(found.pendingNonce)],
  ["Waiting in the pool", waiting instanceof CallError ? null : count(Object.keys(waiting.pending).length + Object.keys(waiting.queued).length)],
]);

// ---- opening ----------------------------------------------------------------------------------

function opening(library, again) {
  const secret = field("secret", "Private key or mnemonic", { rows: 2, hint: "64 hex characters, or 12 or 24 English words", tag: "textarea" });
  const index = field("index", "Account of the mnemonic", { type: "number", value: "0", min: 0, max: 2147483647 });
  const form = h("form", { class: "stack" }, secret.box, index.box, h("button", { type: "submit" }, "Open"));
  busy(form, async () => {
    const text = secret.input.value.trim().toLowerCase();
    if (/^(0x)?[0-9a-f]{64}$/.test(text)) held.key = await library.Key.fromPrivateKey(text.slice(-64));
    else held.key = await library.Key.fromMnemonic(text.split(/\s+/).join(" "), { index: Number(index.input.value) });
    secret.input.value = "";
    again();
  });
  const made = h("form", { class: "stack" }, h("button", { type: "submit" }, "Make a new key"));
  busy(made, async () => {
    held.key = await library.Key.generate();
    again();
  });
  return [made, h("p", { class: "faint" }, "or open one that you have:"), form];
}

/** Keeping the key, seeing it, and letting it go. */
function keeping(again) {
  const isKept = () => {
    try {
      return localStorage.getItem(place()) !== null;
    } catch {
      return false;
    }
  };
  const box = h("input", { type: "checkbox", id: "keep", checked: isKept() });
  box.addEventListener("change", () => {
    try {
      if (box.checked) localStorage.setItem(place(), held.key.exportPrivateKey());
      else localStorage.removeItem(place());
    } catch {
      box.checked = false;
    }
  });
  const shown = h("div", {});
  const show = () => {
    const secret = held.key.exportPrivateKey();
    swap(shown, h("p", {}, h("code", { class: "long", id: "private-key" }, secret), copier(secret, "private key")));
  };
  const forget = () => {
    localStorage.removeItem(place());
    [held.key, held.chain, held.sent] = [null, null, []];
    again();
  };
  return h("div", { class: "stack" },
    h("p", {}, box, " ", h("label", { for: "keep" }, "Keep the key in this browser, unencrypted, for this chain")),
    h("p", { class: "turns" }, h("button", { type: "button", on: { click: show } }, "Show the private key"), h("button", { type: "button", on: { click: forget } }, "Forget the key")), shown);
}

