// The election of a call's members, drawn again (docs/protocol.md section 17.2).

import { toHex, toNumber, utf8, wrong } from "./bytes.js";
import { hash, plainInteger } from "./fields.js";
import { sha256 } from "./hash.js";
import { bareAddress } from "./keys.js";

const NUMBER_BYTES = 16;
/** The most offers that count for an executor, by any vote. */
const CANDIDATES_MAX = 1024;
const SEATS_MAX = 31;
const WEIGHT = /^[1-9][0-9]{0,19}$/;

/**
 * Who took part in a draw: the weight is the bond in micro; the seat of one with `leftOut` stays empty.
 * @typedef {{address: string, weight: string | bigint, leftOut?: boolean}} Candidate
 */

/**
 * What is drawn: the members in the order of the draw, one with `isEmpty` being a seat without one.
 * @typedef {{candidatesHash: string, seats: {address: string, isEmpty: boolean}[], members: string[]}} Election
 */

/**
 * Draws the members of a round.
 * @param {{callId: string, round: number, randomness: string, size: number}} round
 * @param {Candidate[]} candidates everybody who took part, in any order
 * @returns {Promise<Election>}
 */
export async function drawMembers({ callId, round, randomness, size }, candidates) {
  hash("callId", callId);
  hash("randomness", randomness);
  if (plainInteger("size", size) > SEATS_MAX) throw wrong("size", size, `at most ${SEATS_MAX} seats`);
  const listed = ordered(candidates);
  const text = listed.map(({ address, weight, leftOut }) => `${address}|${weight}${leftOut ? "-" : ""}`).join("|");
  const left = [...listed];
  const seats = [];
  for (let draw = 0; seats.length < size && left.length > 0; draw += 1) {
    const parts = ["elect", callId, plainInteger("round", round), randomness, draw];
    const digest = await sha256(utf8(parts.join("|")));
    const [{ address, leftOut }] = left.splice(placeOf(left, toNumber(digest.subarray(0, NUMBER_BYTES))), 1);
    seats.push({ address, isEmpty: leftOut });
  }
  return {
    candidatesHash: toHex(await sha256(utf8(text))),
    seats,
    members: seats.filter(({ isEmpty }) => !isEmpty).map(({ address }) => address),
  };
}

/**
 * Whether a round of a call has the members that were drawn.
 * @param {{callId: string, round: number, randomness: string, size: number, members: string[],
 *   candidatesHash: string}} told what the node says
 * @param {Candidate[]} candidates
 * @returns {Promise<string | null>} what is wrong, in words; null if nothing is
 */
export async function verifyElection(told, candidates) {
  const drawn = await drawMembers(told, candidates);
  if (drawn.candidatesHash !== told.candidatesHash) {
    return `candidatesHash is ${told.candidatesHash}, and ${drawn.candidatesHash} of these candidates`;
  }
  const members = told.members.map((member) => bareAddress(member, "member"));
  if (members.join() !== drawn.members.join()) {
    return `the members are ${members.join(", ")}, and ${drawn.members.join(", ")} were drawn`;
  }
  return null;
}

/** By address, each once. */
function ordered(candidates) {
  if (!Array.isArray(candidates) || candidates.length > CANDIDATES_MAX) {
    throw wrong("candidates", candidates?.length, `an array of at most ${CANDIDATES_MAX} candidates`);
  }
  const listed = candidates.map(({ address, weight, leftOut = false }, at) => {
    if (!WEIGHT.test(String(weight))) throw wrong(`candidates[${at}].weight`, weight, "micro, more than 0");
    return { address: bareAddress(address, `candidates[${at}].address`), weight: BigInt(weight), leftOut };
  });
  listed.sort((one, other) => (one.address < other.address ? -1 : 1));
  const twin = listed.find(({ address }, at) => at > 0 && listed[at - 1].address === address);
  if (twin) throw wrong("candidates", twin.address, "each address once");
  return listed;
}

/** The first at which the running sum of weights exceeds the number's place in the whole sum. */
function placeOf(left, number) {
  const place = number % left.reduce((sum, { weight }) => sum + weight, 0n);
  let running = 0n;
  return left.findIndex(({ weight }) => {
    running += weight;
    return running > place;
  });
}
