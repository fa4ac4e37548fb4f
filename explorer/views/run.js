// One agent run from request to settlement, as it unfolds.

import { content, folded } from "../blob.js";
import { h } from "../dom.js";
import { count, duration, ombra } from "../format.js";
import { toolCalls } from "../kinds.js";
import { address, amount, block, card, empty, facts, height, line, plainHash, runLink, status, table, talkLink, time, txLink, words } from "../parts.js";
import { call, runsOf } from "../rpc.js";

const OPEN = new Set(["pending", "claimed", "running"]);
const STEP_FEE = 100n;
/** maxSteps is at most 200, so a run's steps are one page. */
const STEPS_MAX = 500;

export function run(page, [id]) {
  const whole = page.part({
    load: async (signal) => {
      const [record, steps] = await Promise.all([
        call("ombra_getAgentRun", [id], signal),
        call("ombra_getAgentSteps", [id, { limit: STEPS_MAX }], signal),
      ]);
      return { record, steps: steps.items };
    },
    draw: ({ record, steps }) => {
      page.title(`Run ${id.slice(0, 8)} ${record.status}`);
      return draw(page, record, steps);
    },
    pause: 150,
  });
  page.subscribe("agentRuns", { agentRunId: id }, (event) => {
    whole.refresh();
    page.aloud(`The run: ${event.event}`);
  });
  page.onPolled(whole.refresh);
  // A run that is still to come appears when it is there, also if its event was before the page.
  let isDrawn = false;
  page.onBlock(() => {
    isDrawn ||= whole.box.querySelector(".facts") !== null;
    if (!isDrawn) whole.refresh();
  });
  page.show("Agent run", whole.box);
}

function draw(page, record, steps) {
  const isOpen = OPEN.has(record.status);
  return [
    card(null, h("p", { class: "lead" }, status(record.status), " ", progress(record)),
      budget(record),
      facts([
        ["Run", plainHash(record.agentRunId, "run id", true)],
        ["Conversation", talkLink(record.conversationId, true)],
        ["Asked by", address(record.submitter, true)],
        ["Miner", record.minerAddress ? address(record.minerAddress, true) : "nobody yet"],
        ["Model", record.modelInfo === undefined ? null : line(record.modelInfo, 256)],
        ["Hardware", record.hardwareTier === undefined ? null : line(record.hardwareTier)],
        ["Deadline", isOpen && record.deadlineAt ? time(record.deadlineAt, { full: true }) : null],
        ["Opened again", record.reopens > 0 ? `${count(record.reopens)} times` : null],
        ["Protection", record.protection === undefined ? null : guards(record)],
        ["Excluded miners", record.excludedMiners.length > 0 ? h("ul", { class: "words" }, record.excludedMiners.map((one) => h("li", {}, address(one)))) : null],
      ])),
    card("Asked for", asked(page, record)),
    card("Timeline", timeline(page, record, steps)),
    isOpen ? null : card("Settlement", settlement(record)),
    answered(page, record),
  ];
}

/** What the submitter has at stake of others, from fork v7 on. */
function guards({ protection, lockedBond }) {
  const { miners, claimBond, maxTokensPerStep, refuseMs } = protection;
  return h("ul", { class: "words" }, [
    h("li", {}, "claim bond ", amount(claimBond), lockedBond === undefined ? null : ", locked now"),
    h("li", {}, `reward held for ${duration(refuseMs)}`),
    maxTokensPerStep === undefined ? null : h("li", {}, `${count(maxTokensPerStep)} tokens a step`),
    miners.map((one) => h("li", {}, "only ", address(one))),
  ]);
}

const progress = (record) =>
  `${count(record.stepCount)} of at most ${count(record.maxSteps)} steps, ${count(record.totalTokensOut)} tokens`;

