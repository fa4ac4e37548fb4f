// The key that is open in this page, and the library that signs with it. The key is never sent.

import { HASH } from "./format.js";
import { node } from "./live.js";
import { call } from "./rpc.js";

/** The chain that a key was opened for: it signs for no other, whatever the node says later. */
const chainOf = (info) => (info === null ? null : { chainId: info.chainId, genesisHash: info.genesisHash });

/** Where the key is kept, if somebody wants that: one for each chain. */
export const place = () => `ombra.key.${node.info?.genesisHash ?? "unknown"}`;

/** The key that is open, while the page is; it is there again when one comes back from another page. */
export const held = { key: null, chain: null, sent: [] };

/** The library, once the chain is known; a key that is kept for it in this browser is open then. */
export async function openLibrary(page) {
  const [keys, transactions] = await Promise.all([import("./lib/keys.js"), import("./lib/transactions.js"), known(page)]);
  const library = { ...keys, ...transactions };
  held.key ??= await kept(library);
  return library;
}

/** What the forms sign with. `held.key` is open. */
export function signing(page, library, sent) {
  held.chain ??= chainOf(node.info);
  return { page, library, key: held.key, sent, chain: () => (held.chain ??= chainOf(node.info)) };
}

/** Lets the key go, here and in this browser. */
export function forget() {
  localStorage.removeItem(place());
  [held.key, held.chain, held.sent] = [null, null, []];
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
