// From fields to a transaction in a block: it is built, shown, signed, sent, and followed.

import { h, swap } from "../dom.js";
import { decoded } from "../kinds.js";
import { empty, kind, line, link, plainHash, status, time, txLink } from "../parts.js";
import { call } from "../rpc.js";
import { isRefusal } from "../txpool.js";

/** Builds a transaction, asks whether it shall be signed, signs and sends it. `about` says it in words. */
export async function propose({ page, library, key, sent, chain, about = null }, type, fields, leads = null) {
  const { chainId, genesisHash } = sameChain(chain(), await call("ombra_chainInfo", [], page.signal));
  const { pendingNonce: nonce } = await call("ombra_getAccount", [key.address], page.signal);
  const [from, timestamp] = [key.address, Date.now()];
  const envelope = { from, publicKey: key.publicKey, nonce, timestamp, chainId };
  const whole = await library.completeFields(type, fields, envelope);
  const unsigned = await library.buildTransaction(type, whole, envelope);
  if (!(await confirm(page, unsigned, genesisHash, about))) return;
  const signed = library.attachSignature(unsigned, await key.sign(unsigned.hash));
  const own = { AGENT_REQUEST: ["run", whole.agentRunId], AGENT_CALL: ["call", whole.callId] };
  const to = own[type] ?? leads;
  await sent.send({ tx: signed, hash: unsigned.hash, type, leads: to, at: timestamp, state: "sending", why: null });
}

/** The chain that the key was opened for, if the node is still of it. */
function sameChain(expected, got) {
  if (expected !== null && (expected.chainId !== got.chainId || expected.genesisHash !== got.genesisHash)) {
    throw new Error(`Nothing was signed: the key was opened for chain ${expected.chainId}, genesis ${expected.genesisHash}; the node is on chain ${got.chainId}, genesis ${got.genesisHash} now. Forget the key, and open it again.`);
  }
  return expected ?? got;
}

/** Shows what would be signed, and for which chain; answers whether it shall be. */
function confirm(page, { tx, hash }, genesisHash, about) {
  return new Promise((resolve) => {
    const leave = () => dialog.close("no");
    const refuse = h("button", { type: "button", on: { click: leave } }, "Do not sign");
    const dialog = h("dialog", { "aria-labelledby": "confirm-title" },
      h("h2", { id: "confirm-title" }, "Sign this ", kind(tx.type), "?"),
      about, decoded(tx),
      h("p", { class: "faint" }, "The chain's genesis: ", plainHash(genesisHash, "hash")),
      h("p", { class: "faint" }, "Its hash, which is what is signed: ", plainHash(hash, "hash")),
      h("p", { class: "turns" },
        refuse,
        h("button", { type: "button", class: "strong", id: "confirm-sign", on: { click: () => dialog.close("yes") } }, "Sign and send")));
    page.atEnd(leave);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
    refuse.focus();
  });
}

const SETTLED = new Set(["included", "dropped", "refused"]);

/** What was sent, newest first, with what became of it. */
export function sentList(page, entries, onSettled) {
  const box = h("div", {});
  const show = () => {
    if (entries.length === 0) swap(box, empty("Nothing yet."));
    else swap(box, h("ol", { class: "sent" }, entries.toReversed().map((entry) => item(entry, deliver))));
  };
  /** The same bytes may be sent again: the node knows a transaction that it has. */
  async function deliver(entry) {
    [entry.state, entry.why] = ["sending", null];
    show();
    try {
      await call("ombra_sendTransaction", [entry.tx]);
      entry.state = "pending";
    } catch (error) {
      entry.state = isRefusal(error) ? "refused" : "unknown";
      entry.why = error.message;
    }
    show();
    onSettled();
    if (entry.state === "pending") await follow();
  }
  let isAsking = false;
  async function follow() {
    if (isAsking) return;
    isAsking = true;
    try {
      for (const entry of entries.filter(({ state }) => state === "pending")) {
        const found = await call("ombra_getTransaction", [entry.hash], page.signal);
        if (!SETTLED.has(found.status)) continue;
        [entry.state, entry.why] = [found.status, found.dropped?.message ?? null];
        show();
        onSettled();
      }
    } catch {
      // The next block asks again.
    } finally {
      isAsking = false;
    }
  }
  page.onBlock(follow);
  show();
  follow();
  return {
    box,
    send: (entry) => {
      entries.push(entry);
      return deliver(entry);
    },
  };
}

const WORDS = { sending: "sending", unknown: "outcome unknown" };

function item(entry, deliver) {
  const again = entry.state === "unknown" ? h("button", { type: "button", on: { click: () => deliver(entry) } }, "Send the same again") : null;
  return h("li", {}, kind(entry.type), " ", status(WORDS[entry.state] ?? entry.state), " ", txLink(entry.hash), " ", h("span", { class: "faint" }, time(entry.at)), " ",
    entry.leads ? link(entry.leads, `Open the ${entry.leads[0]}`) : null, again,
    entry.why === null ? null : h("p", { class: "wrong" }, line(entry.why, 400)));
}
