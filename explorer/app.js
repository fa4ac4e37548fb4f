// The program: which page is open, what the header says, and the search.

import { h, onceAFrame, route, swap } from "./dom.js";
import { ADDRESS, BLOB, HASH, HEIGHT, count, refreshTimes } from "./format.js";
import { begins, node, on, retryNow } from "./live.js";
import { Page } from "./page.js";
import { line } from "./text.js";
import { account } from "./views/account.js";
import { agent, agents } from "./views/agents.js";
import { block } from "./views/block.js";
import { answer, calls } from "./views/calls.js";
import { conversation } from "./views/conversation.js";
import { blob, miners } from "./views/directory.js";
import { network } from "./views/network.js";
import { blocks, blocksTo, overview } from "./views/overview.js";
import { pool } from "./views/pool.js";
import { run, runs } from "./views/run.js";
import { search } from "./views/search.js";
import { transaction } from "./views/transaction.js";
import { wallet } from "./views/wallet.js";

const ANY = /^[^]{1,200}$/;
const VERSION = /^[0-9A-Za-z.+-]{1,64}$/;
const BLOCK = new RegExp(`${HEIGHT.source}|${HASH.source}`);

/** The pages: a name, the shapes of the parts after it, and what shows it. */
const PAGES = [
  ["", [], overview], ["blocks", [], blocks], ["blocks", [HEIGHT], blocksTo], ["block", [BLOCK], block],
  ["tx", [HASH], transaction], ["account", [ADDRESS], account], ["runs", [], runs], ["runs", [/^[a-z_]{1,20}$/], runs],
  ["run", [HASH], run], ["conversation", [HASH], conversation],
  ["agents", [], agents], ["agents", [ANY], agents], ["agent", [HASH], agent], ["agent", [HASH, VERSION], agent],
  ["calls", [], calls], ["calls", [/^[a-zA-Z]{1,20}$/], calls], ["call", [HASH], answer],
  ["miners", [], miners], ["pool", [], pool],
  ["network", [], network], ["blob", [BLOB], blob], ["search", [ANY], search],
  ["wallet", [], wallet], ["wallet", [/^chat$/, HASH], wallet],
];
/** Under which entry of the navigation a page is. */
const UNDER = { block: "blocks", run: "runs", conversation: "runs", agent: "agents", call: "calls" };
/** How often a new block is said aloud, for who does not see it. */
const ALOUD_EVERY_MS = 15_000;

const $ = (id) => document.getElementById(id);
let page = null;

function parts() {
  try {
    return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return ["?"];
  }
}

function open() {
  const [name, ...rest] = parts();
  page?.leave();
  page = new Page($("main"), aloud);
  const found = PAGES.find(([known, shapes]) =>
    known === name && shapes.length === rest.length && shapes.every((shape, index) => shape.test(rest[index])));
  for (const entry of $("pages").children) {
    const isOpen = entry.getAttribute("href") === (name === "" ? "#/" : route(UNDER[name] ?? name));
    if (isOpen) {
      entry.setAttribute("aria-current", "page");
      entry.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else entry.removeAttribute("aria-current");
  }
  if (found) found[2](page, rest);
  else page.show("There is no such page", h("p", {}, h("a", { to: [""] }, "To the overview")));
}

/** Another page: it begins at its top, and so does the keyboard. */
function turn() {
  open();
  scrollTo(0, 0);
  $("main").focus({ preventScroll: true });
}

// ---- what the header says ---------------------------------------------------------------------

const STATES = {
  connecting: "Connecting", live: "Live", polling: "Every few seconds", reconnecting: "Reconnecting", gone: "Node gone",
};

function state() {
  const isSyncing = node.state === "live" && node.info?.syncing === true;
  $("state").dataset.state = isSyncing ? "syncing" : node.state;
  const at = node.latest?.index ?? node.info?.height;
  const where = at === undefined ? "" : ` · ${count(at)}`;
  $("state-text").textContent = `${isSyncing ? "Syncing" : STATES[node.state]}${node.state === "gone" ? "" : where}`;
  if (node.info) swap($("chain"), "Chain ", line(node.info.chainId, 60), ` · ombra ${node.info.version}`);
}

let noticed = "";

function notice() {
  const box = $("notice");
  const isSyncing = node.state === "live" && node.info?.syncing === true;
  const what = isSyncing ? "syncing" : node.state;
  if (what === noticed) return;
  noticed = what;
  box.hidden = !["gone", "polling", "syncing"].includes(what);
  box.dataset.state = what;
  if (what === "gone") {
    swap(box, h("strong", {}, "The node does not answer."), " This page shows the last state that it knows, and keeps trying. ",
      h("button", { type: "button", on: { click: retryNow } }, "Try now"));
  } else if (what === "syncing") {
    swap(box, h("strong", {}, "This node is catching up with its chain."), " What you see may be out of date, and the node accepts no transactions yet.");
  } else if (what === "polling") {
    swap(box, "The node does not give this page a live connection. The page asks it every few seconds.");
  } else {
    swap(box);
  }
}

let lastAloud = 0;

/** Says something to who listens to the page rather than seeing it. */
function aloud(text) {
  $("said-aloud").textContent = text;
}

function announce(latest) {
  const now = Date.now();
  if (now - lastAloud < ALOUD_EVERY_MS) return;
  lastAloud = now;
  aloud(`Block ${count(latest.index)}${latest.txCount ? ` with ${count(latest.txCount)} transactions` : ""}`);
}

// ---- the theme --------------------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"];

function theme(wanted) {
  document.documentElement.dataset.theme = wanted;
  $("theme").textContent = `Theme: ${wanted}`;
}

function stored(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  theme(next);
  try {
    localStorage.setItem("ombra.theme", next);
  } catch {
    // A browser that keeps nothing forgets the theme, too.
  }
}

// ---- the beginning ----------------------------------------------------------------------------

const drawState = onceAFrame(() => {
  state();
  notice();
});

theme(THEMES.includes(stored("ombra.theme")) ? stored("ombra.theme") : "auto");
$("theme").addEventListener("click", nextTheme);
$("skip").addEventListener("click", () => $("main").focus());
$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = $("query").value.trim();
  if (query !== "") location.hash = route("search", query);
});
addEventListener("hashchange", turn);
addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, dialog");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  $("query").select();
});
on("state", drawState);
on("block", drawState);
on("block", announce);
on("chain", open);
setInterval(refreshTimes, 1000);
open();
drawState();
begins();
