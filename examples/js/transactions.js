// Building and signing transactions (docs/protocol.md sections 3 and 5).

import { fromHex, toBase64, toHex, utf8, wrong } from "./bytes.js";
import { amount, blobId, EVERY_KIND, hash, KINDS, plainInteger, refuseUnknown, string } from "./fields.js";
import { sha256 } from "./hash.js";
import { bareAddress } from "./keys.js";

const OF_THE_ENVELOPE = ["from", "publicKey", "nonce", "timestamp", "chainId", ...Object.keys(EVERY_KIND)];

/** @typedef {import("./keys.js").Key} Key */

/** Bytes in a chunk of a blob; only the last chunk is shorter. */
export const BLOB_CHUNK_BYTES = 400000;
const DAY_MS = 86400000;
const AMOUNT_MAX = 2n ** 64n - 1n;

/**
 * Nonce, time and chain of a transaction.
 * @typedef {object} Envelope
 * @property {number} nonce the account's next nonce
 * @property {number} [timestamp] milliseconds since 1970; now if not given
 * @property {string} [chainId] binds the transaction to one chain; without it the transaction is
 *   valid on every chain on which the nonce fits
 * @property {string | bigint} [maxBaseFee] the highest base fee, micro per KiB, at which a block may
 *   take it; 2,000 if not given (docs/protocol.md section 15)
 * @property {string | bigint} [tip] micro for the block's proposer; of a TRANSFER it is its `fee`
 * @property {string} [from] the sender's address in the written form that shall stand in the
 *   transaction; the bare form if not given
 */

/**
 * A transaction that waits for its signature: the object, the exact text that is hashed, and its
 * hash, whose 64 characters are what is signed.
 * @typedef {{tx: Record<string, any>, payload: string, hash: string}} Unsigned
 */

/** A signed transaction, to be sent as it is. @typedef {Record<string, any>} Signed */

// ---- ids and hashes -----------------------------------------------------------------------------

/**
 * SHA-256 in hex.
 * @param {string | Uint8Array} content a text is hashed as UTF-8
 * @returns {Promise<string>} 64 hex characters
 */
export async function computeContentHash(content) {
  if (content instanceof Uint8Array) return toHex(await sha256(content));
  return toHex(await sha256(utf8(string("content", content))));
}

/**
 * The id of a call: `sha256hex("call|" + chainId + "|" + from + "|" + nonce)`, `from` without prefix.
 * @param {string} chainId
 * @param {string} from
 * @param {number} nonce
 * @returns {Promise<string>}
 */
export async function computeCallId(chainId, from, nonce) {
  const parts = ["call", string("chainId", chainId), bareAddress(from, "from"), plainInteger("nonce", nonce)];
  return toHex(await sha256(utf8(parts.join("|"))));
}

/**
 * What a member of a call commits to (docs/protocol.md section 18.1).
 * @param {{callId: string, round: number, member: string}} by
 * @param {string} salt 64 hex characters that nobody can guess
 * @param {{outcome: string, resultHash: string, inputTokens: number, outputTokens: number,
 *   fuel: number, receiptHash: string}} answer
 * @returns {Promise<string>}
 */
export async function computeCommitment({ callId, round, member }, salt, answer) {
  const { outcome, resultHash, inputTokens, outputTokens, fuel, receiptHash } = answer;
  const parts = [
    "commit", callId, round, bareAddress(member, "member"), salt,
    outcome, resultHash, inputTokens, outputTokens, fuel, receiptHash,
  ];
  return toHex(await sha256(utf8(parts.join("|"))));
}

/**
 * The id of a run: of the sender as it stands in the transaction, the nonce, and the first 256
 * UTF-16 code units of the prompt, where half of a surrogate pair at the cut becomes U+FFFD.
 * @param {string} from
 * @param {number} nonce
 * @param {string} prompt
 * @returns {Promise<string>} 64 hex characters
 */
