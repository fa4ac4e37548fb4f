// The one WebSocket of the page: what happens on the chain as it happens. When it breaks, it is
// opened again, and every subscription continues at the block where it was.

import { call, CallError, socketAddress } from "./rpc.js";

const CALL_TIMEOUT_MS = 8_000;
const LOOK_EVERY_MS = 5_000;
const PAUSE_MIN_MS = 400;
const PAUSE_MAX_MS = 8_000;
/** After so many attempts a connection that was lost is a node that is gone. */
const ATTEMPTS_BEFORE_GONE = 2;
/** A longer break is not replayed: the pages load anew. */
const REPLAY_BLOCKS_MAX = 200;
const ORPHANS_MAX = 1_000;

/**
 * What is known of the node. `state` is `connecting`, `live`, `polling` (it answers, but gives no
 * WebSocket), `reconnecting` or `gone`; `info` is its chainInfo, `latest` the summary of its last block.
 */
export const node = { state: "connecting", info: null, latest: null, retryAt: 0 };

const listeners = { state: new Set(), block: new Set(), chain: new Set() };
const subscriptions = new Set();
const calls = new Map();
let socket = null;
let nextId = 1;
let attempts = 0;
let retryTimer = null;
let orphans = [];

/** Calls `listener` at every `state`, `block` or `chain` (another chain, or a gap); answers how to stop. */
export function on(event, listener) {
  listeners[event].add(listener);
  return () => listeners[event].delete(listener);
}

function tell(event, value) {
  for (const listener of [...listeners[event]]) listener(value);
}

function enter(state) {
  node.state = state;
  tell("state", state);
}

// ---- calls on the socket ----------------------------------------------------------------------

function ask(method, params) {
  return new Promise((resolve, reject) => {
    const id = nextId++;
    const late = () => {
      calls.delete(id);
      reject(new CallError("The node does not answer.", { kind: "gone" }));
      socket?.close();
    };
    calls.set(id, { resolve, reject, timer: setTimeout(late, CALL_TIMEOUT_MS) });
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  });
}

function receive(message) {
  if (message.method === "ombra_subscription") {
    deliver(message.params);
    return;
  }
  const waiting = calls.get(message.id);
  if (!waiting) return;
  calls.delete(message.id);
  clearTimeout(waiting.timer);
  if (message.error) waiting.reject(CallError.refused(message.error));
  else waiting.resolve(message.result);
}

function deliver({ subscription, result, error }) {
  const known = [...subscriptions].find((one) => one.id === subscription);
  if (!known) {
    if (orphans.length < ORPHANS_MAX) orphans.push({ subscription, result, error });
    return;
  }
  if (error) {
    known.id = null;
    start(known);
    return;
  }
  if (result.lagged) return;
  known.seen = result.blockIndex;
  known.listener(result);
}

// ---- subscriptions ----------------------------------------------------------------------------

/** Calls `listener` with every event of a kind; answers how to stop. */
export function subscribe(kind, filter, listener) {
  // From the last block that is known: what comes while a page loads is not missed.
  const known = kind === "pool" || kind === "blocks" ? null : node.latest?.index ?? null;
  const subscription = { kind, filter, listener, id: null, seen: known };
  subscriptions.add(subscription);
  if (node.state === "live") start(subscription);
  return () => {
    subscriptions.delete(subscription);
    if (subscription.id !== null && node.state === "live") {
      ask("ombra_unsubscribe", [subscription.id]).catch(() => {});
    }
  };
}

/** Events of the last block may come twice; listeners of runs and turns do not mind. */
async function start(subscription) {
  const { kind, filter, seen } = subscription;
  const from = seen === null ? {} : { fromBlock: kind === "blocks" ? seen + 1 : Math.max(seen, 1) };
  try {
    subscription.id = await ask("ombra_subscribe", [kind, { ...filter, ...from }]);
  } catch {
    // A socket that is lost begins all subscriptions again.
    return;
  }
  if (!subscriptions.has(subscription)) {
    ask("ombra_unsubscribe", [subscription.id]).catch(() => {});
    return;
  }
  const early = orphans.filter((one) => one.subscription === subscription.id);
  orphans = orphans.filter((one) => one.subscription !== subscription.id);
  for (const one of early) deliver(one);
}

// ---- the connection ---------------------------------------------------------------------------

/**
 * Takes in what the node says of its chain. Another chain, or an earlier place of it, is begun anew;
 * after a new connection so is one that is far ahead, because that many blocks are not replayed.
 */
function learn(info, isConnecting) {
  const before = node.info;
  const ahead = node.latest === null ? 0 : info.height - node.latest.index;
  const isOther = before !== null && (before.genesisHash !== info.genesisHash || ahead < 0);
  node.info = info;
  if (!isOther && !(isConnecting && ahead > REPLAY_BLOCKS_MAX)) return;
  for (const one of subscriptions) one.seen = null;
  node.latest = null;
  tell("chain", info);
}

function tip(block) {
  node.latest = block;
  if (node.info) node.info.height = Math.max(node.info.height, block.index);
  tell("block", block);
}

function connect() {
  clearTimeout(retryTimer);
  const opened = new WebSocket(socketAddress());
  socket = opened;
  opened.addEventListener("open", () => begin(opened));
  opened.addEventListener("message", (event) => {
    if (socket === opened) receive(JSON.parse(event.data));
  });
  opened.addEventListener("close", () => {
    if (socket === opened) lost();
  });
}

async function begin(opened) {
  try {
    learn(await ask("ombra_chainInfo", []), true);
    if (socket !== opened) return;
    attempts = 0;
    enter("live");
    await Promise.all([...subscriptions].map(start));
  } catch {
    opened.close();
  }
}

function lost() {
  socket = null;
  for (const { reject, timer } of calls.values()) {
    clearTimeout(timer);
    reject(new CallError("The connection was lost.", { kind: "gone" }));
  }
  calls.clear();
  orphans = [];
  for (const one of subscriptions) one.id = null;
  attempts += 1;
  const pause = Math.min(PAUSE_MIN_MS * 2 ** (attempts - 1), PAUSE_MAX_MS) * (0.75 + Math.random() / 2);
  node.retryAt = Date.now() + pause;
  retryTimer = setTimeout(connect, pause);
  if (node.state !== "polling") enter(attempts > ATTEMPTS_BEFORE_GONE ? "gone" : node.info ? "reconnecting" : "connecting");
  look();
}

/** Tries again at once. */
export function retryNow() {
  if (socket === null) connect();
}

/** Asks how the chain stands: over the socket, or by a request of its own where there is none. */
async function look() {
  try {
    if (node.state === "live") {
      learn(await ask("ombra_chainInfo", []), false);
      tell("state", node.state);
      return;
    }
    const info = await call("ombra_chainInfo");
    if (node.state === "live") return;
    const height = node.latest?.index ?? 0;
    learn(info, false);
    if (attempts > 0) enter("polling");
    if (info.height > height) {
      tip({ index: info.height, hash: info.latestBlockHash, timestamp: info.latestBlockTime });
    }
  } catch {
    if (node.state === "polling") enter("gone");
  }
}

/** Opens the connection, and keeps it open while the page is. */
export function begins() {
  subscribe("blocks", {}, tip);
  connect();
  setInterval(look, LOOK_EVERY_MS);
  addEventListener("online", retryNow);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) retryNow();
  });
}
