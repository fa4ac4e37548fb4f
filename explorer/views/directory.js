// The miners of the chain; a blob with its record and its content.

import { content } from "../blob.js";
import { h } from "../dom.js";
import { bytes, count } from "../format.js";
import { address, amount, card, empty, facts, line, more, plainHash, row, table, time } from "../parts.js";
import { call } from "../rpc.js";

const COLUMNS = ["Name", "Address", "Model", "Capabilities", "Runs", "Tokens", "Earned"];

const cells = (one) => [
  line(one.name, 60), address(one.address), line(one.modelInfo, 60),
  one.capabilities.length === 0 ? "–" : h("ul", { class: "words" }, one.capabilities.slice(0, 6).map((word) => h("li", {}, line(word, 64))), one.capabilities.length > 6 ? h("li", {}, `and ${one.capabilities.length - 6} more`) : null),
  h("span", { title: "completed of claimed" }, `${count(one.runsCompleted)} of ${count(one.runsClaimed)}`),
  count(one.tokens), amount(one.earnings),
];

export function miners(page) {
  const list = page.part({
    load: (signal) => call("ombra_listMiners", [{ limit: 100 }], signal),
    draw: ({ items, nextCursor }) => {
      if (items.length === 0) return empty("Nobody has registered as a miner yet.");
      const shown = table("Miners", COLUMNS, items.map(cells));
      let cursor = nextCursor;
      if (cursor === null) return shown;
      const button = more(async () => {
        const next = await call("ombra_listMiners", [{ limit: 100, cursor }], page.signal);
        shown.querySelector("tbody").append(...next.items.map((one) => row(COLUMNS, cells(one))));
        cursor = next.nextCursor;
        if (cursor === null) button.remove();
      });
      return [shown, button];
    },
  });
  // Who is here twice cannot be told by the name: anybody may take any.
  page.subscribe("transactions", { type: "MINER_REGISTER" }, list.refresh);
  page.onPolled(list.refresh);
  page.show("Miners", h("p", { class: "faint" }, "Miners choose their own names, and nobody checks them. Tell miners apart by their addresses."), h("section", { class: "card" }, list.box));
}

export function blob(page, [id]) {
  let isFinal = false;
  const whole = page.part({
    load: (signal) => call("ombra_getBlob", [id], signal),
    draw: (found) => {
      isFinal = found.final;
      return [card(null, record(found)), card("Content", content(page, "content", id))];
    },
  });
  page.onBlock(() => {
    if (!isFinal) whole.refresh();
  });
  page.show("Blob", whole.box);
}

const record = (found) => facts([
  ["Blob", line(found.blobId, 128)],
  ["Owner", address(found.owner, true)],
  ["Content type, as its owner says", line(found.contentType, 256)],
  ["Size", `${bytes(found.totalBytes)} (${count(found.totalBytes)} bytes)`],
  ["Chunks", `${count(found.received)} of ${count(found.totalChunks)}`],
  ["State", found.final ? h("span", { class: "badge good" }, "final") : h("span", { class: "badge waits" }, "unfinished")],
  ["Hash of the content", plainHash(found.contentHash, "hash", true)],
  ["Begun", time(found.createdAt, { full: true })],
]);