export async function computeAgentRunId(from, nonce, prompt) {
  bareAddress(from, "from");
  plainInteger("nonce", nonce);
  string("prompt", prompt);
  return toHex(await sha256(utf8(`${from}${nonce}${prompt.slice(0, 256)}`)));
}

/**
 * The id of an agent.
 * @param {string} owner its address
 * @param {string} name that of its metadata
 * @returns {Promise<string>} 64 hex characters
 */
export async function computeAgentId(owner, name) {
  return toHex(await sha256(utf8(`agent|${bareAddress(owner, "owner")}|${string("name", name)}`)));
}

/**
 * The id of a conversation.
 * @param {string} creator the address of who begins it
 * @param {string} [seed]
 * @param {number} [now] milliseconds since 1970
 * @returns {Promise<string>} 64 hex characters
 */
export async function computeConversationId(creator, seed = "", now = Date.now()) {
  const text = `${string("creator", creator)}|${plainInteger("now", now)}|${string("seed", seed)}`;
  return toHex(await sha256(utf8(text)));
}

/**
 * What an AGENT_FINISH states beside its run, status and answer.
 * @typedef {{totalTokensOut: number, minerReward: string, userRefund: string,
 *   networkFee: string}} Settlement
 */

/**
 * The amounts that an AGENT_FINISH must state (docs/protocol.md section 5.5).
 * @param {{maxFee: string | bigint, stepCount: number, totalTokensOut: number}} run
 * @returns {Settlement}
 */
export function computeSettlement({ maxFee, stepCount, totalTokensOut }) {
  const escrow = BigInt(amount("maxFee", maxFee));
  const fee = BigInt(plainInteger("stepCount", stepCount)) * 100n;
  const tokens = BigInt(plainInteger("totalTokensOut", totalTokensOut));
  if (fee > escrow) throw wrong("stepCount", stepCount, `at most ${escrow / 100n}`);
  const rest = escrow - fee;
  const reward = tokens < rest ? tokens : rest;
  return {
    totalTokensOut,
    minerReward: `${reward}`,
    userRefund: `${rest - reward}`,
    networkFee: `${fee}`,
  };
}

/**
 * What protects a run with this escrow, from fork v7 on: its claim locks a bond of the miner, and its
 * reward is held for ten minutes, in which an AGENT_REFUSE burns it (docs/protocol.md section 5.2).
 * `Client.submit` adds it to an AGENT_REQUEST by itself.
 * @param {string | bigint} maxFee
 * @returns {{claimBond: string, refuseMs: number}}
 */
export function protection(maxFee) {
  const bond = BigInt(amount("maxFee", maxFee)) + 10000n;
  const bounded = bond > AMOUNT_MAX ? AMOUNT_MAX : bond;
  return { claimBond: `${bounded < 100000n ? 100000n : bounded}`, refuseMs: 600000 };
}

/**
 * Tools for the `toolsWhitelist` of a question in free text: a calculator and two tools for dates,
 * whose results depend on their arguments alone. A miner that does not have them answers without.
 * @type {readonly string[]}
 */
export const DEFAULT_TOOLS = Object.freeze(["date_diff", "date_parse", "math_eval"]);

// ---- any kind -----------------------------------------------------------------------------------

/**
 * Writes a transaction without its signature, for a wallet that signs elsewhere.
 * @param {string} type such as `TRANSFER`
 * @param {Record<string, any>} fields the kind's own fields
 * @param {Envelope & {from: string, publicKey: string}} envelope
 * @returns {Promise<Unsigned>}
 */
