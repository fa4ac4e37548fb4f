// Search by anything that one has: a height, a hash, an address, a key, a blob, a miner's name.

import { h, route } from "../dom.js";
import { ADDRESS, BLOB, HASH, HEIGHT, short } from "../format.js";
import { card, empty, line, link } from "../parts.js";
import { callAll, CallError, listOf } from "../rpc.js";

const MINERS_MAX = 500;
const FOUND_MAX = 20;

/** Everything that a text may mean: the name of a kind, a label, the parts of a route. */
export async function find(text, signal) {
  const query = text.trim();
  const plain = query.replaceAll(/[,_ ]/g, "").replace(/^#/, "");
  if (HEIGHT.test(plain)) return [["Block", plain, ["block", plain]], ...await byName(query, signal)];
  const lower = query.toLowerCase().replace(/^0x(?=[0-9a-f]{40}([0-9a-f]{24})?$)/, "");
  if (ADDRESS.test(lower)) return [["Account", lower, ["account", lower.slice(-40)]]];
  if (HASH.test(lower)) return byHash(lower, signal);
  return byName(query, signal);
}

async function byHash(hash, signal) {
  const asked = [
    ["Block", ["ombra_getBlock", [hash, false]], ({ index }) => ["block", index]],
    ["Transaction", ["ombra_getTransaction", [hash]], () => ["tx", hash]],
    ["Agent run", ["ombra_getAgentRun", [hash]], () => ["run", hash]],
    ["Agent", ["ombra_getAgent", [hash]], () => ["agent", hash]],
    ["Call", ["ombra_getCall", [hash]], () => ["call", hash]],
    ["Conversation", ["ombra_getConversation", [hash, { limit: 1 }]], ({ items }) => (items.length > 0 ? ["conversation", hash] : null)],
    ["Conversation", ["ombra_listAgentRuns", [{ conversationId: hash }, { limit: 1 }]], ({ items }) => (items.length > 0 ? ["conversation", hash] : null)],
    ["Miner", ["ombra_getMiner", [hash]], ({ address }) => ["account", address]],
    ["Validator", ["ombra_getValidators", []], (set) => accountOf(set, hash)],
  ];
  const answers = await callAll(asked.map(([, request]) => request), signal);
  const found = asked.flatMap(([name, , lead], index) => {
    if (answers[index] instanceof CallError) return [];
    const parts = lead(answers[index]);
    return parts === null ? [] : [[name, hash, parts]];
  });
  const isFirst = (one, index) => found.findIndex(([, , parts]) => route(...parts) === route(...one[2])) === index;
  return found.filter(isFirst);
}

function accountOf(set, key) {
  const validator = set.find(({ publicKey }) => publicKey === key);
  return validator ? ["account", validator.address] : null;
}

async function byName(query, signal) {
  if (query === "") return [];
  const wanted = query.toLowerCase();
  const asked = [["ombra_listMiners", [{ limit: MINERS_MAX }]]];
  if (BLOB.test(query)) asked.push(["ombra_getBlob", [query]]);
  const [[miners, blob], agents] = await Promise.all([callAll(asked, signal), listOf("ombra_listAgents", { text: query }, FOUND_MAX, signal)]);
  const named = miners instanceof CallError ? [] : miners.items.filter(({ name }) => name.toLowerCase().includes(wanted));
  const found = named.slice(0, FOUND_MAX).map(({ name, address }) => ["Miner", `${name} (${short(address)})`, ["account", address]]);
  found.push(...agents.items.map(({ agentId, name }) => ["Agent", `${name} (${short(agentId)})`, ["agent", agentId]]));
  if (blob && !(blob instanceof CallError)) found.unshift(["Blob", query, ["blob", query]]);
  return found;
}

/** One thing that is found is opened; of several one chooses. */
export function search(page, [query]) {
  const list = page.part({
    load: (signal) => find(query, signal),
    draw: (found) => {
      if (found.length === 1) {
        location.replace(route(...found[0][2]));
        return [];
      }
      if (found.length === 0) return empty("Nothing on this chain matches. Search takes a height, a hash, an address, a key, the id of a run, agent, call, conversation, blob or miner, or a part of the name of a miner or an agent.");
      return h("ul", { class: "found" }, found.map(([name, label, parts]) => h("li", {}, `${name} `, link(parts, line(label)))));
    },
  });
  page.show("Search", h("p", {}, "For ", line(query, 200)), card(null, list.box));
}
