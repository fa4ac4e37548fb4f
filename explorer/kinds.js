// What the members of each type of transaction are, and how each is shown.

import { DECLARATIONS } from "./lib/kinds.js";
import { h } from "./dom.js";
import { bytes, count, duration } from "./format.js";
import {
  address, agentLink, amount, blobLink, block, callLink, facts, line, link, plainHash, prices, runLink, status, table, talkLink, time, txLink,
  usage, words,
} from "./parts.js";

const hash = (value) => plainHash(value, "hash", true);
const key = (value) => plainHash(value, "public key", true);
const number = (value) => (Number.isSafeInteger(value) ? count(value) : line(JSON.stringify(value)));
const long = (value) => block(value);

/** The tool calls of a step. */
export function toolCalls(calls) {
  const columns = ["Tool", "Outcome", "Took", "Arguments", "Result"];
  const rows = calls.map(({ name, ok, durationMs, argsHash, resultHash }) => [
    line(name, 256),
    h("span", { class: ok === true ? "badge good" : "badge bad" }, ok === true ? "ok" : "failed"),
    duration(durationMs),
    plainHash(argsHash, "hash of the arguments"),
    plainHash(resultHash, "hash of the result"),
  ]);
  return table("Tool calls", columns, rows, { none: "No tool was called." });
}

const attachments = (list) =>
  h("ul", { class: "words" }, list.map(({ type, blobId }) => h("li", {}, line(type), ": ", blobLink(blobId))));

const hexText = (value) => block(value, { mono: true, max: 400 });
const limits = (value) => `${usage(value)}, ${bytes(value.resultBytes)} of result`;
const conditional = (list) => h("ul", { class: "words" }, list.map(({ when, to, amount: sum }) => h("li", {}, amount(sum), " to ", address(to), " if ", line(when, 80))));

/** How each member is called and shown; by name, because a name means the same in every type. */
const MEMBERS = {
  from: ["From", (value) => address(value, true)],
  to: ["To", (value) => address(value, true)],
  amount: ["Amount", amount],
  fee: ["Fee", amount],
  agentRunId: ["Agent run", (value) => runLink(value, true)],
  conversationId: ["Conversation", (value) => talkLink(value, true)],
  role: ["Role", line],
  content: ["Content", long],
  contentBlobId: ["Content in blob", blobLink],
  parentTurnHash: ["Answers turn", (value) => txLink(value, true)],
  attachments: ["Attachments", attachments],
  prompt: ["Prompt", long],
  promptBlobId: ["Prompt in blob", blobLink],
  toolsWhitelist: ["Tools allowed", words],
  maxFee: ["Budget", amount],
  maxSteps: ["Most steps", number],
  modelHint: ["Requested model", (value) => line(value, 256)],
  minerAddress: ["Miner", (value) => address(value, true)],
  modelInfo: ["Model", (value) => line(value, 256)],
  hardwareTier: ["Hardware", line],
  stepIndex: ["Step", number],
  outputTokens: ["Output tokens", number],
  outputHash: ["Hash of the output", hash],
  thoughtBlobId: ["Thought in blob", blobLink],
  outputBlobId: ["Output in blob", blobLink],
  toolCalls: ["Tool calls", toolCalls],
  totalTokensOut: ["Output tokens in total", number],
  status: ["Status", line],
  minerReward: ["Reward of the miner", amount],
  userRefund: ["Refund", amount],
  networkFee: ["Network fee, burned", amount],
  finalAnswerInline: ["Answer", long],
  finalAnswerBlobId: ["Answer in blob", blobLink],
  name: ["Name", (value) => line(value, 256)],
  capabilities: ["Capabilities", words],
  blobId: ["Blob", blobLink],
  contentType: ["Content type", (value) => line(value, 256)],
  totalBytes: ["Size", (value) => (Number.isSafeInteger(value) ? bytes(value) : number(value))],
  totalChunks: ["Chunks", number],
  contentHash: ["Hash of the content", hash],
  chunkIndex: ["Chunk", number],
  chunkDataBase64: ["Data, Base64", (value) => block(value, { mono: true, max: 400 })],
  candidateKey: ["Key of the candidate", key],
  power: ["Power", number],
  validatorKey: ["Key of the validator", key],
  executor: ["Executor", (value) => line(value, 80)],
  capacity: ["Calls at once", number],
  perCall: ["Lowest price for a call", amount],
  promptPerM: ["Lowest price for a million tokens read", amount],
  completionPerM: ["Lowest price for a million tokens written", amount],
  fuelPerG: ["Lowest price for a billion units of fuel", amount],
  agentId: ["Agent", (value) => agentLink(value, true)],
  agentVersion: ["Version", (value) => line(value, 64)],
  callId: ["Call", (value) => callLink(value, true)],
  payload: ["Payload", hexText],
  consensus: ["Who decides", line],
  committeeSize: ["Members", number],
  threshold: ["Members that decide", number],
  prices: ["Pays each member", prices],
  limits: ["Each may use", limits],
  timeoutMs: ["Time to commit", duration],
  appealable: ["Can be appealed", (value) => (value ? "yes" : "no")],
  onResult: ["Pays others", conditional],
  round: ["Round", number],
  outcome: ["Outcome", status],
  result: ["Result", hexText],
  inputTokens: ["Tokens read", number],
  fuel: ["Fuel", number],
  expiresAt: ["Counts until", (value) => time(value, { full: true })],
  maxBaseFee: ["Highest base fee", (value) => `${count(value)} micro per KiB`],
  tip: ["Tip", amount],
  nonce: ["Nonce", number],
  timestamp: ["Signed at", (value) => time(value, { full: true })],
  chainId: ["Chain", line],
  publicKey: ["Public key", key],
};