export async function buildTransaction(type, fields, envelope) {
  if (!Object.hasOwn(KINDS, type)) {
    throw wrong("type", type, `one of ${Object.keys(KINDS).join(", ")}`);
  }
  const kind = KINDS[type];
  const { from, publicKey, nonce, timestamp = Date.now(), chainId, ...others } = envelope;
  refuseUnknown(others, OF_THE_ENVELOPE);
  refuseUnknown(fields, [...Object.keys(kind.required), ...Object.keys(kind.optional)]);
  bareAddress(from, "from");

  const tx = { type, from };
  for (const [name, check] of Object.entries(kind.required)) tx[name] = check(name, fields[name]);
  tx.nonce = plainInteger("nonce", nonce);
  tx.timestamp = plainInteger("timestamp", timestamp);
  for (const [name, check] of Object.entries(kind.optional)) {
    if (fields[name] !== undefined) tx[name] = check(name, fields[name]);
  }
  for (const [name, check] of Object.entries(EVERY_KIND)) {
    if (envelope[name] !== undefined) tx[name] = check(name, envelope[name]);
  }
  if (chainId !== undefined) tx.chainId = string("chainId", chainId);
  tx.publicKey = hash("publicKey", publicKey);
  checkTogether(tx);

  const payload = JSON.stringify(tx);
  return { tx, payload, hash: toHex(await sha256(utf8(payload))) };
}

/** Rules that look at several fields. */
function checkTogether(tx) {
  switch (tx.type) {
    case "TRANSFER":
      if (tx.tip !== undefined) throw wrong("tip", tx.tip, "no tip: that of a TRANSFER is its fee");
      break;
    case "CHAT_TURN":
      if (tx.content === "" && tx.contentBlobId === undefined) {
        throw wrong("content", tx.content, "some text, or a contentBlobId");
      }
      break;
    case "AGENT_CLAIM":
      if (bareAddress(tx.minerAddress) !== bareAddress(tx.from)) {
        throw wrong("minerAddress", tx.minerAddress, `the sender ${tx.from}`);
      }
      break;
    case "SOCIAL_BLOB_INIT": {
      const chunks = Math.ceil(tx.totalBytes / BLOB_CHUNK_BYTES);
      if (tx.totalChunks !== chunks) throw wrong("totalChunks", tx.totalChunks, `${chunks}`);
      break;
    }
    case "VALIDATOR_VOTE": {
      const [first, last] = [tx.timestamp + 1, tx.timestamp + 30 * DAY_MS];
      if (tx.expiresAt < first || tx.expiresAt > last) {
        const expected = `${first} to ${last}, 30 days after timestamp`;
        throw wrong("expiresAt", tx.expiresAt, expected);
      }
      break;
    }
  }
}

/**
 * The signed transaction.
 * @param {Unsigned} unsigned
 * @param {string} signature of the 64 characters of the hash, 128 hex characters
 * @returns {Signed}
 */
export function attachSignature({ tx, hash: digest }, signature) {
  fromHex("signature", signature, 64);
  return { ...tx, hash: digest, signature };
}

/**
 * Builds and signs a transaction of any kind.
 * @param {Key} key
 * @param {string} type such as `TRANSFER`
 * @param {Record<string, any>} fields the kind's own fields, none left out
 * @param {Envelope} envelope
 * @returns {Promise<Signed>}
 */
export async function signTransaction(key, type, fields, envelope) {
  const { from = key.address } = envelope;
  if (bareAddress(from, "from") !== key.address) {
    throw wrong("from", from, `the key's address ${key.address}`);
  }
  const whole = { ...envelope, from, publicKey: key.publicKey };
  const unsigned = await buildTransaction(type, fields, whole);
  return attachSignature(unsigned, await key.sign(unsigned.hash));
}

// ---- each kind ----------------------------------------------------------------------------------

