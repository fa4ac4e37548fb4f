// The forms of the wallet: a transfer, a turn of a conversation, a request for a run, taking one back,
// refusing a reward that is held.

import { h, swap } from "../dom.js";
import { ADDRESS, HASH, parseOmbra } from "../format.js";
import { amount, empty, line, runLink, table, time } from "../parts.js";
import { call, runsOf } from "../rpc.js";
import { propose } from "./wallet-send.js";

/** A labelled field; `tag` is `input` unless it is said. */
export function field(name, label, { tag = "input", hint = null, ...attributes } = {}) {
  const id = `field-${name}`;
  const input = h(tag, { id, name, autocomplete: "off", spellcheck: "false", ...attributes });
  const note = hint === null ? null : h("small", { id: `${id}-hint`, class: "faint" }, hint);
  if (note) input.setAttribute("aria-describedby", note.id);
  return { input, box: h("div", { class: "field" }, h("label", { for: id }, label), input, note) };
}

/** Runs when a form is sent; says below it what went wrong. */
export function busy(form, run) {
  const wrong = h("p", { class: "wrong", role: "alert" });
  form.append(wrong);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const buttons = [...form.querySelectorAll("button")];
    for (const button of buttons) button.disabled = true;
    swap(wrong);
    try {
      await run();
    } catch (error) {
      swap(wrong, line(error.message, 400));
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  });
}

/** The forms, one below the other, each behind its name. */
export function forms(context) {
  const part = (name, isOpen, body) => h("details", { class: "form", open: isOpen, name: "forms" }, h("summary", {}, name), body);
  return [
    part("Send a transfer", context.conversationId === undefined, transfer(context)),
    part("Write a turn", context.conversationId !== undefined, turn(context)),
    part("Ask for an agent run", false, request(context)),
    part("Take back a run", false, cancel(context)),
    part("Refuse a reward", false, refuse(context)),
  ];
}

function form(button, fields, run) {
  const made = h("form", { class: "stack" }, fields.map(({ box }) => box), h("button", { type: "submit" }, button));
  busy(made, run);
  return made;
}

const text = ({ input }) => input.value;

function matching(name, one, shape, expected) {
  const value = text(one).trim();
  if (!shape.test(value)) throw new Error(`${name}: expected ${expected}`);
  return value;
}

function transfer(context) {
  const to = field("to", "To", { required: true, maxlength: 42, hint: "an address, 40 hex characters" });
  const sum = field("amount", "Amount in OMBRA", { required: true, inputmode: "decimal" });
  const fee = field("fee", "Fee in OMBRA", { value: "0", inputmode: "decimal", hint: "goes to the proposer of the block" });
  return form("Send …", [to, sum, fee], () => propose(context, "TRANSFER", {
    to: matching("To", to, ADDRESS, "an address, 40 hex characters"),
    amount: parseOmbra(text(sum), "Amount"),
    fee: parseOmbra(text(fee), "Fee"),
  }));
}

function turn(context) {
  const conversation = field("conversation", "Conversation", { value: context.conversationId ?? "", maxlength: 64, hint: "64 hex characters; leave it empty to begin a new one" });
  const content = field("content", "Text", { tag: "textarea", rows: 3, required: true });
  return form("Write …", [conversation, content], async () => {
    const { library, key } = context;
    const conversationId = text(conversation).trim() === ""
      ? await library.computeConversationId(key.address, String(Math.random()))
      : matching("Conversation", conversation, HASH, "64 hex characters");
    await propose(context, "CHAT_TURN", { conversationId, role: "user", content: text(content) }, ["conversation", conversationId]);
    conversation.input.value = conversationId;
  });
}

function request(context) {
  const prompt = field("prompt", "Prompt", { tag: "textarea", rows: 3, required: true });
  const budget = field("budget", "Budget in OMBRA", { value: "0.1", inputmode: "decimal", hint: "held until the run ends; what is not used comes back" });
  const steps = field("steps", "Most steps", { type: "number", value: "8", min: 1, max: 200 });
  const tools = field("tools", "Tools allowed", { value: context.library.DEFAULT_TOOLS.join(", "), hint: "names with commas between them; may be empty" });
  const conversation = field("run-conversation", "Conversation", { maxlength: 64, hint: "leave it empty to begin a new one" });
  const unprotected = field("unprotected", "Without protection", { type: "checkbox", hint: "from fork v7 on, runs are protected: the miner has something at stake, and its reward is held for ten minutes, in which you may refuse it" });
  return form("Ask …", [prompt, budget, steps, tools, conversation, unprotected], async () => {
    const fields = {
      prompt: text(prompt),
      maxFee: parseOmbra(text(budget), "Budget"),
      maxSteps: Number(text(steps)),
      toolsWhitelist: text(tools).split(",").map((name) => name.trim()).filter((name) => name !== ""),
    };
    if (text(conversation).trim() !== "") fields.conversationId = matching("Conversation", conversation, HASH, "64 hex characters");
    const guard = unprotected.input.checked ? {} : await protection(context, fields.maxFee);
    return propose(context, "AGENT_REQUEST", { ...fields, ...guard });
  });
}

/** What protects a run, on a chain that has it: only there the schedule of fees has a base fee. */
async function protection({ page, library }, maxFee) {
  const { baseFee } = await call("ombra_feeSchedule", [], page.signal);
  return baseFee === undefined ? {} : library.protection(maxFee);
}

/** Runs of this account whose reward is held: it is burned if the submitter refuses it. */
function refuse(context) {
  const { page, key } = context;
  const list = page.part({
    load: (signal) => runsOf({ submitter: key.address }, 30, signal),
    draw: ({ items }) => {
      const held = items.filter(({ heldUntil }) => heldUntil !== undefined);
      if (held.length === 0) return empty("No reward of a run of this account is held.");
      return table("Rewards that are held", ["Run", "Asked for", "Reward", "Until", "Do"], held.map((run) => [
        runLink(run.agentRunId), line(run.prompt, 50), amount(run.minerReward), time(run.heldUntil), refusing(context, run.agentRunId)]));
    },
    follow: true,
  });
  return [h("p", { class: "faint" }, "Refusing burns the reward, about as much of the miner's bond, and a stake of your own. Nothing comes back."), list.box];
}

function refusing(context, agentRunId) {
  const made = h("form", {}, h("button", { type: "submit", "aria-label": `Refuse the reward of run ${agentRunId.slice(0, 8)}` }, "Refuse …"));
  busy(made, () => propose(context, "AGENT_REFUSE", { agentRunId }, ["run", agentRunId]));
  return made;
}

/** Runs of this account that nobody has claimed. */
function cancel(context) {
  const { page, key } = context;
  const list = page.part({
    load: (signal) => runsOf({ submitter: key.address, status: "pending" }, 30, signal),
    draw: ({ items }) => {
      if (items.length === 0) return empty("No run of this account waits for a miner.");
      return table("Runs that wait", ["Run", "Asked for", "Budget", "Do"], items.map((run) => [
        runLink(run.agentRunId), line(run.prompt, 50), amount(run.maxFee), taking(context, run.agentRunId)]));
    },
    follow: true,
  });
  return list.box;
}

function taking(context, agentRunId) {
  const made = h("form", {}, h("button", { type: "submit", "aria-label": `Take back run ${agentRunId.slice(0, 8)}` }, "Take back …"));
  busy(made, () => propose(context, "AGENT_CANCEL", { agentRunId }, ["run", agentRunId]));
  return made;
}
