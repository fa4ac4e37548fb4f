// What is in a blob, shown where a person meets it. The bytes are a stranger's: they become text, or
// the pixels of a picture when somebody asks for it; never markup, and never an address.

import { fileLink, h, pixels, swap, whenSeen } from "./dom.js";
import { BLOB, bytes as size, count } from "./format.js";
import { toHex } from "./lib/bytes.js";
import { sha256 } from "./lib/hash.js";
import { blobLink, empty, line, loading, problem } from "./parts.js";
import { indented } from "./rawjson.js";
import { blobBytes, call } from "./rpc.js";
import { block } from "./text.js";

/** Larger blobs are not loaded before somebody asks for them. */
const SMALL_MAX = 64 * 1024;
/** Larger ones are only files to be kept: the page holds a blob as a whole, to check its hash. */
const LOADED_MAX = 32 * 1024 ** 2;
/** The longest JSON that is shown on several lines. */
const JSON_MAX = 256 * 1024;
/** How many bytes are shown of what is neither text nor a picture. */
const RAW_MAX = 512;
/** A picture takes four bytes for each of its pixels, however few bytes it came in. */
const PIXELS_MAX = 24_000_000;
const WIDTH_MAX = 1_200;

/** The content of a blob, asked for when somebody is about to see it. `place` is where on the page it is. */
export function content(page, place, id) {
  if (!BLOB.test(id)) return blobLink(id);
  return page.keep(`${place} ${id}`, () => {
    const box = h("div", { class: "blob" }, empty(`Blob ${id}`));
    whenSeen(box, () => {
      if (!page.isLeft) swap(box, looked(page, id));
    });
    return box;
  });
}

/** The same, to be unfolded. */
export const folded = (page, place, title, id) =>
  page.keep(`folded ${place} ${id}`, () => h("details", { class: "folded" }, h("summary", {}, title), content(page, place, id)));

/** Asks for the record of the blob until it is final, because then it does not change any more. */
function looked(page, id) {
  let shown = null;
  const part = page.part({
    load: async (signal) => {
      try {
        return shown === null ? await call("ombra_getBlob", [id], signal) : null;
      } catch (error) {
        if (error.isNotFound) return null;
        throw error;
      }
    },
    draw: (record) => {
      if (record?.final) shown ??= known(page, record);
      if (shown !== null) return shown;
      return empty(record === null ? `There is no blob ${id} on this chain.` : `Blob ${id} is not finished: ${count(record.received)} of ${count(record.totalChunks)} chunks are there.`);
    },
    pause: 2000,
  });
  page.onBlock(() => {
    if (shown === null) part.refresh();
  });
  return part.box;
}

function known(page, record) {
  const { blobId: id, contentType, totalBytes } = record;
  const verdict = h("span", {});
  const body = h("div", {});
  const load = async () => {
    swap(body, loading());
    try {
      const found = await blobBytes(id, page.signal);
      const isRight = toHex(await sha256(found)) === record.contentHash;
      swap(verdict, isRight ? h("span", { class: "fine" }, "✓ hash checked") : null);
      swap(body, isRight ? drawn(found, contentType) : h("p", { class: "wrong" }, "✗ The content does not have the hash of this blob, so it is not shown."));
    } catch (error) {
      if (!page.isLeft) swap(body, problem(error, load));
    }
  };
  if (totalBytes <= SMALL_MAX) load();
  else if (totalBytes <= LOADED_MAX) swap(body, h("button", { type: "button", on: { click: load } }, `Show ${size(totalBytes)}`));
  else swap(body, empty("It is too large to be shown here."));
  return [h("p", { class: "by" }, "Blob ", blobLink(id), h("span", { class: "faint" }, line(contentType, 60), `, ${size(totalBytes)}`), verdict, fileLink(id, "Save as a file")), body];
}

