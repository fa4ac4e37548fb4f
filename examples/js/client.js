// A client of a node: JSON-RPC over HTTP, and subscriptions over WebSocket (docs/rpc.md).

import { Subscription } from "./subscription.js";
import { blobTransactions, completeAndSign, computeContentHash, protection } from "./transactions.js";
import { utf8 } from "./bytes.js";
import { OmbraError } from "./errors.js";

/** @typedef {import("./keys.js").Key} Key */
/** @typedef {import("./transactions.js").Signed} Signed */

/**
 * A chain: the id that signatures are bound to, and the hash of its genesis file, which tells chains
 * of the same id apart.
 * @typedef {{chainId: string, genesisHash: string}} Chain
 */

/** Codes of circumstances that pass: the same signed transaction may be sent again. */
const PASSING = ["UNREACHABLE", "SYNCING", "SHUTTING_DOWN", "BUSY", "POOL_FULL", "SENDER_LIMIT"];
/** The JSON-RPC error of what does not exist. */
const NOT_FOUND = -32051;
/** The longest that a node lets a call wait for a transaction. */
const WAIT_MS_MAX = 60000;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A node's interface. */
export class Client {
  #url;
  #WebSocket;
  #timeoutMs;
  #expected;
  #chain;
  #lastSubmission = Promise.resolve();

  /**
   * @param {string | URL} [url] in a page, the address that it came from if not given
   * @param {object} [options]
   * @param {typeof WebSocket} [options.WebSocket] for subscriptions where the engine has none, as
   *   Node.js before 22
   * @param {number} [options.timeoutMs] how long a call may take, 30 seconds if not given
   * @param {Partial<Chain>} [options.chain] the chain that is signed for, by its id, its genesis hash
   *   or both: nothing is signed on the word of a node that is of another. Without it the first
   *   answer of the node holds; remember what `chain` gives, and give it here the next time
   */
  constructor(url, { WebSocket = globalThis.WebSocket, timeoutMs = 30000, chain = {} } = {}) {
    const here = /^https?:/.test(globalThis.location?.origin) ? location.origin : undefined;
    this.#url = new URL(url ?? here ?? "http://127.0.0.1:8777", here);
    this.#WebSocket = WebSocket;
    this.#timeoutMs = timeoutMs;
    this.#expected = { chainId: chain.chainId, genesisHash: chain.genesisHash };
  }

  /**
   * Calls a method.
   * @param {string} method such as `ombra_getAccount`
   * @param {unknown[] | Record<string, unknown>} [params] by position or by name
   * @param {{timeoutMs?: number, signal?: AbortSignal}} [options] `signal` ends the waiting; it needs an
   *   engine with `AbortSignal.any`
   * @returns {Promise<any>} the result
   * @throws {OmbraError} with the node's code, `UNREACHABLE`, or `ABORTED` by the signal
   */
  async rpc(method, params = [], { timeoutMs = this.#timeoutMs, signal } = {}) {
    const limit = AbortSignal.timeout(timeoutMs);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    let response;
    let text;
    try {
      response = await fetch(this.#url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        signal: signal ? AbortSignal.any([limit, signal]) : limit,
      });
      text = await response.text();
    } catch (error) {
      if (signal?.aborted) throw new OmbraError(`${method}: ended by the signal`, "ABORTED");
      const cause = error.cause?.message ?? error.message;
      throw new OmbraError(`${method}: no answer from ${this.#url}: ${cause}`, "UNREACHABLE");
    }
    const answer = parse(text);
    if (answer?.error) throw OmbraError.of(answer.error);
    if (!answer || !("result" in answer)) {
      const message = `${method}: HTTP status ${response.status}: ${text.slice(0, 200)}`;
      throw new OmbraError(message, `HTTP_${response.status}`);
    }
    return answer.result;
  }

  /**
   * Sends a signed transaction, and sends it again while the node is away or busy.
   * @param {Signed} tx
   * @param {{retryForMs?: number}} [options] 10 seconds if not given
   * @returns {Promise<string>} its hash
   * @throws {OmbraError} with `hash`; ask the node for it before you sign another one instead
   */
  async send(tx, { retryForMs = 10000 } = {}) {
    const deadline = Date.now() + retryForMs;
    for (;;) {
      try {
        return (await this.rpc("ombra_sendTransaction", [tx])).hash;
      } catch (error) {
        const delay = error.data?.retryAfterMs ?? 250;
        if (!PASSING.includes(error.code) || Date.now() + delay > deadline) {
          error.hash = tx.hash;
          throw error;
        }
        await pause(delay);
      }
    }
  }

