// The node that the tests talk to. OMBRA_URL says where it is, OMBRA_HOME where its files are.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { request } from "node:http";
import { join } from "node:path";

import { Client, Key } from "../../../examples/js/ombra.js";
import { WebSocket } from "./websocket.mjs";

const { OMBRA_URL, OMBRA_HOME } = process.env;
assert.ok(OMBRA_URL && OMBRA_HOME, "OMBRA_URL and OMBRA_HOME name a chain of `ombra dev`");

/** Words of the development accounts. */
export const WORDS = `${"test ".repeat(11)}junk`;
/** The node's address. */
export const URL_OF_NODE = OMBRA_URL;

/** A client of the node, or of another address. */
export const client = (url = OMBRA_URL) => new Client(url, { WebSocket });

/** The key of a funded account. */
export const account = (index) => Key.fromMnemonic(WORDS, { index });

/** The key of the chain's only validator. */
export const validator = () =>
  Key.fromPrivateKey(readFileSync(join(OMBRA_HOME, "keys/validator.key"), "utf8").trim());

/** Has the node drop every waiting transaction. */
export function flushPool() {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "admin_flushPool", params: [] });
  const options = {
    socketPath: join(OMBRA_HOME, "admin.sock"),
    method: "POST",
    headers: { "content-type": "application/json", "content-length": body.length },
  };
  return new Promise((resolve, reject) => {
    request(options, (response) => response.on("end", resolve).resume())
      .on("error", reject)
      .end(body);
  });
}

/** An address where nobody listens: the system gave the port, and it was closed again. */
export async function nowhere() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

/** Waits until `check` holds, asking again and again until the deadline. */
export async function waitUntil(what, check) {
  const deadline = Date.now() + 60000;
  while (!(await check())) {
    assert.ok(Date.now() < deadline, `waited a minute for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A wire to the node that can be cut, and that can go dead without a word. */
export async function wire() {
  const { hostname, port } = new URL(OMBRA_URL);
  const pairs = new Set();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    const pair = [near, far];
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      pair.forEach((socket) => socket.destroy());
    };
    pair.forEach((socket) => socket.on("error", end).on("close", end));
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    connections: () => pairs.size,
    cut: () => pairs.forEach((pair) => pair.forEach((socket) => socket.destroy())),
    deaden: () => pairs.forEach(([near, far]) => [near.unpipe(far), far.unpipe(near)]),
    close: () => {
      pairs.forEach((pair) => pair.forEach((socket) => socket.destroy()));
      server.close();
    },
  };
}
