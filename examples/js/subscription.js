// A subscription that outlives its connections.

import { OmbraError } from "./errors.js";

const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 10000;
/**
 * How often the first connection is tried before the caller is told. Node.js may ask for the
 * WebSocket on a connection that `fetch` has used, which a node refuses and closes.
 */
const FIRST_ATTEMPTS = 5;
/** Answers that no later attempt would change. */
const FINAL = ["INVALID_PARAMS", "HISTORY_UNAVAILABLE", "WEBSOCKET_ONLY", "-32601", "-32600"];

const [HEIGHT, SUBSCRIBE, ALIVE] = [1, 2, 3];

/** Events of one kind. `Client.subscribe` makes it. */
export class Subscription {
  #url;
  #WebSocket;
  #wanted;
  #socket = null;
  #timer;
  #watch;
  #retryMs = RETRY_MS_MIN;
  #firstAttempts = FIRST_ATTEMPTS;
  #settle;
  /** The block to go on with, and how many of its events have been delivered. */
  #block;
  #delivered = 0;
  /** How many events of that block come again after a new beginning. */
  #repeated = 0;

  /**
   * @param {URL} url
   * @param {typeof WebSocket} WebSocket
   * @param {{kind: string, filter: Record<string, any>, onEvent: (event: any) => void,
   *   onEnd?: (error: OmbraError) => void, silenceMs: number}} wanted
   */
  constructor(url, WebSocket, wanted) {
    this.#url = url;
    this.#WebSocket = WebSocket;
    this.#wanted = wanted;
    this.#block = wanted.filter?.fromBlock;
    /** Settled when the node has accepted the subscription or refused it. @type {Promise<void>} */
    this.accepted = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#connect();
  }

  /** Ends the subscription; no event is delivered after this. */
  close() {
    this.#abandon();
    const error = new OmbraError("the subscription was closed", "CLOSED");
    this.#settle?.reject(error);
  }

  #connect() {
    const socket = new this.#WebSocket(this.#url.href);
    this.#socket = socket;
    // What a connection says after it was given up is not heard.
    const on = (name, listener) =>
      socket.addEventListener(name, (event) => {
        if (this.#socket === socket) listener(event);
      });
    on("open", () => this.#begin());
    on("message", ({ data }) => this.#receive(JSON.parse(data)));
    on("close", () => this.#again());
    on("error", () => this.#again());
    this.#listen();
  }

  /** A subscription from now on begins after a height that is known, so that nothing is missed. */
  #begin() {
    const { kind, filter } = this.#wanted;
    const hasPast = kind !== "pool";
    if (hasPast && this.#block === undefined) {
      this.#send(HEIGHT, "ombra_chainInfo", []);
      return;
    }
    this.#repeated = this.#delivered;
    const from = hasPast ? { fromBlock: this.#block } : {};
    this.#send(SUBSCRIBE, "ombra_subscribe", [kind, { ...filter, ...from }]);
  }

  #send(id, method, params) {
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  }

  #receive(message) {
    this.#listen();
    const error = message.error ?? message.params?.error;
    if (error) this.#fail(OmbraError.of(error));
    else if (message.method === "ombra_subscription") this.#deliver(message.params.result);
    else if (message.id === HEIGHT) {
      this.#block = message.result.height + 1;
      this.#begin();
    } else if (message.id === SUBSCRIBE) {
      this.#retryMs = RETRY_MS_MIN;
      this.#settle?.resolve();
      this.#settle = null;
    }
  }

  #deliver(event) {
    if (this.#wanted.kind !== "pool") {
      if (event.blockIndex !== this.#block) {
        this.#block = event.blockIndex;
        this.#delivered = 0;
        this.#repeated = 0;
      }
      if (this.#repeated > 0) {
        this.#repeated -= 1;
        return;
      }
      this.#delivered += 1;
    }
    this.#wanted.onEvent(event);
  }

  /** An error that stays ends the subscription; after others it begins anew. */
  #fail(error) {
    if (!FINAL.includes(error.code)) this.#again(error);
    else this.#end(error);
  }

  #end(error) {
    this.#abandon();
    if (this.#settle) this.#settle.reject(error);
    else if (this.#wanted.onEnd) this.#wanted.onEnd(error);
    else throw error;
  }

  /** A new connection after a while. Until one has succeeded, the number of attempts is limited. */
  #again(error) {
    this.#abandon();
    this.#firstAttempts -= 1;
    if (this.#settle && this.#firstAttempts === 0) {
      this.#end(error ?? new OmbraError(`no WebSocket at ${this.#url}`, "UNREACHABLE"));
      return;
    }
    this.#timer = setTimeout(() => this.#connect(), this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
  }

  #abandon() {
    const socket = this.#socket;
    this.#socket = null;
    clearTimeout(this.#timer);
    clearTimeout(this.#watch);
    socket?.close();
  }

  /** Notices a connection that has died without a word: it is asked, and then given up. */
  #listen() {
    const { silenceMs } = this.#wanted;
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => {
      if (this.#socket.readyState === 1) this.#send(ALIVE, "ombra_chainInfo", []);
      this.#watch = setTimeout(() => this.#again(), silenceMs);
    }, silenceMs);
  }
}