  /**
   * Waits until a transaction is in a block.
   * @param {string} hash
   * @param {{timeoutMs?: number}} [options] 30 seconds if not given
   * @returns {Promise<any>} the transaction as `ombra_getTransaction` tells it
   * @throws {OmbraError} with the reason's code if it was dropped, `TIMEOUT` if it still waits
   */
  async waitFor(hash, { timeoutMs = 30000 } = {}) {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const rest = Math.min(Math.max(deadline - Date.now(), 0), WAIT_MS_MAX);
      const options = { timeoutMs: rest };
      const limits = { timeoutMs: rest + this.#timeoutMs };
      const seen = await this.rpc("ombra_waitForTransaction", [hash, options], limits);
      if (seen.status === "included") return seen;
      if (seen.status === "dropped") {
        throw new OmbraError(
          `${hash} was dropped: ${seen.dropped.message}`,
          seen.dropped.code,
          seen,
        );
      }
      if (Date.now() >= deadline) {
        throw new OmbraError(`${hash} still waits after ${timeoutMs} ms`, "TIMEOUT", seen);
      }
    }
  }

  /**
   * The nonce for the next transaction of an account, pending ones counted.
   * @param {string} address
   * @returns {Promise<number>}
   */
  async nextNonce(address) {
    return (await this.rpc("ombra_getAccount", [address])).pendingNonce;
  }

