// Why a call failed.

/** A refusal by the chain, an error of the node, or a node that does not answer. */
export class OmbraError extends Error {
  /**
   * @param {string} message for people
   * @param {string} code a fixed word for programs
   * @param {any} [data] what the node tells beside it
   * @param {number} [number] the number of the JSON-RPC error
   */
  constructor(message, code, data, number) {
    super(message);
    this.name = "OmbraError";
    /**
     * A code of docs/protocol.md section 9 or docs/rpc.md section 2.3 such as `NONCE_STALE`; the
     * number as text where the node gives no word; or one of this client: `UNREACHABLE`, `TIMEOUT`,
     * `ABORTED`, `NO_WEBSOCKET`, `OTHER_CHAIN`, `HTTP_403`.
     * @type {string}
     */
    this.code = code;
    /** What the node tells beside it: `field`, `got`, `expected`, `retryAfterMs`. @type {any} */
    this.data = data;
    /** The number of the JSON-RPC error, if it was one. @type {number | undefined} */
    this.number = number;
    /** The transaction that was being sent, if it was one. @type {string | undefined} */
    this.hash = undefined;
    /** How many calls `callAgent` had sent, if it threw this. @type {number | undefined} */
    this.tries = undefined;
  }

  /**
   * The error object of an answer.
   * @param {{code: number, message: string, data?: any}} error
   * @returns {OmbraError}
   */
  static of({ code, message, data }) {
    return new OmbraError(message, data?.code ?? String(code), data, code);
  }
}