/** What the bytes are, they say themselves; what their owner calls them only tells text from bytes. */
function drawn(bytes, claimed) {
  const picture = pictureOf(bytes);
  if (picture !== null) return offered(bytes, picture);
  const text = textOf(bytes, false);
  if (text !== null && !text.includes("\0")) {
    const pretty = prettyJson(text);
    return pretty === null ? block(text) : block(pretty, { mono: true });
  }
  if (/^text\/|json|xml|javascript/i.test(claimed)) return [h("p", { class: "faint" }, "Parts of this are not UTF-8 text; they are shown as �."), block(textOf(bytes, true))];
  return [h("p", { class: "faint" }, bytes.length > RAW_MAX ? `No text. Its first ${RAW_MAX} bytes:` : "No text. Its bytes:"), block(raw(bytes.subarray(0, RAW_MAX)), { mono: true })];
}

function textOf(bytes, isLossy) {
  try {
    return new TextDecoder("utf-8", { fatal: !isLossy, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** JSON on several lines, or `null`. */
function prettyJson(text) {
  if (text.length > JSON_MAX || !/^\s*[[{]/.test(text)) return null;
  try {
    JSON.parse(text);
    return indented(text);
  } catch {
    return null;
  }
}

function raw(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const part = [...bytes.subarray(at, at + 16)];
    const seen = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "."));
    lines.push(`${toHex([at >> 8, at & 255])}  ${part.map((byte) => toHex([byte])).join(" ").padEnd(47)}  ${seen.join("")}`);
  }
  return lines.join("\n");
}

// ---- pictures ---------------------------------------------------------------------------------

/** Kind and size of a picture as its first bytes tell them, or `null`. Drawings (SVG) are text. */
export function pictureOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const starts = (at, text) => [...text].every((character, index) => bytes[at + index] === character.charCodeAt(0));
  try {
    if (starts(0, "\x89PNG\r\n\x1a\n")) return { kind: "PNG", width: view.getUint32(16), height: view.getUint32(20) };
    if (starts(0, "\xff\xd8\xff")) return jpeg(view);
    if (starts(0, "RIFF") && starts(8, "WEBP")) return webp(view, starts);
  } catch {
    // It breaks off before its size.
  }
  return null;
}

function jpeg(view) {
  for (let at = 2; view.getUint8(at) === 0xff; at += 2 + view.getUint16(at + 2)) {
    const marker = view.getUint8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { kind: "JPEG", width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
  }
  return null;
}

function webp(view, starts) {
  const three = (at) => view.getUint16(at, true) + view.getUint8(at + 2) * 65_536;
  const of = (width, height) => ({ kind: "WebP", width, height });
  if (starts(12, "VP8X")) return of(three(24) + 1, three(27) + 1);
  if (starts(12, "VP8L")) return of((view.getUint32(21, true) & 0x3fff) + 1, ((view.getUint32(21, true) >>> 14) & 0x3fff) + 1);
  if (starts(12, "VP8 ")) return of(view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff);
  return null;
}

const MEDIA = { PNG: "image/png", JPEG: "image/jpeg", WebP: "image/webp" };

/** A button: nobody sees a stranger's picture, and no decoder its bytes, unless somebody wants that. */
function offered(bytes, { kind, width, height }) {
  const name = `${kind} picture, ${count(width)} × ${count(height)}`;
  if (width * height > PIXELS_MAX) return empty(`${name}: too many pixels to be shown here.`);
  const box = h("div", {}, h("button", { type: "button", on: { click: show } }, `Show the ${name}`));
  async function show() {
    try {
      const isWide = width > WIDTH_MAX;
      const bitmap = await createImageBitmap(new Blob([bytes], { type: MEDIA[kind] }), isWide ? { resizeWidth: WIDTH_MAX, resizeQuality: "high" } : {});
      swap(box, pixels(bitmap, name));
    } catch {
      swap(box, h("p", { class: "wrong" }, `This ${name} cannot be read.`));
    }
  }
  return box;
}
