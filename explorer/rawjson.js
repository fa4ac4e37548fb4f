// JSON as it was written. `JSON.parse` would round large numbers and lose how they were written; who
// wants to check a hash needs the text.

const SPACE = /[ \t\r\n]/;

function skipSpace(text, at) {
  while (at < text.length && SPACE.test(text[at])) at += 1;
  return at;
}

/** The place after the string that begins at `at`. */
function stringEnd(text, at) {
  for (at += 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  throw new Error("a string without an end");
}

/** The place after the value that begins at `at`. */
function valueEnd(text, at) {
  let depth = 0;
  while (at < text.length) {
    const character = text[at];
    if (character === '"') at = stringEnd(text, at);
    else if (character === "{" || character === "[") [depth, at] = [depth + 1, at + 1];
    else if (character === "}" || character === "]") {
      if (depth === 0) return at;
      [depth, at] = [depth - 1, at + 1];
    } else if (depth === 0 && (character === "," || SPACE.test(character))) return at;
    else at += 1;
    if (depth === 0 && (text[at - 1] === "}" || text[at - 1] === "]" || character === '"')) return at;
  }
  return at;
}

/** The text of the member that the names lead to, or `null`. */
export function member(text, names) {
  let at = skipSpace(text, 0);
  for (const name of names) {
    if (text[at] !== "{") return null;
    at = skipSpace(text, at + 1);
    for (;;) {
      if (text[at] !== '"') return null;
      const end = stringEnd(text, at);
      const key = JSON.parse(text.slice(at, end));
      at = skipSpace(text, skipSpace(text, end) + 1);
      if (key === name) break;
      at = skipSpace(text, valueEnd(text, at));
      at = skipSpace(text, at + 1);
    }
  }
  return text.slice(at, valueEnd(text, at));
}

/** The deepest level that is moved to the right: deeper ones would fill the memory with spaces. */
const DEEPEST = 32;

/** The same text on several lines; strings and numbers are as they were. */
export function indented(text) {
  const out = [];
  let [depth, last] = [0, ""];
  const newLine = () => `\n${"  ".repeat(Math.min(depth, DEEPEST))}`;
  for (let at = 0; at < text.length; ) {
    const character = text[at];
    if (SPACE.test(character)) {
      at += 1;
      continue;
    }
    const isOpened = last === "{" || last === "[";
    last = character;
    if (character === '"') {
      const end = stringEnd(text, at);
      out.push(isOpened ? newLine() : "", text.slice(at, end));
      at = end;
      continue;
    }
    at += 1;
    if (character === "}" || character === "]") {
      depth -= 1;
      out.push(isOpened ? "" : newLine(), character);
      continue;
    }
    out.push(isOpened ? newLine() : "", character);
    if (character === "{" || character === "[") depth += 1;
    else if (character === ",") out.push(newLine());
    else if (character === ":") out.push(" ");
  }
  return out.join("");
}
