// Text of strangers. It is shown as it is, with two precautions: it is isolated, so that its writing
// direction ends where it ends, and characters that one cannot see are shown by their numbers.

import { h } from "./dom.js";

/** The most characters that are shown at first, and with each press of the button for more. */
const SHOWN_MAX = 4_000;
const MORE_MAX = 20_000;

const JOINED_SCRIPTS = [
  "Arabic", "Bengali", "Devanagari", "Gujarati", "Gurmukhi", "Kannada", "Khmer", "Malayalam",
  "Mongolian", "Myanmar", "Oriya", "Sinhala", "Syriac", "Tamil", "Telugu", "Tibetan",
];
const JOINED = JOINED_SCRIPTS.map((script) => `\\p{Script=${script}}`).join("");
/** Joiners within writing that needs them, and within pictures. */
const ALLOWED = `(?<=[${JOINED}])[\\u200C\\u200D]|(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}])[\\uFE0E\\uFE0F]|(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}]\\uFE0F?)\\u200D(?=\\p{Extended_Pictographic})`;
const UNSEEN =
  "[\\p{Cc}\\p{Cf}\\p{Cn}\\p{Co}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]";
const PARTS = new RegExp(`([\\n\\t])|(${ALLOWED})|(${UNSEEN})`, "gu");

/** Nodes for a text, with what cannot be seen as marks. */
function marked(text) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(PARTS)) {
    if (match[3] === undefined) continue;
    if (match.index > from) nodes.push(text.slice(from, match.index));
    nodes.push(mark(match[3]));
    from = match.index + match[3].length;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}

function mark(character) {
  const number = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  return h("span", { class: "mark", title: "an invisible character" }, `U+${number}`);
}

/** One line: a name, a short value. Line breaks are shown as marks too. */
export function line(text, max = 120) {
  const value = String(text);
  const cut = cutAt(value, max);
  const nodes = marked(cut).flatMap((node) =>
    typeof node === "string" ? node.split(/([\n\t])/).map((part) => (/^[\n\t]$/.test(part) ? " " : part)) : node,
  );
  return h("bdi", { class: "said" }, nodes, cut.length < value.length ? "…" : null);
}

/** A text of several lines; a long one is cut, with a button for more. */
export function block(text, { mono = false, max = SHOWN_MAX } = {}) {
  const value = String(text);
  const box = h("div", { class: mono ? "said text mono" : "said text", dir: "auto" });
  const cut = cutAt(value, max);
  box.append(...marked(cut));
  if (cut.length === value.length) return box;
  let from = cut.length;
  const more = h("button", { type: "button", class: "plain" });
  const label = () => {
    const left = value.length - from;
    more.textContent = `Show ${left > MORE_MAX ? `${MORE_MAX.toLocaleString("en")} of ` : ""}${left.toLocaleString("en")} more characters`;
  };
  more.addEventListener("click", () => {
    const next = cutAt(value.slice(from, from + MORE_MAX + 1), MORE_MAX);
    box.append(...marked(next));
    from += next.length;
    if (from === value.length) more.remove();
    else label();
  });
  label();
  return h("div", {}, box, more);
}

/** The beginning of a text; a pair of surrogates is not divided. */
function cutAt(text, max) {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max);
}
