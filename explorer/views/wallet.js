// A wallet for test chains: a key in this page, and four things to do with it. The key is never sent;
// it is made, kept and used here, and what leaves the page is signed transactions.

import { h, swap } from "../dom.js";
import { count } from "../format.js";
import { forget, held, openLibrary, place, signing } from "../keyring.js";
import { address, amount, card, copier, empty, facts } from "../parts.js";
import { callAll, CallError } from "../rpc.js";
import { busy, field, forms } from "./wallet-forms.js";
import { sentList } from "./wallet-send.js";

export async function wallet(page, [, conversationId]) {
  page.show("Wallet", empty("Loading …"));
  const library = await openLibrary(page);
  if (!page.isLeft) draw(page, library, conversationId);
}

function draw(page, library, conversationId) {
  const again = () => draw(page, library, conversationId);
  const warning = h("p", { class: "warning" }, h("strong", {}, "For test chains."), " The key stays in this page and is never sent. A web page is not the place for a key that is worth something.");
  if (held.key === null) {
    page.show("Wallet", warning, card("Open a key", opening(library, again)));
    return;
  }
  const { key } = held;
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
    card("Do something", forms({ ...signing(page, library, sent), conversationId })),
    card("Sent from here", sent.box));
}

const standing = (found, waiting) => facts([
  ["Balance", amount(found.balance)],
  ["Balance after waiting transactions", found.pendingBalance === found.balance ? null : amount(found.pendingBalance)],
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
  const letGo = () => {
    forget();
    again();
  };
  return h("div", { class: "stack" },
    h("p", {}, box, " ", h("label", { for: "keep" }, "Keep the key in this browser, unencrypted, for this chain")),
    h("p", { class: "turns" }, h("button", { type: "button", on: { click: show } }, "Show the private key"), h("button", { type: "button", on: { click: letGo } }, "Forget the key")), shown);
}

