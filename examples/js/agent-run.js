// Asks for an agent run and follows it until it is settled. Ctrl-C stops following, not the run.
// The miner may use its calculator and its tools for dates, unless OMBRA_NO_TOOLS is set.
// Usage: OMBRA_KEY_FILE=key.txt node agent-run.js PROMPT [MAX_FEE_MICRO [MAX_STEPS]]

import { client, printable, readKey, run } from "./environment.js";
import { DEFAULT_TOOLS } from "./ombra.js";

const ENDED = ["completed", "failed", "timeout", "insufficient_funds", "cancelled"];
const POLL_MS = 500;

await run("node agent-run.js PROMPT [MAX_FEE_MICRO [MAX_STEPS]]", async (words) => {
  const [prompt, maxFee = "100000", maxSteps = "8"] = words;
  if (words.length < 1 || words.length > 3) return false;
  const toolsWhitelist = process.env.OMBRA_NO_TOOLS ? [] : DEFAULT_TOOLS;
  const fields = { prompt, maxFee, maxSteps: Number(maxSteps), toolsWhitelist };
  const { hash, agentRunId } = await client.submit(await readKey(), "AGENT_REQUEST", fields);
  const { blockIndex } = await client.waitFor(hash);
  console.log(`run ${agentRunId} is in block ${blockIndex}`);

  await (globalThis.WebSocket ? listen(agentRunId, blockIndex) : poll(agentRunId));

  const ended = await client.rpc("ombra_getAgentRun", [agentRunId]);
  const { status, finalAnswerInline, minerReward = "0", userRefund, networkFee = "0" } = ended;
  const { heldUntil } = ended;
  if (finalAnswerInline !== undefined) console.log(printable(finalAnswerInline));
  console.log(`${status}: miner ${minerReward}, refund ${userRefund}, burned ${networkFee} micro`);
  if (heldUntil !== undefined) {
    const until = new Date(heldUntil).toISOString();
    console.log(`the miner's part is held until ${until}; an AGENT_REFUSE of ${agentRunId} burns it`);
  }
});

/** Prints every event of the run from its block on, until it has ended. */
function listen(agentRunId, fromBlock) {
  return new Promise((resolve, reject) => {
    const onEvent = ({ event, status, stepIndex, outputTokens }) => {
      const what = event === "step" ? `step ${stepIndex}: ${outputTokens} tokens` : event;
      console.log(`${what} (${status})`);
      if (ENDED.includes(status)) {
        subscription.then((open) => open.close());
        resolve();
      }
    };
    const filter = { agentRunId, fromBlock };
    const subscription = client.subscribe("agentRuns", filter, onEvent, { onEnd: reject });
    subscription.catch(reject);
  });
}

/** The same for an engine without WebSocket: asks again and again, and prints what has changed. */
async function poll(agentRunId) {
  let shown;
  for (;;) {
    const { status, stepCount, totalTokensOut } = await client.rpc("ombra_getAgentRun", [
      agentRunId,
    ]);
    const now = `${status}: ${stepCount} steps, ${totalTokensOut} tokens`;
    if (now !== shown) console.log(now);
    if (ENDED.includes(status)) return;
    shown = now;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
