// The agent market on the node that the tests talk to: an agent, miners that offer for it, and members
// that answer as they are told.

import { randomBytes } from "node:crypto";

import { AgentMethod, computeCommitment, computeResultHash } from "../../../examples/js/ombra.js";
import { account, waitUntil } from "./chain.mjs";

const MANIFEST = "ee".repeat(32);
const JUDGE = {
  type: "function",
  name: "judge",
  inputs: [{ name: "review", type: "string" }, { name: "stars", type: "uint8" }],
  outputs: [{ name: "verdict", type: "string" }, { name: "good", type: "bool" }],
};
/** The method of the agent. */
export const METHOD = new AgentMethod(JUDGE);

/** Has a kind included. */
async function does(node, key, type, fields) {
  const tx = await node.submit(key, type, fields);
  await node.waitFor(tx.hash);
  return tx;
}

/** Publishes an agent and has accounts offer for it; answers its id and the keys by address. */
export async function openMarket(node, name, indexes) {
  const metadata = JSON.stringify({
    name, description: "Says whether a review is good.", version: "1.0.0", container_image: `ombra-model:${MANIFEST}`,
    executor: { kind: "model", model: MANIFEST, basePrompt: "", tools: [], maxIterations: 1, maxOutputTokens: 9 },
    royalty: "500", abi: [JUDGE],
  });
  const { agentId } = await does(node, await account(0), "AGENT_REGISTER", { metadata });
  const miners = {};
  for (const index of indexes) {
    const key = await account(index);
    miners[key.address] = key;
    await does(node, key, "MINER_BOND", { amount: "20000000" });
    const prices = { perCall: "1000", promptPerM: "0", completionPerM: "100000", fuelPerG: "0" };
    await does(node, key, "MINER_OFFER", { executor: `model-1:${MANIFEST}`, capacity: 9, ...prices });
  }
  return { agentId, miners };
}

/** The addresses of a round's members, once they are drawn. */
async function drawn(node, callId, round) {
  let members;
  await waitUntil(`round ${round} of ${callId}`, async () => {
    const call = await node.rpc("ombra_getCall", [callId]).catch(() => null);
    members = call?.rounds[round]?.members;
    return members !== undefined;
  });
  return members.map(({ address }) => address);
}

/** The members of a round commit and reveal; `says` gives the outcome and the values of each by its place. */
export async function answer(node, { miners }, { callId, round = 0, says }) {
  const salt = randomBytes(32).toString("hex");
  const members = await drawn(node, callId, round);
  const speeches = await Promise.all(members.map(async (member, place) => {
    const { outcome = "success", values, usage = {} } = says(place);
    const result = outcome === "success" ? METHOD.encodeResult(values) : "0x";
    const said = { outcome, inputTokens: 12, outputTokens: 3, fuel: 0, receiptHash: "77".repeat(32), ...usage };
    const whole = { ...said, resultHash: await computeResultHash(result) };
    return { key: miners[member], said, result, commitment: await computeCommitment({ callId, round, member }, salt, whole) };
  }));
  await Promise.all(speeches.map(({ key, commitment }) => does(node, key, "CALL_COMMIT", { callId, round, commitment })));
  await Promise.all(speeches.map(({ key, said, result }) => does(node, key, "CALL_REVEAL", { callId, round, salt, result, ...said })));
}
