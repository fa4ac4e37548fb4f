// The agents of the market: the list with its search, and one agent with what it can be asked.

import { h, route } from "../dom.js";
import { bytes, count } from "../format.js";
import { agentMethods } from "../lib/agent-abi.js";
import { toHex, utf8 } from "../lib/bytes.js";
import { sha256 } from "../lib/hash.js";
import { address, agentLink, amount, block, card, empty, facts, height, line, link, plainHash, prices, status, table, time, words } from "../parts.js";
import { indented } from "../rawjson.js";
import { call, callAll, callsOf, listOf } from "../rpc.js";
import { callForm } from "./agent-call.js";
import { callTable } from "./calls.js";

const SHOWN = 30;
const OFFERS = 12;
const EXECUTORS = 4;
const CALLS = 10;
const VERSIONS = 50;
const COLUMNS = ["Agent", "Name", "For", "Owner", "Version", "Royalty", "Changed"];
const FILTERS = /^(tag|owner|executor):(.+)$/;

/** `tag:text owner:ADDRESS review` as a filter: what has no name is looked for in the text. */
function filterOf(query) {
  const [filter, text] = [{}, []];
  for (const word of query.split(/\s+/).filter((one) => one !== "")) {
    const named = FILTERS.exec(word);
    if (named) filter[named[1]] = named[2];
    else if (word === "deterministic") filter.deterministic = true;
    else text.push(word);
  }
  return text.length === 0 ? filter : { ...filter, text: text.join(" ") };
}

const cells = (one) => [
  agentLink(one.agentId), [line(one.name, 64), one.retired ? [" ", status("retired")] : null], line(one.description, 90), address(one.owner),
  [line(one.latest, 30), one.versions > 1 ? h("span", { class: "faint" }, ` of ${count(one.versions)}`) : null],
  amount(one.version.royalty), time(one.changedAt),
];

/** The agents; those that a query wants. */
export function agents(page, [query = ""]) {
  const filter = filterOf(query);
  const list = page.part({
    load: (signal) => listOf("ombra_listAgents", filter, SHOWN, signal),
    draw: (first) => listed(page, filter, first),
  });
  page.subscribe("agents", {}, list.refresh);
  page.onPolled(list.refresh);
  page.show("Agents", card(null, searchForm(query)), h("section", { class: "card" }, list.box));
}

function searchForm(query) {
  const input = h("input", { id: "agents-query", type: "search", value: query, maxlength: 200, autocomplete: "off", spellcheck: "false", "aria-describedby": "agents-hint" });
  const form = h("form", { class: "stack", role: "search" },
    h("div", { class: "field" }, h("label", { for: "agents-query" }, "Find agents"), input,
      h("small", { id: "agents-hint", class: "faint" }, "a part of the name, the description or a tag; tag:TAG, owner:ADDRESS, executor:ID and deterministic narrow it down")),
    h("button", { type: "submit" }, "Find"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = input.value.trim();
    location.hash = wanted === "" ? route("agents") : route("agents", wanted);
  });
  return form;
}

function listed(page, filter, { items, nextCursor }) {
  if (items.length === 0 && nextCursor === null) return empty("There is no such agent.");
  const shown = h("div", {}, table("Agents", COLUMNS, items.map(cells), { none: "None among the first; there are more to look at." }));
  let cursor = nextCursor;
  if (cursor === null) return shown;
  const button = h("button", { type: "button", class: "more" }, "Look further");
  button.addEventListener("click", async () => {
    const next = await listOf("ombra_listAgents", filter, SHOWN, page.signal, cursor);
    shown.append(table("More agents", COLUMNS, next.items.map(cells), { none: "None among these." }));
    cursor = next.nextCursor;
    if (cursor === null) button.remove();
  });
  return [shown, button];
}

