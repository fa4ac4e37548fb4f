// What a field may hold (docs/protocol.md section 5). A check answers the value as it is written
// into the transaction, or throws a FieldError that names the field.

import { FieldError, utf8, wrong } from "./bytes.js";
import { bareAddress } from "./keys.js";

/** The largest amount, 2^64 − 1 micro. */
export const AMOUNT_MAX = 2n ** 64n - 1n;
/** The most bytes of a prompt, a turn or an answer. */
export const INLINE_TEXT_BYTES_MAX = 16384;
const LABEL_BYTES_MAX = 256;
const LIST_ENTRIES_MAX = 64;
const HARDWARE_TIERS = ["laptop", "desktop", "workstation", "server", "cluster"];
const FINISH_STATUSES = ["completed", "failed", "timeout", "insufficient_funds", "cancelled"];
const ROLES = ["user", "assistant", "system", "tool"];
const ATTACHMENT_TYPES = ["image", "audio", "file"];

/** @typedef {(field: string, value: unknown) => any} Check */

/** @type {Check} */
export function amount(field, value) {
  const text = typeof value === "bigint" ? value.toString() : value;
  const isDecimal = typeof text === "string" && /^(0|[1-9][0-9]{0,19})$/.test(text);
  if (!isDecimal || BigInt(text) > AMOUNT_MAX) {
    const expected = `micro as a BigInt or a string of digits, 0 to ${AMOUNT_MAX}`;
    throw wrong(field, value, expected);
  }
  return text;
}

/** @returns {Check} */
const integer = (least = 0, most = Number.MAX_SAFE_INTEGER) => (field, value) => {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw wrong(field, value, `an integer from ${least} to ${most}`);
  }
  return value;
};

/** @type {Check} */
export function string(field, value) {
  if (typeof value !== "string") throw wrong(field, value, "a string");
  // With the flag `u` a surrogate is only seen where it is no half of a pair.
  if (/\p{Surrogate}/u.test(value)) {
    throw wrong(field, value, "text without halves of surrogate pairs");
  }
  return value;
}

/** @returns {Check} */
const bytesAtMost = (most) => (field, value) => {
  const { length } = utf8(string(field, value));
  if (length > most) throw new FieldError(field, `${length} bytes`, `at most ${most} bytes`);
  return value;
};

const label = bytesAtMost(LABEL_BYTES_MAX);
const inlineText = bytesAtMost(INLINE_TEXT_BYTES_MAX);

/** @type {Check} */
function prompt(field, value) {
  if (value === "") throw wrong(field, value, `1 to ${INLINE_TEXT_BYTES_MAX} bytes`);
  return inlineText(field, value);
}

/** 64 hex characters: a hash, an id or a key. @type {Check} */
export function hash(field, value) {
  if (typeof value !== "string" || !/^[0-9a-f]{64}$/.test(value)) {
    throw wrong(field, value, "64 lowercase hex characters");
  }
  return value;
}

/** @type {Check} */
function address(field, value) {
  bareAddress(value, field);
  return value;
}

/** @type {Check} */
export function blobId(field, value) {
  if (typeof value !== "string" || !/^[A-Za-z0-9_-]{1,128}$/.test(value)) {
    throw wrong(field, value, "1 to 128 characters of [A-Za-z0-9_-]");
  }
  return value;
}

/** @type {Check} */
function boolean(field, value) {
  if (typeof value !== "boolean") throw wrong(field, value, "true or false");
  return value;
}

/** @returns {Check} */
const oneOf = (words) => (field, value) => {
  if (!words.includes(value)) throw wrong(field, value, `one of ${words.join(", ")}`);
  return value;
};

/** @returns {Check} */
const arrayOf = (check, most) => (field, value) => {
  if (!Array.isArray(value)) throw wrong(field, value, "an array");
  if (value.length > most) {
    throw new FieldError(field, `${value.length} entries`, `at most ${most} entries`);
  }
  return Array.from(value, (item, at) => check(`${field}[${at}]`, item));
};