  /**
   * The chain that is signed for. The node is asked once, so that no later answer changes it.
   * @returns {Promise<Chain>}
   * @throws {OmbraError} `OTHER_CHAIN` if the node is of another than the one that was expected
   */
  async chain() {
    if (this.#chain) return this.#chain;
    const { chainId, genesisHash } = await this.rpc("ombra_chainInfo");
    const [got, expected] = [{ chainId, genesisHash }, this.#expected];
    const differs = (name) => expected[name] !== undefined && expected[name] !== got[name];
    if (differs("chainId") || differs("genesisHash")) {
      const text = (one) => `${one.chainId ?? "any"}, genesis ${one.genesisHash ?? "any"}`;
      const message = `nothing was signed: expected chain ${text(expected)}; the node is on chain ${text(got)}`;
      throw new OmbraError(message, "OTHER_CHAIN", { expected, got });
    }
    this.#chain ??= got;
    return this.#chain;
  }

  /**
   * The id of the chain that is signed for.
   * @returns {Promise<string>}
   */
  async chainId() {
    return (await this.chain()).chainId;
  }

  /**
   * Builds, signs and sends a transaction with the next nonce, bound to this chain. Calls of one
   * client go one after the other, so that each gets a nonce of its own.
   * @param {Key} key
   * @param {string} type such as `TRANSFER`
   * @param {Record<string, any>} fields see `completeFields`
   * @param {{maxBaseFee?: string | bigint, tip?: string | bigint, unprotected?: boolean}} [options]
   *   `maxBaseFee` and `tip` are what is offered for a place in a block (docs/protocol.md section 15);
   *   with `unprotected` an AGENT_REQUEST gets no members that protect its run
   * @returns {Promise<Signed>} the signed transaction, which the node has accepted
   */
  async submit(key, type, fields, { unprotected = false, ...bid } = {}) {
    const submit = async () => {
      const [chainId, nonce] = [await this.chainId(), await this.nextNonce(key.address)];
      const isGuarded = type === "AGENT_REQUEST" && !unprotected;
      const whole = isGuarded ? await this.protect(fields) : fields;
      const tx = await completeAndSign(key, type, whole, { ...bid, nonce, chainId });
      await this.send(tx);
      return tx;
    };
    const submission = this.#lastSubmission.then(submit);
    this.#lastSubmission = submission.catch(() => {});
    return submission;
  }

  /**
   * The fields of an AGENT_REQUEST with what protects its run: `claimBond` and `refuseMs` as
   * `protection` computes them, where the fields do not say them. Before fork v7 nothing is added.
   * @param {Record<string, any>} fields
   * @returns {Promise<Record<string, any>>}
   */
  async protect(fields) {
    // The schedule has the base fee from v7 on only.
    const { baseFee } = await this.rpc("ombra_feeSchedule");
    if (baseFee === undefined) return fields;
    const given = Object.entries(fields).filter(([, value]) => value !== undefined);
    return { ...protection(fields.maxFee), ...Object.fromEntries(given) };
  }

  /**
   * What an AGENT_FINISH of a run must state now: spread it into the fields.
   * @param {string} agentRunId
   * @returns {Promise<import("./transactions.js").Settlement>}
   */
  async settlement(agentRunId) {
    const { stepCount, ...amounts } = await this.rpc("ombra_settlement", [agentRunId]);
    return amounts;
  }

  /**
   * Stores a text as a blob and waits until it can be referenced. A blob with this text that is
   * there already is not paid for again.
   * @param {Key} key
   * @param {string} text
   * @returns {Promise<string>} the blob's id: the SHA-256 of the text
   */
  async storeText(key, text) {
    const bytes = utf8(text);
    const blobId = await computeContentHash(bytes);
    const known = await this.rpc("ombra_getBlob", [blobId]).catch((error) => {
      if (error.number === NOT_FOUND) return null;
      throw error;
    });
    if (known?.final && known.contentHash === blobId) return blobId;
    const envelope = { nonce: await this.nextNonce(key.address), chainId: await this.chainId() };
    const blob = { blobId, contentType: "text/plain; charset=utf-8", bytes };
    for (const tx of await blobTransactions(key, blob, envelope)) {
      await this.send(tx);
      await this.waitFor(tx.hash);
    }
    return blobId;
  }

  /**
   * The text of a blob, after comparing it with the hash that the chain has of it.
   * @param {string} blobId
   * @returns {Promise<string>}
   */
  async text(blobId) {
    const { contentHash } = await this.rpc("ombra_getBlob", [blobId]);
    const url = new URL(`/api/blob/${encodeURIComponent(blobId)}`, this.#url);
    let response;
    let bytes;
    try {
      response = await fetch(url, { signal: AbortSignal.timeout(this.#timeoutMs) });
      bytes = new Uint8Array(await response.arrayBuffer());
    } catch (error) {
      throw new OmbraError(`no answer from ${url}: ${error.message}`, "UNREACHABLE");
    }
    if (!response.ok) throw new OmbraError(`${url}: ${response.status}`, `HTTP_${response.status}`);
    if ((await computeContentHash(bytes)) !== contentHash) {
      throw new OmbraError(`${url}: other bytes than those of ${contentHash}`, "WRONG_CONTENT");
    }
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  }

  /**
   * Every item of a list, page after page.
   * @param {string} method such as `ombra_getConversation`
   * @param {unknown[]} [params] those before the page
   * @param {{limit?: number, cursor?: string}} [page]
   * @returns {AsyncGenerator<any>}
   */
  async *items(method, params = [], page = {}) {
    let { cursor } = page;
    do {
      const answer = await this.rpc(method, [...params, { ...page, cursor }]);
      yield* answer.items;
      cursor = answer.nextCursor;
    } while (cursor !== null);
  }

  /**
   * Calls a function for each event, in order and each once. A broken connection is made again,
   * and what happened meanwhile is fetched; only of `pool`, which has no past, is it lost.
   * @param {"blocks" | "transactions" | "pool" | "agentRuns" | "chat" | "calls" | "agents"} kind
   * @param {Record<string, any>} filter as docs/rpc.md section 10 has it, with `fromBlock`
   * @param {(event: any) => void} onEvent
   * @param {object} [options]
   * @param {(error: OmbraError) => void} [options.onEnd] called when the node ends the subscription
   *   for good; without it the error is thrown where nobody catches it
   * @param {number} [options.silenceMs] a connection that is silent for so long is asked, and given
   *   up after the same time; 20 seconds if not given
   * @returns {Promise<Subscription>} when the node has accepted it
   */
  async subscribe(kind, filter, onEvent, { onEnd, silenceMs = 20000 } = {}) {
    if (!this.#WebSocket) {
      const hint = "give Client the option WebSocket, or use Node.js 22";
      throw new OmbraError(`this engine has no WebSocket: ${hint}`, "NO_WEBSOCKET");
    }
    const url = new URL(this.#url);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const wanted = { kind, filter, onEvent, onEnd, silenceMs };
    const subscription = new Subscription(url, this.#WebSocket, wanted);
    await subscription.accepted;
    return subscription;
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
