// Pieces that several pages are made of.

import { append, h, picture } from "./dom.js";
import { ADDRESS, BLOB, HASH, HEIGHT, amount, count, short, time } from "./format.js";
import { block, line } from "./text.js";

/** A link to a page of this program. */
export const link = (parts, ...label) => h("a", { to: parts }, ...label);

/** A list of facts: pairs of a name and what is known; pairs without the latter are left out. */
export function facts(pairs) {
  const list = h("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === false) continue;
    append(list, [h("div", {}, h("dt", {}, name), h("dd", {}, value))]);
  }
  return list;
}

export const card = (title, ...children) =>
  h("section", { class: "card" }, title === null ? null : h("h2", {}, title), ...children);

/** A table with named columns; on a narrow page each row is a block of its own. */
export function table(caption, columns, rows, { none = "Nothing here yet.", tight = false } = {}) {
  if (rows.length === 0) return empty(none);
  const head = h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)));
  const body = rows.map((cells) => row(columns, cells));
  return h("div", { class: "wide" }, h("table", { class: tight ? "tight" : null }, h("caption", { class: "unseen" }, caption), h("thead", {}, head), h("tbody", {}, body)));
}

/** A row of such a table; a cell of several pieces is one block. */
export const row = (columns, cells) =>
  h("tr", {}, cells.map((cell, index) => h("td", { "data-label": columns[index] }, Array.isArray(cell) ? h("div", {}, cell) : cell)));

const WORDS_SHOWN = 12;

/** Short words of strangers, such as the names of tools; many are folded. */
export function words(values) {
  if (!Array.isArray(values) || values.length === 0) return "none";
  const list = (some) => h("ul", { class: "words" }, some.map((one) => h("li", {}, line(String(one), 64))));
  if (values.length <= WORDS_SHOWN) return list(values);
  const rest = values.slice(WORDS_SHOWN);
  return [list(values.slice(0, WORDS_SHOWN)), h("details", {}, h("summary", {}, `and ${count(rest.length)} more`), list(rest))];
}

export const empty = (text) => h("p", { class: "empty" }, text);
export const loading = () => h("p", { class: "empty" }, "Loading …");

const WORDS = {
  SYNCING: "The node is catching up with its chain. It can answer this when it has caught up.",
  SHUTTING_DOWN: "The node is shutting down.",
  HISTORY_UNAVAILABLE: "This node started from a snapshot and does not have anything from before it.",
  BUSY: "The node is too busy at the moment.",
};

/** What is shown in place of what could not be loaded. */
export function problem(error, again) {
  const title = error.isNotFound ? "Not found" : error.kind === "gone" ? "The node does not answer" : "This cannot be shown";
  const text = WORDS[error.code] ?? error.message;
  const earliest = error.data?.earliestBlock;
  return h("div", { class: "problem", role: "alert" },
    h("h2", {}, title),
    h("p", {}, line(text, 400)),
    HEIGHT.test(String(earliest)) ? h("p", {}, "Its first block is ", link(["block", earliest], count(earliest)), ".") : null,
    again ? h("button", { type: "button", on: { click: again } }, "Try again") : null);
}

