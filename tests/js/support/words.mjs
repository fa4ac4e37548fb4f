// Random texts that are hard to write as JSON, the same for the same seed.

const HARD = [
  "\u0000",
  "\u0007",
  "\b",
  "\t",
  "\n",
  "\u000b",
  "\f",
  "\r",
  "\u001f",
  "\u007f",
  "\u0080",
  "\u0085",
  '"',
  "\\",
  "/",
  "</script>",
  "\\u0041",
  "\\ud83d",
  "{}",
  "[]",
  "null",
  "ț",
  "é",
  "e\u0301",
  "你好",
  "\u2028",
  "\u2029",
  "\ufeff",
  "\ufffd",
  "\uffff",
  "\u{10000}",
  "😀",
  "👩‍👩‍👧‍👦",
  "\u{10ffff}",
  "a",
  " ",
];

/** A source of numbers below a bound (mulberry32). */
export function numbers(seed) {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}

/** A text of up to `most` pieces: hard ones, and any character that is no half of a pair. */
export function text(next, most) {
  const piece = () => {
    if (next(3) > 0) return HARD[next(HARD.length)];
    const point = next(0x110000);
    return point >= 0xd800 && point < 0xe000 ? "😀" : String.fromCodePoint(point);
  };
  return Array.from({ length: 1 + next(most) }, piece).join("");
}