/**
 * The fields of a kind with what can be computed where it was not given: an AGENT_REQUEST's
 * `agentRunId`, its `conversationId` from `seed` and the time, and an empty `toolsWhitelist`; an
 * AGENT_CALL's `callId`; an AGENT_CLAIM's `minerAddress`; a TRANSFER's `fee`, nothing; a MINER_REGISTER's empty
 * `capabilities`; a SOCIAL_BLOB_INIT's `totalChunks`; a VALIDATOR_VOTE's `expiresAt`, a week ahead.
 * @param {string} type
 * @param {Record<string, any>} fields
 * @param {Required<Pick<Envelope, "from" | "nonce" | "timestamp">> & Pick<Envelope, "chainId">} envelope
 * @returns {Promise<Record<string, any>>}
 */
export async function completeFields(type, fields, { from, nonce, timestamp, chainId }) {
  fields = { ...empty(type, from), ...given(fields) };
  switch (type) {
    case "AGENT_REQUEST": {
      const { seed, ...rest } = fields;
      const {
        agentRunId = await computeAgentRunId(from, nonce, string("prompt", rest.prompt)),
        conversationId = await computeConversationId(from, seed, timestamp),
      } = rest;
      return { ...rest, agentRunId, conversationId };
    }
    case "AGENT_REGISTER": {
      const { name } = JSON.parse(string("metadata", fields.metadata));
      return { agentId: await computeAgentId(from, string("name", name)), ...fields };
    }
    case "AGENT_CALL":
      return { callId: await computeCallId(string("chainId", chainId), from, nonce), ...fields };
    case "SOCIAL_BLOB_INIT":
      return { totalChunks: Math.ceil(fields.totalBytes / BLOB_CHUNK_BYTES), ...fields };
    case "VALIDATOR_VOTE":
      return { expiresAt: timestamp + 7 * DAY_MS, ...fields };
    default:
      return fields;
  }
}

/** What a kind's declaration fills in where a field is left out: nothing, or the sender. */
function empty(type, sender) {
  const { filled, forms } = Object.hasOwn(KINDS, type) ? KINDS[type] : { filled: {}, forms: {} };
  const values = Object.entries(filled).map(([name, how]) => {
    if (how === "sender") return [name, sender];
    return [name, how === "empty" ? (forms[name] === "amount" ? "0" : []) : undefined];
  });
  return given(Object.fromEntries(values));
}

/**
 * The members that have a value.
 * @param {Record<string, any>} object
 * @returns {any}
 */