const ENDS = ["nonce", "timestamp", "chainId", "publicKey"];

/** The members of each type in the order in which they are shown: as the node declares them. */
const TYPES = Object.fromEntries(DECLARATIONS.kinds.map(({ type, required, optional }) => [
  type,
  ["from", ...[...required, ...optional].map(({ name }) => name)],
]));
const FIELDS = DECLARATIONS.kinds.flatMap(({ required, optional }) => [...required, ...optional]);

/** How a member without a line in MEMBERS is shown, by the form that the node declares. */
const FORMS = {
  address: (value) => address(value, true),
  amount,
  blobId: blobLink,
  hash,
  integer: number,
  key,
  names: words,
  signature: (value) => block(value, { mono: true, max: 128 }),
  text: long,
  word: line,
};
const FORM_OF = new Map(FIELDS.map(({ name, form }) => [name, form]));

/** `agentRunId` as `Agent run id`. */
function label(name) {
  const spaced = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return spaced[0].toUpperCase() + spaced.slice(1);
}

/** What a member is called, and the function that shows it. */
function member(name) {
  if (Object.hasOwn(MEMBERS, name)) return MEMBERS[name];
  const show = FORMS[FORM_OF.get(name)];
  return [label(name), show ?? ((value) => block(JSON.stringify(value), { mono: true, max: 1000 }))];
}

/** What every type may have; before fork v7 a member of that name could be anything. */
const OFFERS = DECLARATIONS.everyKind.optional.map(({ name }) => name);
const isAmount = (value) => typeof value === "string" && /^(0|[1-9][0-9]{0,19})$/.test(value);

const OF_THE_ENVELOPE = new Set(["type", "hash", "signature", ...ENDS]);

/** The members of a transaction; those that its type does not know are listed apart. */
export function decoded(tx) {
  const known = [...(TYPES[tx.type] ?? ["from"]), ...OFFERS.filter((name) => isAmount(tx[name]))];
  const show = (name) => {
    const [title, draw] = member(name);
    return Object.hasOwn(tx, name) ? [title, draw(tx[name])] : [title, null];
  };
  const others = Object.entries(tx).filter(([name]) => !known.includes(name) && !OF_THE_ENVELOPE.has(name));
  const list = facts([...known, ...ENDS].map(show));
  if (others.length === 0) return list;
  const rows = others.map(([name, value]) => [line(name), block(JSON.stringify(value), { mono: true, max: 1000 })]);
  return h("div", {}, list, h("h3", {}, "Members without effect"), table("Members that the type does not know", ["Name", "Value"], rows));
}

/** What a transaction does, in one line. */
export function summary(tx) {
  const on = (...nodes) => h("span", { class: "summary" }, ...nodes);
  switch (tx.type) {
    case "TRANSFER": return on(amount(tx.amount), " to ", address(tx.to));
    case "CHAT_TURN": return on(line(tx.content || "(in a blob)", 60), " in ", talkLink(tx.conversationId));
    case "AGENT_REQUEST": return on(line(tx.prompt, 60), " · ", runLink(tx.agentRunId));
    case "AGENT_STEP": return on(`step ${count(tx.stepIndex)} of `, runLink(tx.agentRunId));
    case "AGENT_CLAIM": return on("takes ", runLink(tx.agentRunId));
    case "AGENT_FINISH": return on("ends ", runLink(tx.agentRunId), ": ", line(tx.status));
    case "AGENT_CANCEL": return on("takes back ", runLink(tx.agentRunId));
    case "MINER_REGISTER": return on("as ", line(tx.name, 60));
    case "SOCIAL_BLOB_CHUNK": return on(`chunk ${count(tx.chunkIndex)} of `, blobLink(tx.blobId));
    case "SOCIAL_BLOB_INIT":
    case "SOCIAL_BLOB_FINALIZE": return on(blobLink(tx.blobId));
    case "FORK_VOTE": return on(line(tx.fork), ` from block ${count(tx.height)} on`);
    case "PARAM_VOTE": return on(line(tx.name), ` = ${count(tx.value)} from block ${count(tx.height)} on`);
    case "VALIDATOR_VOTE": return on(`power ${count(tx.power)} for `, plainHash(tx.candidateKey, "public key"));
    case "MINER_OFFER": return on(tx.capacity === 0 ? "no more for " : `up to ${count(tx.capacity)} calls for `, line(tx.executor, 24));
    case "EVIDENCE": return on(`${tx.kind} of height ${count(tx.height)} signed twice by `, plainHash(tx.validatorKey, "public key"));
    case "AGENT_REGISTER": return on("publishes the agent ", agentLink(tx.agentId));
    case "AGENT_RETIRE": return on("retires the agent ", agentLink(tx.agentId));
    case "AGENT_CALL": return on("asks ", agentLink(tx.agentId), " · ", callLink(tx.callId));
    case "CALL_COMMIT": return on("commits to an answer of ", callLink(tx.callId));
    case "CALL_REVEAL": return on(line(tx.outcome), " of ", callLink(tx.callId));
    case "CALL_APPEAL": return on("doubts ", callLink(tx.callId));
    default: return on(link(["tx", tx.hash], "details"));
  }
}
