// The example programs, as a person runs them.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { computeContentHash } from "../../examples/js/ombra.js";
import { account, client, URL_OF_NODE, waitUntil, WORDS } from "./support/chain.mjs";

const PERSON = 7;
const node = client();

/** Runs Node.js to its end; answers its exit code and what it printed. */
function execute(words, variables) {
  const { PATH } = process.env;
  const env = { PATH, OMBRA_URL: URL_OF_NODE, NODE_NO_WARNINGS: "1", ...variables };
  return new Promise((resolve) => {
    execFile(process.execPath, words, { env }, (error, out, err) => {
      resolve({ exit: error?.code ?? 0, out: out.split("\n").slice(0, -1), err: err.trim() });
    });
  });
}

/** Runs one of the programs. */
function program(name, words, key = { OMBRA_KEY: WORDS, OMBRA_KEY_INDEX: `${PERSON}` }) {
  const file = new URL(`../../examples/js/${name}`, import.meta.url).pathname;
  return execute([file, ...words], key);
}

test("send.js shows a balance and sends money", async () => {
  const [person, other] = [await account(PERSON), await account(8)];
  const before = await program("send.js", []);
  assert.deepEqual(before.out, [`${person.address} has 1000.000000 OMBRA, nonce 0`]);
  const sent = await program("send.js", [other.address, "1500000"]);
  assert.match(sent.out[0], /^[0-9a-f]{64} is in block [0-9]+$/);
  assert.equal(sent.out[1], `${person.address} has 998.500000 OMBRA, nonce 1`);
  assert.equal((await node.rpc("ombra_getAccount", [other.address])).balance, "1001500000");
});

test("a key is read from a file", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "ombra-js-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "key.txt");
  const person = await account(PERSON);
  writeFileSync(file, `${person.exportPrivateKey()}\n`, { mode: 0o600 });
  const { out } = await program("send.js", [], { OMBRA_KEY_FILE: file });
  assert.ok(out[0].startsWith(person.address), out[0]);
});

test("agent-run.js follows a run to its settlement", async () => {
  const miner = await account(9);
  const asked = program("agent-run.js", ["How much is 6 * 7?", "50000", "4"]);
  let agentRunId, toolsWhitelist;
  await waitUntil("the request", async () => {
    const { items } = await node.rpc("ombra_listAgentRuns", [{ status: "pending" }]);
    const run = items.find(({ prompt }) => prompt === "How much is 6 * 7?");
    ({ agentRunId, toolsWhitelist } = run ?? {});
    return agentRunId !== undefined;
  });
  assert.deepEqual(toolsWhitelist, ["date_diff", "date_parse", "math_eval"]);
  const does = async (type, fields) => {
    const { hash } = await node.submit(miner, type, { agentRunId, ...fields });
    await node.waitFor(hash);
  };
  await does("AGENT_CLAIM", { modelInfo: "a person", hardwareTier: "laptop" });
  const outputHash = await computeContentHash("42");
  await does("AGENT_STEP", { stepIndex: 0, outputTokens: 1, outputHash });
  const amounts = await node.settlement(agentRunId);
  await does("AGENT_FINISH", { status: "completed", finalAnswerInline: "42", ...amounts });

  const { exit, out } = await asked;
  assert.equal(exit, 0);
  assert.match(out[0], new RegExp(`^run ${agentRunId} is in block [0-9]+$`));
  assert.deepEqual(out.slice(-2), ["42", "completed: miner 1, refund 49899, burned 100 micro"]);
});

test("chat.js begins a conversation and goes on with it", async () => {
  const { address } = await account(PERSON);
  const begun = await program("chat.js", ["new", "salut 😀"]);
  const line = `${address.slice(0, 8)} user: salut 😀`;
  assert.equal(begun.out[1], line);
  const conversation = begun.out[0].replace("conversation ", "");
  const second = await program("chat.js", [conversation, "again"]);
  assert.deepEqual(second.out, [begun.out[0], line, `${address.slice(0, 8)} user: again`]);
  const read = await program("chat.js", [conversation], {});
  assert.deepEqual(read.out, second.out);
});

test("wrong use is told with exit code 2, and what fails with 1", async () => {
  for (const [name, words] of [["send.js", ["x"]], ["agent-run.js", []], ["chat.js", ["new"]]]) {
    const { exit, err } = await program(name, words);
    assert.deepEqual([exit, err.startsWith(`usage: node ${name} `)], [2, true], err);
  }
  const poor = await program("send.js", [(await account(8)).address, "5000000000000"]);
  assert.equal(poor.exit, 1);
  assert.match(poor.err, /^error: INSUFFICIENT_BALANCE: /);
  const keyless = await program("send.js", [], {});
  assert.deepEqual([keyless.exit, keyless.err.startsWith("error: no key: set OMBRA_KEY")], [
    1,
    true,
  ]);
});

test("the example in the README runs", async () => {
  const folder = new URL("../../examples/js/", import.meta.url);
  const [, block] = readFileSync(new URL("README.md", folder), "utf8").split("```js\n");
  const [imports, ...rest] = block.split("```")[0].split("\n");
  const socket = new URL("./support/websocket.mjs", import.meta.url).href;
  const program = [
    imports.replace("./ombra.js", new URL("ombra.js", folder).href),
    `globalThis.WebSocket ??= (await import(${JSON.stringify(socket)})).WebSocket;`,
    rest.join("\n").replace("http://127.0.0.1:8777", URL_OF_NODE),
  ];
  const words = ["--input-type=module", "--eval", program.join("\n")];
  const { exit, out, err } = await execute(words, {});
  assert.equal(exit, 0, err);
  const { address } = await account(0);
  assert.ok(out.some((line) => line.includes(`address: '${address}'`)), out.join("\n"));
});
