// The methods of an agent as a form: its fields make the payload, the node estimates what it costs,
// and the wallet of this page signs the call.

import { readable } from "../call-data.js";
import { h, swap } from "../dom.js";
import { count, ombra, parseOmbra } from "../format.js";
import { held, openLibrary, signing } from "../keyring.js";
import { address, amount, empty, facts, line, link, prices, usage } from "../parts.js";
import { call } from "../rpc.js";
import { busy, field } from "./wallet-forms.js";
import { propose, sentList } from "./wallet-send.js";

const SIZES = [1, 3, 5, 7, 9, 11, 13, 15];
const TIMEOUT_S = 60;

/** Puts the form for a version of an agent into a box. */
export async function callForm(page, box, found, methods) {
  swap(box, empty("Loading …"));
  const library = await openLibrary(page);
  if (page.isLeft) return;
  if (held.key === null) {
    swap(box, h("p", {}, "To call it, ", link(["wallet"], "open a key in the wallet"), " first."));
  } else if (found.retired) {
    swap(box, empty("It takes no calls."));
  } else if (methods.length === 0) {
    swap(box, empty("This page does not understand its methods."));
  } else {
    const sent = sentList(page, held.sent, () => {});
    const context = { ...signing(page, library, sent), found, methods };
    swap(box, h("p", { class: "faint" }, "Signed and paid by ", address(held.key.address)), fields(context), h("h3", {}, "Sent from here"), sent.box);
  }
}

function fields(context) {
  const { methods, found } = context;
  const choose = select("method", "Method", methods.map(({ signature }) => signature));
  const size = select("members", "Members", SIZES, found.version.deterministic
    ? "drawn by lot; more than half have to agree"
    : "drawn by lot; the answers cannot be compared, so those of more than half are collected, and each is paid, an empty one like an honest one");
  size.input.value = "3";
  const timeout = field("timeout", "Seconds to commit", { type: "number", value: String(TIMEOUT_S), min: 10, max: 600 });
  const doubt = field("appealable", "Can be appealed", { type: "checkbox", hint: "for a while, anyone may appeal the answer; needs three times as many miners plus one" });
  const most = field("call-budget", "Held at most, in OMBRA", { inputmode: "decimal", hint: "what is not used comes back; empty: the least for the estimate" });
  const inputs = h("div", { class: "stack" });
  const shown = h("div", { "aria-live": "polite" });
  const parts = { choose, size, timeout, doubt, most, inputs, shown, arguments: [] };
  const change = () => {
    parts.arguments = method(context, parts).inputs.map(argument);
    swap(inputs, parts.arguments.map(({ box }) => box));
    swap(shown);
  };
  choose.input.addEventListener("change", change);
  change();
  const boxes = [choose.box, inputs, size.box, timeout.box, found.version.deterministic ? doubt.box : null, most.box, shown];
  const ask = h("button", { type: "button", id: "estimate" }, "Estimate");
  const form = h("form", { class: "stack" }, boxes, h("p", { class: "turns" }, ask, h("button", { type: "submit", class: "strong" }, "Call …")));
  busy(form, () => send(context, parts));
  ask.addEventListener("click", async () => {
    try {
      await estimate(context, parts);
    } catch (error) {
      swap(shown, h("p", { class: "wrong", role: "alert" }, line(error.message, 400)));
    }
  });
  return form;
}

/** A labelled choice. */
function select(name, label, values, hint = null) {
  const made = field(name, label, { tag: "select", hint });
  made.input.append(...values.map((value) => h("option", { value }, String(value))));
  return made;
}

const method = ({ methods }, { choose }) => methods.find(({ signature }) => signature === choose.input.value) ?? methods[0];

const isPlain = (type) => type.item === undefined && type.components === undefined;

/** How an array or a tuple is written, as JSON. */
function shape(type) {
  if (type.item) return `[${shape(type.item)}, …]`;
  if (type.components) return `{${type.components.map(({ name, type: own }, at) => `"${name || at}": ${shape(own)}`).join(", ")}}`;
  return type.name === "bool" ? "true" : `"${type.name}"`;
}

/** The field of an input, and what is in it. */
function argument({ name, type }, at) {
  const label = `${name || `Argument ${at + 1}`}, ${type.name.length > 60 ? "JSON" : type.name}`;
  if (type.name === "bool") {
    const made = select(`arg-${at}`, label, ["true", "false"]);
    return { box: made.box, read: () => made.input.value === "true" };
  }
  if (isPlain(type)) {
    const isText = type.name === "string";
    const more = isText ? { tag: "textarea", rows: 2 } : { hint: type.name.startsWith("bytes") ? "hex with 0x" : null };
    const made = field(`arg-${at}`, label, { ...more, maxlength: 16_384 });
    return { box: made.box, read: () => (isText ? made.input.value : made.input.value.trim()) };
  }
  const made = field(`arg-${at}`, label, { tag: "textarea", rows: 3, hint: `JSON such as ${shape(type).slice(0, 300)}` });
  return { box: made.box, read: () => parsed(name || `argument ${at + 1}`, made.input.value) };
}

function parsed(name, text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${name}: this is not JSON`);
  }
}

/** What is asked, encoded; what is wrong in an argument is an error that names it. */
function question(context, parts) {
  const payload = method(context, parts).encode(parts.arguments.map(({ read }) => read()));
  const { found } = context;
  const asked = { agentId: found.agentId, version: found.version.version, committeeSize: Number(parts.size.input.value), payload };
  if (!found.version.deterministic) return { ...asked, threshold: Math.floor(asked.committeeSize / 2) + 1 };
  return parts.doubt.input.checked ? { ...asked, appealable: true } : asked;
}

/** What the node says that it costs, shown in the form. */
async function estimate(context, parts) {
  const asked = question(context, parts);
  const found = await call("ombra_estimateCall", [asked], context.page.signal);
  swap(parts.shown, facts([
    ["Miners at these prices", `${count(found.eligible)}, ${count(found.needed)} are needed`],
    ["Pays each member", prices(found.prices)],
    ["Each may use", usage(found.limits)],
    ["Costs a member at most", amount(found.budget)],
    ["Held", amount(found.maxFee)],
  ]), found.eligible < found.needed ? h("p", { class: "wrong", role: "alert" }, "Too few miners: the call would come back unassigned.") : null);
  return { asked, found };
}

async function send(context, parts) {
  const { asked, found } = await estimate(context, parts);
  const { version: agentVersion, ...rest } = asked;
  const typed = parts.most.input.value.trim();
  const maxFee = typed === "" ? found.maxFee : parseOmbra(typed, "Held at most");
  if (BigInt(maxFee) < BigInt(found.floor)) throw new Error(`Held at most: the chain requires at least ${ombra(found.floor)} OMBRA`);
  const called = method(context, parts);
  const about = [h("p", {}, "It asks ", h("strong", {}, line(context.found.name, 64)), ": ", h("code", { class: "long" }, line(called.signature, 1000))),
    readable(asked.payload, () => called.decode(asked.payload))];
  return propose({ ...context, about }, "AGENT_CALL", {
    ...rest, agentVersion, consensus: rest.threshold === undefined ? "majority" : "threshold", prices: found.prices, limits: found.limits, maxFee,
    timeoutMs: Number(parts.timeout.input.value) * 1000,
  });
}
