// Calls of agents: the list, and one call from the question to the settlement, as it unfolds.

import { agentOf, readable, salted } from "../call-data.js";
import { h, swap } from "../dom.js";
import { bytes, count, duration, ombra } from "../format.js";
import { held, openLibrary, signing } from "../keyring.js";
import { checkCall } from "../lib/call-check.js";
import { verifyElection } from "../lib/election.js";
import { address, agentLink, amount, block, callLink, card, empty, facts, height, line, link, plainHash, prices, status, table, talkLink, time, txLink, usage } from "../parts.js";
import { call, callAll, CallError, callsOf } from "../rpc.js";
import { busy } from "./wallet-forms.js";
import { propose, sentList } from "./wallet-send.js";

const OPEN = new Set(["electing", "committing", "revealing"]);
const STATUSES = ["electing", "committing", "revealing", "success", "failed", "timedOut", "unassigned"];
const COLUMNS = ["Call", "Status", "Agent", "Asked by", "Members", "Held", "When"];
const PHASES = { electing: "Waiting for the election …", committing: "Members work, and commit to their answers …", revealing: "Members reveal their answers …" };

const cells = (one) => [
  callLink(one.callId), status(one.status), [agentLink(one.agentId), " ", line(one.agentVersion, 20)], address(one.requester),
  count(one.committeeSize), amount(one.maxFee), time(one.createdAt),
];

/** Calls, newest first, as a list of theirs has them. */
export const callTable = (caption, items, none) => table(caption, COLUMNS, items.map(cells), { none });

/** Calls, newest first; all, or those of one status. */
export function calls(page, [wanted]) {
  const filter = STATUSES.includes(wanted) ? { status: wanted } : {};
  const choice = h("ul", { class: "choice", "aria-label": "Status" },
    [null, ...STATUSES].map((one) => h("li", {}, h("a", { to: one ? ["calls", one] : ["calls"], "aria-current": one === (wanted ?? null) ? "page" : null }, (one ?? "all").replace("timedOut", "timed out")))));
  let isLonger = false;
  const list = page.part({
    load: (signal) => callsOf(filter, 30, signal),
    draw: (first) => listed(page, filter, first, () => { isLonger = true; }),
    pause: 2000,
  });
  page.onBlock(() => {
    if (!isLonger) list.refresh();
  });
  page.show("Calls of agents", choice, h("section", { class: "card" }, list.box));
}

function listed(page, filter, { items, nextCursor }, onLonger) {
  const shown = h("div", {}, callTable("Calls", items, nextCursor === null ? "There is no such call." : "None among the newest; there are older ones."));
  let cursor = nextCursor;
  if (cursor === null) return shown;
  const button = h("button", { type: "button", class: "more" }, "Show more");
  button.addEventListener("click", async () => {
    onLonger();
    const next = await callsOf(filter, 50, page.signal, cursor);
    shown.append(callTable("More calls", next.items, "None among these."));
    cursor = next.nextCursor;
    if (cursor === null) button.remove();
  });
  return [shown, button];
}

/** One call as it unfolds. */
export function answer(page, [id]) {
  const doubts = h("div", {});
  let isDrawn = false;
  const whole = page.part({
    load: async (signal) => {
      const found = await call("ombra_getCall", [id], signal);
      const [agent, checked] = await Promise.all([agentOf(found, signal), verdict(found, signal)]);
      return { found, agent, checked };
    },
    draw: ({ found, agent, checked }) => {
      isDrawn = true;
      page.title(`Call ${id.slice(0, 8)} ${found.status}`);
      appealing(page, doubts, found);
      return draw(found, agent, checked);
    },
    pause: 250,
  });
  page.subscribe("calls", { callId: id }, (event) => {
    whole.refresh();
    page.aloud(`The call: ${event.event}`);
  });
  page.onPolled(whole.refresh);
  // A call that is still to come appears when it is there; times that are over change it without an event.
  page.onBlock(() => {
    if (!isDrawn || !whole.box.querySelector("[data-settled]")) whole.refresh();
  });
  page.show("Call of an agent", whole.box, doubts);
}

/** What the browser finds of commitments, groups and sums; null while nothing can be checked. */
async function verdict(found, signal) {
  if (!(found.rounds ?? []).some(({ revealed }) => revealed > 0)) return null;
  try {
    await checkCall(await salted(found, signal));
    return { isRight: true };
  } catch (error) {
    if (signal.aborted || error.kind) throw error;
    return { isRight: false, why: error.message };
  }
}

