// Who decides the blocks, and whom this node is connected with.

import { h } from "../dom.js";
import { count, duration } from "../format.js";
import { node } from "../live.js";
import { address, card, facts, height, line, plainHash, status, table, time } from "../parts.js";
import { callAll, CallError, readiness } from "../rpc.js";

/** Punished keys that are shown. */
const PUNISHED_MAX = 50;

export function network(page) {
  const own = page.part({
    load: (signal) => callAll([["net_info", []], ["net_peers", []], ["ombra_chainInfo", []]], signal),
    draw: connected,
    pause: 4000, follow: true,
  });
  const set = page.part({
    load: (signal) => callAll([["ombra_getValidators", []], ["ombra_listPunishedKeys", [{ limit: PUNISHED_MAX }]]], signal),
    draw: validators,
    pause: 2000, follow: true,
  });
  const rules = page.part({
    load: (signal) => callAll([["ombra_params", []], ["ombra_forks", []]], signal),
    draw: changeable,
    pause: 4000, follow: true,
  });
  const relied = page.part({
    load: readiness,
    draw: ({ trust, clock }) => (trust === undefined ? [] : card("What this node relies on", trusted(trust, clock))),
    pause: 4000, follow: true,
  });
  page.show("Network", card("Validators", set.box), rules.box, relied.box, own.box);
}

const ANCHORS = {
  chain: "its own newest block", trusted: "the block that its settings name", genesis: "the keys of genesis",
};

/** By what the node would know a chain that somebody shows it. */
const trusted = ({ anchor, height: at, ageMs, periodMs }, clock) => facts([
  ["Anchor", ANCHORS[anchor] ?? line(anchor)],
  ["Height", height(at)],
  ["How old that is", ageMs === null ? null : duration(ageMs)],
  ["Old enough to ask others after", duration(periodMs)],
  ["Its clock", clock === undefined ? null : line(clock.detail, 400)],
]);

/** The rules that validators can change, how they vote on them, and the forks that are to come. */
function changeable([params, forks]) {
  for (const found of [params, forks]) if (found instanceof CallError) throw found;
  const rows = params.params.map(({ name, value, min, max, next, votes }) => [
    h("code", {}, line(name)), count(value), `${count(min)} to ${count(max)}`,
    next === undefined ? "–" : h("span", {}, `${count(next.value)} from `, height(next.height)),
    votes.length === 0 ? "none" : h("ul", { class: "words" }, votes.map((vote) => h("li", {}, ballot(count(vote.value), vote, params.totalPower)))),
  ]);
  const coming = forks.forks.map(({ fork, known, fixed, votes }) => [
    line(fork), known ? "knows it" : "stops before it",
    fixed === undefined ? "–" : height(fixed.height),
    votes.length === 0 ? "none" : h("ul", { class: "words" }, votes.map((vote) => h("li", {}, ballot(null, vote, forks.totalPower)))),
  ]);
  return [
    params.active ? card("Rules that validators can change", table("Rules that validators can change", ["Name", "Now", "May be", "Decided", "Votes"], rows)) : null,
    coming.length === 0 ? null : card("Forks to come", table("Forks to come", ["Fork", "This node", "Begins with block", "Votes"], coming)),
  ];
}

/** What some validators vote for, from a block on, and with how much of all power. */
const ballot = (what, { height: from, power, voters }, whole) => [
  what === null ? "from " : `${what} from `, height(from), `, ${share(Number(power), Number(whole))} of the power: `,
  voters.map((voter, index) => [index === 0 ? null : ", ", address(voter.address)]),
];

const share = (power, whole) => (whole > 0 ? `${((power / whole) * 100).toFixed(1)} %` : "–");

function validators([found, punished]) {
  for (const one of [found, punished]) if (one instanceof CallError) throw one;
  const whole = found.reduce((sum, one) => sum + one.power, 0);
  const rows = found.map((one) => [
    address(one.address), plainHash(one.publicKey, "public key"), h("span", {}, count(one.power), h("span", { class: "faint" }, ` ${share(one.power, whole)}`)),
    count(one.proposed), count(one.missed),
    one.equivocations > 0 ? h("span", { class: "badge bad" }, `${count(one.equivocations)} seen`) : "none",
  ]);
  const votes = found.flatMap((one) => one.votes.map((vote) => [address(one.address), plainHash(vote.candidateKey, "public key"), count(vote.power), time(vote.expiresAt)]));
  const evidence = found.flatMap((one) => one.evidence.map((pair) => [address(one.address), height(pair.height), count(pair.round), line(pair.kind), ...pair.messages.map(choice)]));
  return [
    table("Validators", ["Validator", "Key", "Power", "Proposed", "Missed", "Contradictions"], rows),
    lost(punished.items),
    votes.length === 0 ? null : [h("h3", {}, "Open votes"), table("Open votes", ["Voter", "Candidate", "Power", "Counts until"], votes)],
    evidence.length === 0 ? null : [h("h3", {}, "Contradictions that this node saw"), table("Contradictions", ["Validator", "Block", "Round", "Kind", "One says", "The other says"], evidence)],
  ];
}

/** The keys that lost their power for good. */
const lost = (keys) => keys.length === 0 ? null : h("p", {}, "Punished, never to have power again: ",
  keys.map(({ publicKey, address: account, punishedAt }, index) => h("span", {}, index === 0 ? null : "; ", plainHash(publicKey, "public key"), " of ", address(account), " in block ", height(punishedAt))));

/** What a signed message is for: a block, which need not have become one of the chain, or none. */
const choice = ({ blockHash }) => (blockHash === undefined ? "no block" : plainHash(blockHash, "block hash"));

function connected([own, peers, info]) {
  for (const found of [own, peers, info]) if (found instanceof CallError) throw found;
  const rows = peers.map((peer) => [
    h("code", { class: "cut", title: peer.peerId }, peer.peerId), line(peer.address), peer.height === undefined ? "–" : height(peer.height),
    peer.latencyMs === undefined ? "–" : `${count(peer.latencyMs)} ms`, peer.score === undefined ? "–" : peer.score.toFixed(1), line(peer.direction),
  ]);
  return [
    card("Peers", table("Peers", ["Peer", "Address", "Height", "Round trip", "Score", "Direction"], rows, { none: "This node has no peers: it is alone, or a chain for one person." })),
    card("This node", facts([
      ["Peer id", h("code", { class: "long" }, own.peerId)],
      ["Listens on", own.listenAddresses.length === 0 ? "nothing" : h("ul", { class: "words" }, own.listenAddresses.map((one) => h("li", {}, h("code", {}, one))))],
      ["State", info.syncing ? status("catching up") : status("up to date")],
      ["Height", height(info.height)],
      ["First block here", height(info.earliestBlock)],
      ["Chain", line(info.chainId)],
      ["Genesis", plainHash(info.genesisHash, "genesis hash", true)],
      ["Protocol", line(info.protocol)],
      ["Version", line(node.info?.version ?? info.version)],
    ])),
    card("Parameters", h("details", {}, h("summary", {}, "What genesis says"), facts(Object.entries(info.params).map(([name, value]) => [name, h("code", {}, JSON.stringify(value))])))),
  ];
}
