// Numbers, amounts, times and hashes as people read them.

import { h } from "./dom.js";

export const HASH = /^[0-9a-f]{64}$/;
export const ADDRESS = /^(ox)?[0-9a-f]{40}$/;
export const HEIGHT = /^(0|[1-9][0-9]{0,15})$/;
export const BLOB = /^[A-Za-z0-9_-]{1,128}$/;
const AMOUNT = /^(0|[1-9][0-9]{0,19})$/;

const MICRO = 1_000_000n;

export const count = (number) => Number(number).toLocaleString("en");

/** Micro as text in OMBRA with six decimals. */
export function ombra(micro) {
  const text = String(micro);
  if (!AMOUNT.test(text)) return text;
  const value = BigInt(text);
  const fraction = (value % MICRO).toString().padStart(6, "0");
  return `${(value / MICRO).toLocaleString("en")}.${fraction}`;
}

/** An amount, with the end of its fraction less prominent. */
export function amount(micro) {
  if (micro === undefined || micro === null) return "–";
  const text = ombra(micro);
  const at = text.search(/\.?0*$/);
  return h("span", { class: "amount" }, text.slice(0, at), h("span", { class: "faint" }, text.slice(at)), h("span", { class: "unit" }, " OMBRA"));
}

/** An amount that somebody wrote in OMBRA, as text in micro. */
export function parseOmbra(text, field) {
  const match = /^([0-9]{1,14})(?:\.([0-9]{1,6}))?$/.exec(text.trim());
  if (!match) throw new Error(`${field}: ${JSON.stringify(text)} is not an amount such as 1.5 (at most six decimals)`);
  return (BigInt(match[1]) * MICRO + BigInt((match[2] ?? "").padEnd(6, "0"))).toString();
}

/** A long hexadecimal text, its middle left out. */
export const short = (hex) => (hex.length > 18 ? `${hex.slice(0, 8)}…${hex.slice(-6)}` : hex);

export function bytes(number) {
  if (number < 1024) return `${number} B`;
  const [size, unit] = number < 1024 ** 2 ? [number / 1024, "KiB"] : [number / 1024 ** 2, "MiB"];
  return `${size.toFixed(1)} ${unit}`;
}

const LONGEST = 8_640_000_000_000_000;
const absolute = (ms) => (ms <= LONGEST ? new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC") : String(ms));

export function duration(ms) {
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h`;
  return `${count(Math.round(seconds / 86_400))} days`;
}

/** How long ago, or how soon. */
export function relative(ms, now = Date.now()) {
  const ago = now - ms;
  if (Math.abs(ago) < 1000) return "now";
  return ago > 0 ? `${words(ago)} ago` : `in ${words(-ago)}`;
}

const words = (ms) => (ms < 10_000 ? `${Math.floor(ms / 1000)} s` : duration(ms));

/** A time: how long ago, and when; the first is kept up to date by `refreshTimes`. */
export function time(ms, { full = false } = {}) {
  const value = Number(ms);
  if (!Number.isFinite(value) || value < 0) return "–";
  const exact = absolute(value);
  const ago = h("time", { datetime: value <= LONGEST ? new Date(value).toISOString() : null, "data-at": value, title: exact }, relative(value));
  return full ? h("span", {}, ago, " ", h("span", { class: "faint" }, exact)) : ago;
}

/** Brings every "3 s ago" on the page up to date. */
export function refreshTimes() {
  const now = Date.now();
  for (const element of document.querySelectorAll("time[data-at]")) {
    const text = relative(Number(element.dataset.at), now);
    if (element.textContent !== text) element.textContent = text;
  }
}