function given(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/**
 * Builds and signs a transaction of any kind and computes the fields that can be computed.
 * @param {Key} key
 * @param {string} type such as `TRANSFER`
 * @param {Record<string, any>} fields see {@link completeFields}
 * @param {Envelope} envelope
 * @returns {Promise<Signed>}
 */
export async function completeAndSign(key, type, fields, envelope) {
  const whole = { from: key.address, timestamp: Date.now(), ...given(envelope) };
  return signTransaction(key, type, await completeFields(type, fields, whole), whole);
}

/**
 * Builds and signs a transaction of one kind.
 * @callback Builder
 * @param {Key} key
 * @param {Record<string, any>} fields the kind's own fields
 * @param {Envelope} envelope
 * @returns {Promise<Signed>}
 */

/**
 * @param {string} type
 * @returns {Builder}
 */
const builder = (type) => (key, fields, envelope) => completeAndSign(key, type, fields, envelope);

/** Adds a public turn to a conversation. */
export const chatTurn = builder("CHAT_TURN");
/** Requests an agent run; computes `agentRunId`, and a missing `conversationId` from `seed`. */
export const agentRequest = builder("AGENT_REQUEST");
/** Claims a pending run; `minerAddress` is the sender. */
export const agentClaim = builder("AGENT_CLAIM");
/** Reports one iteration of a miner's model. */
export const agentStep = builder("AGENT_STEP");
/** Ends a run; {@link computeSettlement} computes the amounts. */
export const agentFinish = builder("AGENT_FINISH");
/** Cancels a run that no miner has claimed. */
export const agentCancel = builder("AGENT_CANCEL");
/** Transfers an amount to a receiver; a missing `fee` is 0. */
export const transfer = builder("TRANSFER");
/** Creates or replaces the sender's entry in the miner directory. */
export const minerRegister = builder("MINER_REGISTER");
/** Announces a new blob; computes `totalChunks`. */
export const blobInit = builder("SOCIAL_BLOB_INIT");
/** Stores one chunk of a blob. */
export const blobChunk = builder("SOCIAL_BLOB_CHUNK");
/** Finalizes a blob, so that other transactions can reference it. */
export const blobFinalize = builder("SOCIAL_BLOB_FINALIZE");
/** Casts a validator's vote for a change to the set; a missing `expiresAt` is a week ahead. */
export const validatorVote = builder("VALIDATOR_VOTE");
/** Casts a validator's vote for the height of a fork. */
export const forkVote = builder("FORK_VOTE");
/** Moves money from the sender's balance to its bond. */
export const minerBond = builder("MINER_BOND");
/** Withdraws money from the sender's bond; the chain pays it out later. */
export const minerUnbond = builder("MINER_UNBOND");
/** Makes an offer for an executor at these prices or more; `capacity` 0 withdraws the offer. */
export const minerOffer = builder("MINER_OFFER");
/** Requests an agent's answer from a committee of miners; computes `callId`. Give `chainId`. */
export const agentCall = builder("AGENT_CALL");
/** Commits a member of a call to its answer; {@link computeCommitment} computes the commitment. */
export const callCommit = builder("CALL_COMMIT");
/** Reveals the answer that a member of a call committed to. */
export const callReveal = builder("CALL_REVEAL");
/** Appeals the decision of a call. */
export const callAppeal = builder("CALL_APPEAL");
/** Refuses the reward that is held for the miner of one of the sender's runs. */
export const agentRefuse = builder("AGENT_REFUSE");
/** Proves that a validator signed two different messages for the same height and round. */
export const evidence = builder("EVIDENCE");
/** Publishes an agent, or a new version of one; computes `agentId`. Give `chainId`. */
export const agentRegister = builder("AGENT_REGISTER");
/** Closes an agent of the sender for calls. Give `chainId`. */
export const agentRetire = builder("AGENT_RETIRE");
/** Casts a validator's vote for a new value of a parameter. */
export const paramVote = builder("PARAM_VOTE");

// ---- blobs --------------------------------------------------------------------------------------

/**
 * The transactions of a whole blob in their order: INIT, a CHUNK for each 400,000 bytes, FINALIZE.
 * @param {Key} key
 * @param {{blobId: string, contentType: string, bytes: Uint8Array}} blob
 * @param {Envelope} envelope `nonce` is that of the first transaction
 * @returns {Promise<Signed[]>}
 */
export async function blobTransactions(key, { blobId: id, contentType, bytes }, envelope) {
  blobId("blobId", id);
  if (!(bytes instanceof Uint8Array)) throw wrong("bytes", bytes, "a Uint8Array");
  const contentHash = await computeContentHash(bytes);
  const init = { blobId: id, contentType, totalBytes: bytes.length, contentHash };
  /** @type {[string, Record<string, any>][]} */
  const parts = [["SOCIAL_BLOB_INIT", init]];
  for (let at = 0; at < bytes.length; at += BLOB_CHUNK_BYTES) {
    const chunkDataBase64 = toBase64(bytes.subarray(at, at + BLOB_CHUNK_BYTES));
    const chunk = { blobId: id, chunkIndex: at / BLOB_CHUNK_BYTES, chunkDataBase64 };
    parts.push(["SOCIAL_BLOB_CHUNK", chunk]);
  }
  parts.push(["SOCIAL_BLOB_FINALIZE", { blobId: id }]);

  const signed = [];
  for (const [index, [type, fields]] of parts.entries()) {
    const nonce = plainInteger("nonce", envelope.nonce) + index;
    signed.push(await completeAndSign(key, type, fields, { ...envelope, nonce }));
  }
  return signed;
}
