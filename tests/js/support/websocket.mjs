// A WebSocket for tests (RFC 6455): Node.js before 22 has none.

import { randomBytes } from "node:crypto";
import { connect } from "node:net";

const [TEXT, CLOSE, PING, PONG] = [1, 8, 9, 10];

/** As much of the browser's WebSocket as the library uses. */
export class WebSocket extends EventTarget {
  #socket;
  #unread = Buffer.alloc(0);
  #parts = [];
  readyState = 0;

  constructor(url) {
    super();
    const { hostname, port, pathname } = new URL(url);
    this.#socket = connect(Number(port), hostname, () => {
      const key = randomBytes(16).toString("base64");
      const lines = [
        `GET ${pathname} HTTP/1.1`,
        `Host: ${hostname}:${port}`,
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        `Sec-WebSocket-Key: ${key}`,
      ];
      this.#socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    });
    this.#socket.on("data", (bytes) => this.#take(bytes));
    this.#socket.on("error", () => this.dispatchEvent(new Event("error")));
    this.#socket.on("close", () => {
      this.readyState = 3;
      this.dispatchEvent(new Event("close"));
    });
  }

  send(text) {
    this.#write(TEXT, Buffer.from(text, "utf8"));
  }

  close() {
    this.readyState = 2;
    this.#socket.destroy();
  }

  #write(opcode, body) {
    const mask = randomBytes(4);
    const head = [0x80 | opcode];
    if (body.length < 126) head.push(0x80 | body.length);
    else head.push(0x80 | 126, body.length >> 8, body.length & 255);
    const masked = body.map((byte, at) => byte ^ mask[at % 4]);
    this.#socket.write(Buffer.concat([Buffer.from(head), mask, masked]));
  }

  #take(bytes) {
    this.#unread = Buffer.concat([this.#unread, bytes]);
    if (this.readyState === 0 && !this.#greeted()) return;
    for (let frame = this.#frame(); frame; frame = this.#frame()) this.#handle(frame);
  }

  /** Reads the answer to the upgrade; answers whether it is there and good. */
  #greeted() {
    const end = this.#unread.indexOf("\r\n\r\n");
    if (end < 0) return false;
    const isUpgraded = this.#unread.toString("latin1").startsWith("HTTP/1.1 101 ");
    this.#unread = this.#unread.subarray(end + 4);
    if (!isUpgraded) {
      this.#socket.destroy();
      return false;
    }
    this.readyState = 1;
    this.dispatchEvent(new Event("open"));
    return true;
  }

  /** The next whole frame. A server masks nothing. */
  #frame() {
    if (this.#unread.length < 2) return null;
    const [first, short] = this.#unread;
    const extra = { 126: 2, 127: 8 }[short] ?? 0;
    if (this.#unread.length < 2 + extra) return null;
    let length = short;
    if (extra === 2) length = this.#unread.readUInt16BE(2);
    if (extra === 8) length = Number(this.#unread.readBigUInt64BE(2));
    const end = 2 + extra + length;
    if (this.#unread.length < end) return null;
    const body = this.#unread.subarray(2 + extra, end);
    this.#unread = this.#unread.subarray(end);
    return { opcode: first & 15, isLast: first >= 128, body };
  }

  #handle({ opcode, isLast, body }) {
    if (opcode === PING) this.#write(PONG, body);
    if (opcode === CLOSE) this.#socket.destroy();
    if (opcode > TEXT) return;
    this.#parts.push(body);
    if (!isLast) return;
    const data = Buffer.concat(this.#parts).toString("utf8");
    this.#parts = [];
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }
}