function draw(found, agent, checked) {
  return [
    card(null, h("p", { class: "lead", "data-settled": found.settled ? "yes" : null }, status(found.status), " ", found.settled ? "settled" : PHASES[found.status] ?? "decided, not settled yet"),
      facts([
        ["Call", plainHash(found.callId, "call id", true)],
        ["Agent", [agent ? [link(["agent", found.agentId], line(agent.name, 64)), " "] : null, agentLink(found.agentId), " ", link(["agent", found.agentId, found.agentVersion], line(found.agentVersion, 64))]],
        ["Asked by", address(found.requester, true)],
        ["Asked", [time(found.createdAt, { full: true }), " in block ", height(found.blockIndex), " ", found.requestTx ? txLink(found.requestTx) : null]],
        ["Who decides", decider(found)],
        ["Can be appealed", found.appealable ? "yes" : "no"],
        ["This phase ends", found.deadlineAt === undefined ? null : time(found.deadlineAt, { full: true })],
        ["Conversation", found.conversationId === undefined ? null : talkLink(found.conversationId, true)],
        ["Checked", checked === null ? null : check(checked)],
        ["Left out", (found.notes ?? []).length === 0 ? null : found.notes.map((note) => h("p", {}, line(note, 300)))],
      ])),
    card("Asked for", asked(found, agent)),
    answered(found, agent),
    ...(found.rounds ?? []).map((round, index) => card(index === 0 ? "Committee" : "Committee after the appeal", committee(found, round, agent))),
    card(found.settled ? "Bill" : "Money", money(found)),
  ];
}

function decider({ consensus, threshold, committeeSize }) {
  if (committeeSize === 1) return "the only member";
  return consensus === "threshold" ? `${count(threshold)} of ${count(committeeSize)} members` : `more than half of ${count(committeeSize)} members`;
}

const check = ({ isRight, why }) => (isRight
  ? h("p", { class: "fine" }, "✓ This browser has opened every commitment, counted the group, and computed the sums.")
  : h("p", { class: "wrong" }, "✗ ", line(why, 400)));

function asked(found, agent) {
  if (found.payload === undefined) return plainHash(found.payloadHash, "hash of the payload", true);
  return [
    facts([["Method", agent?.method ? h("code", { class: "long" }, line(agent.method.signature, 1000)) : h("code", {}, found.payload.slice(0, 10))]]),
    readable(found.payload, () => agent?.method?.decode(found.payload)),
  ];
}

const result = (hex, agent) => readable(hex, () => agent?.method?.decodeResult(hex));

function answered(found, agent) {
  if (found.answers?.length > 0) {
    return card("Answers", h("p", { class: "faint" }, "Nobody has compared them: with a threshold each member that answers is paid, whatever it says."),
      found.answers.map((one) => h("div", { class: "answer" }, h("p", {}, address(one.member)), one.result === undefined ? plainHash(one.resultHash) : result(one.result, agent))));
  }
  if (!found.answer) return null;
  const { result: hex, resultHash, receiptHash, outcome } = found.answer;
  return card("Answer",
    outcome === "success" ? (hex === undefined ? plainHash(resultHash, "hash of the result", true) : result(hex, agent)) : h("p", {}, "The agent fails on these arguments, and would for everyone."),
    facts([
      ["Agree", `${count(found.agreeing)} members${found.bondBehind === undefined ? "" : `, with ${ombra(found.bondBehind)} OMBRA of bond`}`],
      ["Used", usage(found.answer)],
      ["Hash of the result", plainHash(resultHash, "hash of the result", true)],
      ["Receipt", plainHash(receiptHash, "hash of the receipt", true)],
    ]));
}

const MEMBERS = ["Member", "Bond", "Committed", "Answer", "Agrees", "Got", "Lost"];

function committee(found, round, agent) {
  const members = round.members ?? [];
  const rows = members.map((one) => [
    address(one.address), [amount(one.bond), h("p", { class: "faint" }, amount(one.lock), " locked")],
    one.commitment ? [height(one.commitment.blockIndex), " ", plainHash(one.commitment.hash, "commitment")] : "not yet",
    one.reveal ? said(one.reveal, agent) : one.commitment ? "hidden" : "–",
    one.agreed === undefined ? "–" : status(one.agreed ? "agrees" : "differs"),
    amount(one.paid), amount(one.penalty),
  ]);
  return [
    h("p", {}, `${count(round.elected)} of ${count(round.size)} seats, drawn in block `, height(round.electedIn), `; ${count(round.committed)} committed, ${count(round.revealed)} revealed`,
      round.decidedAt === undefined ? null : [", decided ", time(round.decidedAt)], round.group ? `: ${count(round.agreeing)} agree on ${round.group.outcome}` : round.decidedAt === undefined ? null : ": no group is large enough"),
    table("Members", MEMBERS, rows, { none: "Nobody was drawn." }),
    h("p", { class: "faint" }, "Drawn from candidates with the hash ", plainHash(round.candidatesHash, "hash of the candidates"), " by the randomness of the block."),
    drawing(found, round),
  ];
}

/** A button that draws the members again, of the candidates that the node names. */
function drawing(found, round) {
  const told = h("div", { role: "status" });
  const draw = async () => {
    const index = found.rounds.indexOf(round);
    const [election, randomness] = await callAll([["ombra_getElection", [found.callId, index]], ["ombra_getRandomness", [round.electedIn]]]);
    for (const one of [election, randomness]) if (one instanceof CallError) throw one;
    const members = (round.members ?? []).map(({ address: own }) => own);
    const drawn = { callId: found.callId, round: index, randomness: randomness.value, size: round.size, candidatesHash: round.candidatesHash, members };
    return verifyElection(drawn, election.candidates);
  };
  const button = h("button", { type: "button" }, "Draw them again");
  button.addEventListener("click", async () => {
    const wrong = await draw().catch((error) => error.message);
    swap(told, wrong === null ? h("p", { class: "fine" }, "✓ This browser has drawn the same members.") : h("p", { class: "wrong" }, "✗ ", line(wrong, 400)));
  });
  return h("div", { class: "turns" }, button, told);
}

