// An agent whose tools are functions of this program: a model on the chain says which to call, they
// run here, and their results go back, until the model has answered or a limit is reached.
// Usage: OMBRA_KEY_FILE=key.txt node agent-loop.js PROMPT [SPEND_MICRO [ROUNDS]]
//
// Each round is a run of its own. SPEND_MICRO bounds what all rounds together can cost.

import { client, printable, readKey, run } from "./environment.js";
import { computeConversationId, inferToolsChat, readAnswer, resume, writeRequest } from "./ombra.js";

const MAX_FEE = 20000n;
const MAX_STEPS = 8;
const POLL_MS = 500;

const STOCK = { apples: 12, pears: 0 };

/** The tools: a signature and a description for the model, and the function for this program. */
const TOOLS = [
  {
    signature: "stock_of(string item)",
    description: "How many of an item are in the shop.",
    call: ({ item }) => `${STOCK[item] ?? `there is no ${item}`}`,
  },
  {
    signature: "reserve(string item, uint256 count)",
    description: "Puts so many of an item aside for the customer.",
    call({ item, count }) {
      if (!(BigInt(STOCK[item] ?? 0) >= BigInt(count))) return `error: not so many ${item}`;
      STOCK[item] -= Number(count);
      return `${count} ${item} put aside, ${STOCK[item]} left`;
    },
  },
];

await run("node agent-loop.js PROMPT [SPEND_MICRO [ROUNDS]]", async (words) => {
  const [prompt, spend = "100000", rounds = "5"] = words;
  if (words.length < 1 || words.length > 3) return false;
  const key = await readKey();
  const onchainTools = TOOLS.map(({ signature, description }) => ({ signature, description }));
  let request = inferToolsChat({ messages: [{ role: "user", content: prompt }], onchainTools });
  const conversationId = await computeConversationId(key.address);
  let spent = 0n;
  for (let round = 1; round <= Number(rounds); round += 1) {
    // What a round can cost is its escrow; what it did cost is known when it is settled.
    if (spent + MAX_FEE > BigInt(spend)) {
      throw new Error(`${spent} micro are spent; another round could cost more than ${spend}`);
    }
    const ended = await ask(key, conversationId, request);
    spent += BigInt(ended.maxFee) - BigInt(ended.userRefund);
    const { finalAnswerInline, finalAnswerBlobId, status } = ended;
    const text = finalAnswerInline ?? (finalAnswerBlobId && (await client.text(finalAnswerBlobId)));
    if (text === undefined) throw new Error(`the run ended as ${status}, without an answer`);
    const answer = readAnswer(text, request);
    console.log(`round ${round}: ${answer.finishReason}, ${spent} micro so far`);
    if (answer.finishReason === "error") throw new Error(answer.response);
    if (answer.finishReason !== "tool_calls") {
      console.log(printable(answer.response));
      return;
    }
    const results = Object.fromEntries(answer.calls.map((call) => [call.id, execute(call)]));
    request = resume(request, answer, results);
  }
  throw new Error(`no answer after ${rounds} rounds; ${spent} micro are spent`);
});

/** Runs a call here. What goes wrong is a result for the model, too. */
function execute({ name, arguments: args }) {
  const tool = TOOLS.find(({ signature }) => signature.startsWith(`${name}(`));
  let result;
  try {
    result = tool.call(args);
  } catch (error) {
    result = `error: ${error.message}`;
  }
  console.log(printable(`  ${name}(${JSON.stringify(args)}): ${result}`));
  return result;
}

/** One run, to its settlement. A request that is too long for a transaction goes into a blob. */
async function ask(key, conversationId, request) {
  const { prompt, blob } = writeRequest(request);
  const promptBlobId = blob && (await client.storeText(key, blob));
  const fields = { conversationId, prompt, promptBlobId, maxFee: MAX_FEE, maxSteps: MAX_STEPS };
  const { hash, agentRunId } = await client.submit(key, "AGENT_REQUEST", fields);
  await client.waitFor(hash);
  for (;;) {
    const record = await client.rpc("ombra_getAgentRun", [agentRunId]);
    if (!["pending", "claimed", "running"].includes(record.status)) return record;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