/** A structured request names its method; the prompt is shown as it is in any case. */
function asked(page, record) {
  let method = null;
  try {
    const envelope = JSON.parse(record.prompt);
    if (typeof envelope?.ombraAgent === "number" && typeof envelope.method === "string") ({ method } = envelope);
  } catch {
    // Plain text: a free-form run.
  }
  return [
    block(record.prompt),
    record.promptBlobId === undefined ? null : content(page, "prompt", record.promptBlobId),
    facts([
      ["Method", method === null ? null : line(method)],
      ["Requested model", record.modelHint === undefined ? null : line(record.modelHint, 256)],
      ["Tools allowed", words(record.toolsWhitelist)],
    ]),
  ];
}

/** Where the escrow goes, or would go if the run ended now. */
function shares(record) {
  const budget = BigInt(record.maxFee);
  if (record.minerReward !== undefined) {
    return { reward: BigInt(record.minerReward), fee: BigInt(record.networkFee), refund: BigInt(record.userRefund) };
  }
  const least = (a, b) => (a < b ? a : b);
  const fee = least(BigInt(record.stepCount) * STEP_FEE, budget);
  const reward = least(BigInt(record.totalTokensOut), budget - fee);
  return { reward, fee, refund: budget - fee - reward };
}

function budget(record) {
  const { reward, fee, refund } = shares(record);
  const isOpen = OPEN.has(record.status);
  const names = isOpen ? ["earned so far", "network fee so far", "left"] : ["to the miner", "burned", "back"];
  const parts = [[reward, "reward", names[0]], [fee, "fee", names[1]], [refund, "refund", names[2]]];
  const bar = h("div", { class: "budget", role: "img", "aria-label": `Budget ${ombra(record.maxFee)} OMBRA: ${parts.map(([value, , name]) => `${ombra(value)} ${name}`).join(", ")}` });
  const whole = BigInt(record.maxFee) || 1n;
  for (const [value, name] of parts) {
    const part = h("div", { class: name });
    part.style.setProperty("flex-grow", String(Number((value * 10_000n) / whole)));
    bar.append(part);
  }
  const legend = h("ul", { class: "legend" }, parts.map(([value, name, label]) => h("li", { class: name }, amount(value), ` ${label}`)));
  return h("div", {}, h("p", {}, "Budget ", amount(record.maxFee), isOpen ? ", in escrow" : null), bar, legend);
}

function event(at, title, rest, tx) {
  return h("li", {}, h("div", { class: "when" }, at === undefined ? null : time(at)),
    h("div", {}, h("p", {}, h("strong", {}, title), tx === undefined ? null : [" ", txLink(tx)]), rest));
}

const ENDS = {
  completed: "Completed", failed: "Failed", timeout: "Timed out", cancelled: "Cancelled", insufficient_funds: "Out of funds",
};

function timeline(page, record, steps) {
  const start = record.claimedAt ?? record.submittedAt;
  const isOpen = OPEN.has(record.status);
  const list = h("ol", { class: "timeline" },
    event(record.submittedAt, "Requested", h("p", {}, "in block ", height(record.blockIndex), ", ", amount(record.maxFee), " into escrow"), record.requestTx),
    record.reopens > 0 ? event(undefined, "Opened again", h("p", {}, `${count(record.reopens)} times, because a miner claimed it and gave it back or did nothing`)) : null,
    record.claimedAt === undefined ? null : event(record.claimedAt, "Claimed", h("p", {}, "by ", address(record.minerAddress), ` after ${duration(record.claimedAt - record.submittedAt)}`), record.claimTx),
    steps.map((one, index) => step(page, one, one.timestamp - (index === 0 ? start : steps[index - 1].timestamp))),
    record.finishedAt === undefined ? null : event(record.finishedAt, ENDS[record.status] ?? "Ended", record.finishTx === undefined ? h("p", {}, "by the chain, at a deadline") : null, record.finishTx),
    isOpen ? event(undefined, record.status === "pending" ? "Waiting for a miner …" : "Working …", record.deadlineAt ? h("p", { class: "faint" }, "The chain acts ", time(record.deadlineAt), " if nobody does.") : null) : null);
  return list;
}