/** One agent, in the version that is wanted or the latest. */
export function agent(page, [id, version]) {
  const wanted = version === undefined ? [id] : [id, version];
  const form = h("div", {});
  let drawn = null;
  const whole = page.part({
    load: async (signal) => {
      const found = await call("ombra_getAgent", wanted, signal);
      return { found, hash: toHex(await sha256(utf8(found.metadata))) };
    },
    draw: ({ found, hash }) => {
      page.title(`Agent ${found.name}`);
      const methods = methodsOf(found);
      // What somebody has typed stays while the page around it is drawn anew.
      if (drawn !== hash) callForm(page, form, found, methods);
      drawn = hash;
      return [card(line(found.name, 64), standing(found, hash === found.version.metadataHash)), card("Its methods", ...methods.map(described))];
    },
    pause: 2000,
  });
  page.subscribe("agents", { agentId: id }, whole.refresh);
  page.onPolled(whole.refresh);
  const offers = page.part({ load: (signal) => offersFor(wanted, signal), draw: offering, pause: 5000, follow: true });
  const asked = page.part({
    load: (signal) => callsOf({ agentId: id }, CALLS, signal),
    draw: ({ items }) => card("Latest calls", callTable("Latest calls", items, "Nobody has called it yet.")),
    pause: 2000, follow: true,
  });
  const versions = page.part({
    load: (signal) => call("ombra_getAgentVersions", [id, { limit: VERSIONS }], signal),
    draw: ({ items }) => card("Versions", table("Versions", ["Version", "Registered", "Block", "Royalty", "Metadata"], items.map((one) => [
      link(["agent", id, one.version], line(one.version, 64)), time(one.registeredAt), height(one.blockIndex), amount(one.royalty), plainHash(one.metadataHash, "hash of the metadata")]))),
    pause: 5000,
  });
  page.show("Agent", whole.box, card("Call it", form), asked.box, offers.box, versions.box);
}

/** The methods as the form encodes them; none if this page does not understand them. */
function methodsOf({ metadata }) {
  try {
    return agentMethods(metadata);
  } catch {
    return [];
  }
}

function standing(found, isRight) {
  const { version } = found;
  return [
    block(found.description),
    facts([
      ["Agent", plainHash(found.agentId, "agent id", true)],
      ["Owner", address(found.owner, true)],
      ["Version", [line(version.version, 64), version.version === found.latest ? null : [", the latest is ", link(["agent", found.agentId], line(found.latest, 64))]]],
      ["Calls", found.retired ? [status("retired"), " it takes none until a higher version is registered"] : null],
      ["Tags", found.tags.length === 0 ? null : words(found.tags)],
      ["Needs from a miner", h("ul", { class: "words" }, version.executors.map((one) => h("li", {}, line(one, 80))))],
      ["Tools", words(version.tools)],
      ["Answers can be compared", version.deterministic ? "yes, it is deterministic" : "no"],
      ["Royalty for a success", amount(version.royalty)],
      ["Registered", [time(version.registeredAt, { full: true }), " in block ", height(version.blockIndex)]],
      ["Metadata", [plainHash(version.metadataHash, "hash of the metadata", true), ` ${bytes(version.metadataBytes)}`,
        h("p", { class: isRight ? "fine" : "wrong" }, isRight ? "✓ This browser has computed the same hash from the text." : "✗ This is not the hash of the text.")]],
    ]),
    h("details", {}, h("summary", {}, "The metadata"), block(indented(found.metadata), { mono: true, max: 20_000 })),
  ];
}

const listText = (parameters) => parameters.map(({ name, type }) => `${type.name}${name === "" ? "" : ` ${name}`}`).join(", ");

const described = (method) => h("p", {}, h("code", { class: "long" }, line(`${method.name}(${listText(method.inputs)})`, 1000)),
  " gives ", h("code", { class: "long" }, line(`(${listText(method.outputs)})`, 1000)), " ", h("span", { class: "faint" }, method.selector));

/** The offers that count for what the agent needs, those of the largest bonds first. */
async function offersFor(wanted, signal) {
  const { version } = await call("ombra_getAgent", wanted, signal);
  const executors = version.executors.slice(0, EXECUTORS);
  const answers = await callAll(executors.map((executor) => ["ombra_listOffers", [{ executor }, { limit: OFFERS }]]), signal);
  return executors.map((executor, index) => ({ executor, items: answers[index].items ?? [] }));
}

export const OFFER_COLUMNS = ["Miner", "Bond", "Free", "Works at", "Lowest prices", "Counts"];

export const offerRow = (one) => [
  address(one.miner), amount(one.bonded), amount(one.free), `${count(one.open)} of ${count(one.capacity)}`, prices(one),
  one.counts === undefined ? "–" : one.counts ? "yes" : "no",
];

const offering = (lists) => lists.map(({ executor, items }) =>
  card(["Offers for ", line(executor, 80)], table("Offers", OFFER_COLUMNS, items.map(offerRow), { none: "No miner has an offer for it, so a call would find nobody." })));