/** A button that copies a text. */
export function copier(text, what) {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy ${what}`, title: `Copy ${what}` });
  button.addEventListener("click", async () => {
    button.dataset.done = (await copy(text)) ? "copied" : "not copied";
    setTimeout(() => delete button.dataset.done, 1200);
  });
  return button;
}

/** A page that came over plain HTTP from another machine has no clipboard; there, the older way. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { class: "unseen", "aria-hidden": true });
    area.value = text;
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    return isDone;
  }
}

/** A long hexadecimal value, short, whole in its title, to be copied; a link if there is a page for it. */
function hex(value, what, parts, full) {
  const text = h("code", { title: value }, full ? value : short(value));
  return h("span", { class: "hex" }, parts ? h("a", { to: parts }, text) : text, copier(value, what));
}

/** Not of the shape that it should have: shown as a stranger's text, without a link. */
const odd = (value) => line(typeof value === "string" ? value : JSON.stringify(value));

const isText = (value, shape) => typeof value === "string" && shape.test(value);

export const plainHash = (value, what = "hash", full = false) => (isText(value, HASH) ? hex(value, what, null, full) : odd(value));
export const txLink = (value, full = false) => (isText(value, HASH) ? hex(value, "transaction hash", ["tx", value], full) : odd(value));
export const runLink = (value, full = false) => (isText(value, HASH) ? hex(value, "run id", ["run", value], full) : odd(value));
export const talkLink = (value, full = false) => (isText(value, HASH) ? hex(value, "conversation id", ["conversation", value], full) : odd(value));
export const agentLink = (value, full = false) => (isText(value, HASH) ? hex(value, "agent id", ["agent", value], full) : odd(value));
export const callLink = (value, full = false) => (isText(value, HASH) ? hex(value, "call id", ["call", value], full) : odd(value));
export const blockHash = (value, full = false) => (isText(value, HASH) ? hex(value, "block hash", ["block", value], full) : odd(value));
export const blobLink = (value) => (isText(value, BLOB) ? link(["blob", value], line(value, 40)) : odd(value));
/** Before the first block the height is 0; there is no such block. */
export const height = (index) => (index === 0 ? "0" : HEIGHT.test(String(index)) ? link(["block", index], count(index)) : odd(index));

/** An account, with a picture made of its address by which one knows it again. */
export function address(value, full = false) {
  if (!isText(value, ADDRESS)) return odd(value);
  const bare = value.slice(-40);
  return h("span", { class: "who" }, face(bare), hex(bare, "address", ["account", bare], full));
}

/** Five by five squares, the same on both sides. */
export function face(bare) {
  const cells = [];
  for (let at = 0; at < 15; at += 1) {
    if (Number.parseInt(bare[at], 16) % 2 === 1) continue;
    const [x, y] = [Math.floor(at / 5), at % 5];
    cells.push({ x, y, width: 1, height: 1 });
    if (x < 2) cells.push({ x: 4 - x, y, width: 1, height: 1 });
  }
  const svg = picture("face", 5, 5, cells);
  svg.style.setProperty("--hue", String(Number.parseInt(bare.slice(15, 18), 16) % 360));
  return svg;
}

const STATUSES = {
  pending: "waits", claimed: "busy", running: "busy", completed: "good", included: "good",
  failed: "bad", timeout: "bad", insufficient_funds: "bad", cancelled: "off", dropped: "bad", queued: "waits", waiting: "waits",
  held: "waits", refused: "bad",
  electing: "waits", committing: "busy", revealing: "busy", success: "good", timedOut: "bad", unassigned: "off", failure: "bad",
  unable: "off", retired: "off", agrees: "good", differs: "bad",
};

export const status = (word) =>
  h("span", { class: `badge ${STATUSES[word] ?? "off"}` }, line(String(word).replaceAll("_", " ").replace("timedOut", "timed out"), 30));

export const kind = (type) => h("span", { class: "kind" }, line(type, 40));

/** What a call pays a member, or an offer is lowest at. */
export const prices = ({ perCall, promptPerM, completionPerM, fuelPerG }) => h("ul", { class: "words" }, [
  [perCall, "a call"], [promptPerM, "a million tokens read"], [completionPerM, "a million tokens written"], [fuelPerG, "a billion units of fuel"],
].filter(([micro], index) => index === 0 || micro !== "0").map(([micro, per]) => h("li", {}, amount(micro), ` ${per}`)));

/** Tokens and fuel, of an answer or the most of one. */
export const usage = ({ inputTokens, outputTokens, fuel }) =>
  [[inputTokens, "tokens read"], [outputTokens, "written"], [fuel, "units of fuel"]].filter(([number]) => number > 0)
    .map(([number, what]) => `${count(number)} ${what}`).join(", ") || "nothing";

/** A button below a list, for its next page. */
export function more(load, text = "Show more") {
  const button = h("button", { type: "button", class: "more" }, text);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await load();
    } finally {
      button.disabled = false;
    }
  });
  return button;
}

export { amount, block, line, time };