function step(page, one, took) {
  const calls = one.toolCalls ?? [];
  return event(one.timestamp, `Step ${count(one.stepIndex)}`, [
    h("p", {}, `${count(one.outputTokens)} tokens, ${duration(Math.max(0, took))} after the previous one, in block `, height(one.blockIndex)),
    h("p", {}, "Output ", plainHash(one.outputHash, "hash of the output")),
    one.thoughtBlobId === undefined ? null : folded(page, `step ${one.stepIndex}`, "What it thought", one.thoughtBlobId),
    one.outputBlobId === undefined ? null : folded(page, `output ${one.stepIndex}`, "What it wrote", one.outputBlobId),
    calls.length === 0 ? null : toolCalls(calls),
  ], one.tx);
}

const settlement = (record) =>
  facts([
    ["Budget", amount(record.maxFee)],
    ["To the miner", record.minerReward === undefined ? "–" : amount(record.minerReward)],
    ["Reward held until", record.heldUntil === undefined ? null : time(record.heldUntil, { full: true })],
    ["Reward refused", record.refused === true ? "burned, the submitter refused it" : null],
    ["Network fee, burned", record.networkFee === undefined ? "–" : amount(record.networkFee)],
    ["Back to the submitter", record.userRefund === undefined ? "–" : amount(record.userRefund)],
  ]);

function answered(page, record) {
  if (record.finalAnswerInline !== undefined) return card("Answer", block(record.finalAnswerInline));
  if (record.finalAnswerBlobId !== undefined) return card("Answer", content(page, "answer", record.finalAnswerBlobId));
  return null;
}

const STATUSES = ["pending", "claimed", "running", "completed", "failed", "timeout", "cancelled", "insufficient_funds"];
const COLUMNS = ["Run", "Status", "Asked for", "Asked by", "Miner", "Budget", "When"];

export const runRow = (one) => [
  runLink(one.agentRunId), status(one.status), line(one.prompt, 80), address(one.submitter),
  one.minerAddress ? address(one.minerAddress) : "–", amount(one.maxFee), time(one.submittedAt),
];

/** Runs, newest first; all, or those of one status. */
export function runs(page, [wanted]) {
  const filter = STATUSES.includes(wanted) ? { status: wanted } : {};
  const choice = h("ul", { class: "choice", "aria-label": "Status" },
    [null, ...STATUSES].map((one) => h("li", {}, h("a", { to: one ? ["runs", one] : ["runs"], "aria-current": one === (wanted ?? null) ? "page" : null }, (one ?? "all").replaceAll("_", " ")))));
  const list = page.part({
    load: (signal) => runsOf(filter, 30, signal),
    draw: (first) => listed(page, filter, first),
    pause: 2000,
  });
  // A list that somebody has made longer stays as it is.
  let isLonger = false;
  list.box.addEventListener("click", (click) => {
    isLonger ||= click.target.closest(".more") !== null;
  });
  page.onBlock(() => {
    if (!isLonger) list.refresh();
  });
  page.show("Agent runs", choice, h("section", { class: "card" }, list.box));
}

function listed(page, filter, { items, nextCursor }) {
  if (items.length === 0) return empty("There is no such run.");
  const shown = h("div", {}, table("Agent runs", COLUMNS, items.map(runRow)));
  let cursor = nextCursor;
  if (cursor === null) return shown;
  const button = h("button", { type: "button", class: "more" }, "Show more");
  button.addEventListener("click", async () => {
    const next = await runsOf(filter, 50, page.signal, cursor);
    shown.append(table("More agent runs", COLUMNS, next.items.map(runRow)));
    cursor = next.nextCursor;
    if (cursor === null) button.remove();
  });
  return [shown, button];
}