function said(reveal, agent) {
  const why = reveal.reason === undefined ? null : h("p", { class: "faint" }, line(reveal.reason, 300));
  const own = reveal.result === undefined || reveal.outcome !== "success" ? null : h("details", {}, h("summary", {}, "Its answer"), result(reveal.result, agent));
  return [status(reveal.outcome), " ", plainHash(reveal.resultHash, "hash of the result"), h("p", { class: "faint" }, usage(reveal)), own, why];
}

/** Before the settlement what is held and what it pays; then where everything went. */
function money(found) {
  const terms = [
    ["Held", amount(found.maxFee)],
    ["Costs a member at most", amount(found.budget)],
    ["Pays each member", prices(found.prices)],
    ["Each may use", `${usage(found.limits)}, ${bytes(found.limits.resultBytes)} of result`],
    ["Time to commit", duration(found.timeoutMs)],
    ["Pays others", (found.onResult ?? []).length === 0 ? null : h("ul", { class: "words" }, found.onResult.map((one) => h("li", {}, amount(one.amount), " to ", address(one.to), " if ", line(one.when, 80), one.paid === undefined ? null : one.paid ? ", paid" : ", not paid")))],
    ["The appeal", found.appeal === undefined ? null : [amount(found.appeal.payment), " and a deposit of ", amount(found.appeal.deposit), " by ", address(found.appeal.appellant)]],
  ];
  if (!found.settled) return facts(terms);
  return [bar(found), facts([
    ...terms,
    ["To the members", amount(found.wages)],
    ["To the agent's owner", amount(found.royaltyPaid)],
    ["To others", found.conditionalPaid === "0" ? null : amount(found.conditionalPaid)],
    ["Back to the requester", amount(found.refund)],
    ["To the appellant", found.appeal === undefined ? null : amount(found.appellantPaid)],
    ["Burned, penalties included", amount(found.burned)],
    ["Lost from members' bonds", amount(found.penalties)],
  ])];
}

function bar(found) {
  const paid = BigInt(found.wages) + BigInt(found.royaltyPaid) + BigInt(found.conditionalPaid);
  const back = BigInt(found.refund) + BigInt(found.appellantPaid);
  const parts = [[paid, "reward", "paid"], [BigInt(found.burned), "fee", "burned"], [back, "refund", "back"]];
  const whole = parts.reduce((sum, [value]) => sum + value, 0n) || 1n;
  const made = h("div", { class: "budget", role: "img", "aria-label": parts.map(([value, , name]) => `${ombra(value)} OMBRA ${name}`).join(", ") });
  for (const [value, name] of parts) {
    const part = h("div", { class: name });
    part.style.setProperty("flex-grow", String(Number((value * 10_000n) / whole)));
    made.append(part);
  }
  return [made, h("ul", { class: "legend" }, parts.map(([value, name, label]) => h("li", { class: name }, amount(value), ` ${label}`)))];
}

/** While the answer can be doubted: who may, what it costs, and the button. */
async function appealing(page, box, found) {
  const isOpen = found.appealable && !found.settled && !OPEN.has(found.status) && !found.appeal;
  // After an appeal that failed, the decision can be appealed again, and longer.
  const wanted = isOpen ? `${found.callId} ${found.deadlineAt}` : "";
  if (box.dataset.call === wanted) return;
  box.dataset.call = wanted;
  swap(box);
  if (!isOpen) return;
  const library = await openLibrary(page);
  if (page.isLeft) return;
  const terms = facts([
    ["Until", time(found.deadlineAt, { full: true })],
    ["For the work of the second committee", [amount((BigInt(found.budget) + BigInt(found.terms.revealFee)) * BigInt(2 * found.committeeSize + 1)), ", or less if fewer miners are available"]],
    ["Deposit, lost if the answer is upheld", amount(BigInt(found.terms.dissentPenalty) * BigInt(found.agreeing))],
  ]);
  const isMember = found.rounds.some(({ members }) => members?.some(({ address: own }) => own === held.key?.address));
  const about = h("p", {}, "A committee twice as large answers again, and the wrong side loses bond.");
  if (held.key === null) swap(box, card("Appeal the answer", about, terms, h("p", {}, link(["wallet"], "Open a key in the wallet"), " to appeal.")));
  else if (isMember) swap(box, card("Appeal the answer", about, empty("Members cannot appeal.")));
  else {
    const sent = sentList(page, held.sent, () => {});
    const form = h("form", { class: "stack" }, h("button", { type: "submit" }, "Appeal …"));
    busy(form, () => propose(signing(page, library, sent), "CALL_APPEAL", { callId: found.callId }, ["call", found.callId]));
    swap(box, card("Appeal the answer", about, terms, form, sent.box));
  }
}
