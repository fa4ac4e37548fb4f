// A conversation as a chat. Who wrote each turn is shown first, because a role is only what the
// writer says.

import { content, folded } from "../blob.js";
import { append, h, swap } from "../dom.js";
import { ombra } from "../format.js";
import { address, block, card, copier, empty, height, line, link, more, runLink, status, time, txLink } from "../parts.js";
import { call, runsOf } from "../rpc.js";

const PAGE = 100;
/** In place of turns that are in the list. */
const TAKEN = {};
const RELATIONS = {
  submitter: "asked for the run", miner: "mined the run", other: "has no part in the run",
};

export function conversation(page, [id]) {
  const list = h("ol", { class: "chat" });
  const talk = { page, list, at: undefined, cursor: null, seen: new Map() };
  const below = h("div", {});
  const ask = (cursor, signal) => call("ombra_getConversation", [id, { limit: PAGE, cursor }], signal);
  // Turns are asked for once and then come as events; runs change, and are asked for again.
  let turns = null;
  const first = page.part({
    load: async (signal) => {
      const runs = runsOf({ conversationId: id }, PAGE, signal);
      turns ??= await ask(talk.at, signal);
      return runs;
    },
    draw: (runs) => {
      for (const run of runs.items) place(talk, run.submittedAt, `run ${run.agentRunId}`, run.status, () => asked(page, run));
      if (turns !== null && turns !== TAKEN) {
        take(talk, turns);
        turns = TAKEN;
      }
      swap(below, talk.cursor === null ? null : more(next));
      return list.children.length === 0 ? empty("Nobody has used this conversation.") : [list, below];
    },
    follow: true,
  });
  const next = async () => {
    talk.at = talk.cursor;
    take(talk, await ask(talk.at, page.signal));
    swap(below, talk.cursor === null ? null : more(next));
  };
  // A turn is shown as it comes if everything before it is shown.
  page.subscribe("chat", { conversationId: id }, (turn) => {
    if (talk.cursor === null) place(talk, turn.timestamp, turn.hash, "", () => said(page, turn));
    if (!list.isConnected) first.refresh();
    page.aloud("A new turn in the conversation");
  });
  const again = () => {
    turns = null;
  };
  page.onReturn(again);
  page.onPolled(again);
  page.show("Conversation", h("p", { class: "id" }, h("code", {}, id), copier(id, "conversation id")),
    h("p", { class: "faint" }, "Anybody can write here. The role of a turn is what its writer says; the address is who wrote it."),
    h("section", { class: "card" }, first.box),
    h("p", {}, link(["wallet", "chat", id], "Write a turn with the wallet")));
}

function take(talk, { items, nextCursor }) {
  for (const turn of items) place(talk, turn.timestamp, turn.hash, "", () => said(talk.page, turn));
  talk.cursor = nextCursor;
}

/** Puts an entry where its time belongs, once; one whose state is another than before is made anew. */
function place(talk, at, key, state, make) {
  if (talk.seen.get(key) === state) return;
  talk.seen.set(key, state);
  const entry = make();
  [entry.dataset.at, entry.dataset.key] = [at, key];
  const entries = [...talk.list.children];
  const before = entries.find((one) => one.dataset.key === key);
  if (before) {
    before.replaceWith(entry);
    return;
  }
  const after = entries.findLast((one) => Number(one.dataset.at) <= at);
  if (after) after.after(entry);
  else talk.list.prepend(entry);
}

function said(page, turn) {
  const relation = turn.relation === undefined ? null : h("span", { class: `badge ${turn.relation === "other" ? "bad" : "good"}` }, RELATIONS[turn.relation] ?? "");
  const entry = h("li", { class: `turn ${/^(user|assistant|system|tool)$/.test(turn.role) ? turn.role : ""}` },
    h("div", { class: "by" }, address(turn.from), h("span", { class: "as" }, "as ", line(turn.role)), relation, h("span", { class: "faint" }, time(turn.timestamp), " · ", height(turn.blockIndex), " · ", txLink(turn.hash))),
    turn.content ? block(turn.content) : null);
  append(entry, [
    turn.contentBlobId === undefined ? null : content(page, turn.hash, turn.contentBlobId),
    turn.attachments?.length > 0 ? h("ul", {}, turn.attachments.map(({ type, blobId }, index) => h("li", {}, folded(page, `${turn.hash} ${index}`, ["Attached: ", line(type)], blobId)))) : null,
    turn.parentTurnHash === undefined ? null : h("p", { class: "faint" }, "Answers ", txLink(turn.parentTurnHash)),
    turn.agentRunId === undefined ? null : h("p", { class: "faint" }, "Of run ", runLink(turn.agentRunId)),
  ]);
  return entry;
}

function asked(page, run) {
  const answer = run.finalAnswerInline;
  return h("li", { class: "turn run" },
    h("div", { class: "by" }, address(run.submitter), h("span", { class: "as" }, "asks for a run"), status(run.status), h("span", { class: "faint" }, time(run.submittedAt), " · ", runLink(run.agentRunId), ` · ${ombra(run.maxFee)} OMBRA`)),
    block(run.prompt),
    answer === undefined && run.finalAnswerBlobId === undefined ? null : h("div", { class: "answer" },
      h("div", { class: "by" }, address(run.minerAddress), h("span", { class: "as" }, "answers"), h("span", { class: "faint" }, time(run.finishedAt))),
      answer === undefined ? content(page, run.agentRunId, run.finalAnswerBlobId) : block(answer)));
}

