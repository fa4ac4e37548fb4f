// Whether the numbers in a text of JSON are those that `JSON.parse` makes of them: JavaScript has 64-bit
// floating-point numbers only, and rounds others without a word.

import { wrong } from "./bytes.js";

/** Longer than any number that a program writes. */
const NUMBER_LENGTH_MAX = 64;
const NUMBER = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/**
 * Refuses JSON with a number that `JSON.parse` has changed, such as an integer above 2^53.
 * @param {string} field what messages call the numbers
 * @param {string} text JSON that was read without a fault
 */
export function exactNumbers(field, text) {
  for (const token of numbers(text)) {
    const number = Number(token);
    const isShort = token.length <= NUMBER_LENGTH_MAX && Number.isFinite(number);
    if (!isShort || decimal(token) !== decimal(`${number}`)) {
      throw wrong(field, token, "numbers that JavaScript does not round");
    }
  }
}

/** The numbers in a text of JSON, as they are written there. */
function* numbers(text) {
  const token = /[-+.0-9eE]+/y;
  for (let at = 0; at < text.length; ) {
    if (text[at] === '"') at = stringEnd(text, at);
    else if (/[-0-9]/.test(text[at])) {
      token.lastIndex = at;
      const [found] = token.exec(text);
      yield found;
      at += found.length;
    } else at += 1;
  }
}

/** The place after the string that begins at `at`. */
function stringEnd(text, at) {
  for (at += 1; text[at] !== '"'; at += 1) {
    if (text[at] === "\\") at += 1;
  }
  return at + 1;
}

/** The same for all ways to write a number: 1, 1.0 and 10e-1. */
function decimal(token) {
  const [, sign, whole, fraction = "", exponent = "0"] = NUMBER.exec(token);
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  if (kept === "") return "0";
  return `${sign}${kept}e${Number(exponent) - fraction.length + digits.length - kept.length}`;
}
