// What the tests share: the repository's golden files, and the wallet in them.

import { readFileSync } from "node:fs";

const read = (path) =>
  JSON.parse(readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8"));

/** types/vectors.json. */
export const VECTORS = read("types/vectors.json");
/** What JavaScript and Python clients sign. */
export const CLIENTS = read("types/fixtures/clients.json");
/** What all languages agree on about the agent methods. */
export const METHODS = read("agent/fixtures/agent-methods.json");

/** Golden ids, commitments and prices of the agent market. */
export const MARKET = read("types/market_vectors.json");
/** Golden elections. */
export const ELECTIONS = read("state/src/market/election/vectors.json").elections;
/** Methods of agents with values, as another implementation of Solidity's interface encodes them. */
export const ABI = read("types/fixtures/abi.json");

/** The fields of a transaction's own kind, and its envelope. */
export function takeApart(
  { type, from, nonce, timestamp, chainId, publicKey, hash, signature, ...fields },
) {
  return { type, fields, envelope: { from, nonce, timestamp, chainId } };
}

/** Lowercase hex of bytes. */
export const hex = (bytes) => Buffer.from(bytes).toString("hex");
/** The bytes of hex. */
export const bytes = (text) => new Uint8Array(Buffer.from(text, "hex"));
