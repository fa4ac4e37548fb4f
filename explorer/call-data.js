// What belongs to a call and is not in its record: the method that it asks, with what payload and result
// say by it, and the salts of its reveals.

import { h } from "./dom.js";
import { agentMethods, methodOf } from "./lib/agent-abi.js";
import { block, facts, line } from "./parts.js";
import { call, callAll, CallError } from "./rpc.js";

/** Agents that were asked for: a version never changes. */
const known = new Map();
const KNOWN_MAX = 50;

/** The name of a call's agent and the method that is asked, as far as the metadata tells. */
export async function agentOf({ agentId, agentVersion, payload }, signal) {
  const id = `${agentId}@${agentVersion}`;
  if (!known.has(id)) {
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(id, await read(agentId, agentVersion, signal));
  }
  const agent = known.get(id);
  return agent && { name: agent.name, method: methodOf(agent.methods, payload) };
}

async function read(agentId, version, signal) {
  const { name, metadata } = await call("ombra_getAgent", [agentId, version], signal);
  try {
    return { name, methods: agentMethods(metadata) };
  } catch {
    return { name, methods: [] };
  }
}

/** Settled calls that were asked for: they do not change either. */
const settled = new Map();

/** Calls with their members; those that the node does not tell are left out. */
export async function wholeCalls(ids, signal) {
  if (settled.size > KNOWN_MAX) settled.clear();
  const asked = ids.filter((id) => !settled.has(id));
  const answers = await callAll(asked.map((id) => ["ombra_getCall", [id]]), signal);
  const found = new Map(asked.map((id, index) => [id, answers[index]]));
  for (const [id, one] of found) if (one.settled) settled.set(id, one);
  return ids.map((id) => found.get(id) ?? settled.get(id)).filter((one) => one && !(one instanceof CallError));
}

/** The call with the salts of its reveals, which stand in their transactions. */
export async function salted(found, signal) {
  const members = found.rounds.flatMap((round) => round.members ?? []);
  const reveals = members.flatMap(({ reveal }) => (reveal && reveal.salt === undefined ? [reveal] : []));
  const indexes = [...new Set(reveals.map(({ blockIndex }) => blockIndex))];
  const blocks = await callAll(indexes.map((index) => ["ombra_getBlock", [index, false]]), signal);
  const hashOf = ({ blockIndex, position }) => blocks[indexes.indexOf(blockIndex)].transactions?.[position];
  const there = reveals.filter((reveal) => hashOf(reveal) !== undefined);
  const sent = await callAll(there.map((reveal) => ["ombra_getTransaction", [hashOf(reveal)]]), signal);
  there.forEach((reveal, at) => {
    if (!(sent[at] instanceof CallError)) reveal.salt = sent[at].tx.salt;
  });
  return found;
}

/** Values by name, or as they stand where names are missing. */
const values = (named) => facts(Object.entries(named).map(([name, value]) =>
  [line(/^[0-9]+$/.test(name) ? `#${Number(name) + 1}` : name, 60), typeof value === "string" ? block(value) : block(JSON.stringify(value, null, 1), { mono: true })]));

/** What hex says by a method of the agent; as hex where it does not read so. */
export function readable(hex, read) {
  try {
    const found = read();
    if (found) return Object.keys(found).length === 0 ? h("p", {}, "nothing") : values(found);
  } catch {
    // Shown as it is.
  }
  return block(hex, { mono: true, max: 1000 });
}