/** @type {Check} */
function names(field, value) {
  const list = arrayOf(bytesAtMost(LIST_ENTRIES_MAX), LIST_ENTRIES_MAX)(field, value);
  const twice = list.find((name, at) => list.indexOf(name) !== at);
  if (twice !== undefined) throw new FieldError(field, `${twice} twice`, "each entry once");
  return list;
}

/**
 * Members of an object in the order of their checks; members that have none are refused.
 * @returns {Check}
 */
const objectOf = (checks) => (field, value) => {
  if (value === null || typeof value !== "object") throw wrong(field, value, "an object");
  const within = (name) => `${field}.${name}`;
  refuseUnknown(value, Object.keys(checks), within);
  const entries = Object.entries(checks);
  return Object.fromEntries(
    entries.map(([name, check]) => [name, check(within(name), value[name])]),
  );
};

/** Throws for a member that is not in the list. */
export function refuseUnknown(object, known, within = (name) => name) {
  for (const name of Object.keys(object)) {
    if (!known.includes(name)) {
      throw wrong(within(name), object[name], `no such field, but ${known.join(", ")}`);
    }
  }
}

/** @type {Check} */
function base64(field, value) {
  const isBase64 = typeof value === "string" &&
    value.length % 4 === 0 &&
    /^[A-Za-z0-9+/]*={0,2}$/.test(value) &&
    btoa(atob(value)) === value;
  if (!isBase64) throw wrong(field, value, "standard base64 with padding");
  return value;
}

/**
 * A kind of transaction: its checks in the order in which the fields are written.
 * @typedef {{required: Record<string, Check>, optional: Record<string, Check>}} Kind
 */

/** @type {Record<string, Kind>} */
export const KINDS = {
  CHAT_TURN: {
    required: { conversationId: hash, role: oneOf(ROLES), content: inlineText },
    optional: {
      contentBlobId: blobId,
      parentTurnHash: hash,
      agentRunId: hash,
      attachments: arrayOf(objectOf({ type: oneOf(ATTACHMENT_TYPES), blobId }), 16),
    },
  },
  AGENT_REQUEST: {
    required: {
      agentRunId: hash,
      conversationId: hash,
      prompt,
      toolsWhitelist: names,
      maxFee: amount,
      maxSteps: integer(1, 200),
    },
    optional: { promptBlobId: blobId, modelHint: label },
  },
  AGENT_CLAIM: {
    required: {
      agentRunId: hash,
      minerAddress: address,
      modelInfo: label,
      hardwareTier: oneOf(HARDWARE_TIERS),
    },
    optional: {},
  },
  AGENT_STEP: {
    required: { agentRunId: hash, stepIndex: integer(), outputTokens: integer(), outputHash: hash },
    optional: {
      thoughtBlobId: blobId,
      toolCalls: arrayOf(
        objectOf({
          name: label,
          argsHash: hash,
          resultHash: hash,
          durationMs: integer(),
          ok: boolean,
        }),
        64,
      ),
      outputBlobId: blobId,
    },
  },
  AGENT_FINISH: {
    required: {
      agentRunId: hash,
      totalTokensOut: integer(),
      status: oneOf(FINISH_STATUSES),
      minerReward: amount,
      userRefund: amount,
      networkFee: amount,
    },
    optional: { finalAnswerInline: inlineText, finalAnswerBlobId: blobId },
  },
  AGENT_CANCEL: { required: { agentRunId: hash }, optional: {} },
  TRANSFER: { required: { to: address, amount, fee: amount }, optional: {} },
  MINER_REGISTER: {
    required: { name: label, capabilities: names, modelInfo: label },
    optional: {},
  },
  SOCIAL_BLOB_INIT: {
    required: {
      blobId,
      contentType: label,
      totalBytes: integer(1),
      totalChunks: integer(1),
      contentHash: hash,
    },
    optional: {},
  },
  SOCIAL_BLOB_CHUNK: {
    required: { blobId, chunkIndex: integer(), chunkDataBase64: base64 },
    optional: {},
  },
  SOCIAL_BLOB_FINALIZE: { required: { blobId }, optional: {} },
  VALIDATOR_VOTE: {
    required: { candidateKey: hash, power: integer(0, 2 ** 48), expiresAt: integer() },
    optional: {},
  },
};

/** @type {Check} */
export const plainInteger = integer();
