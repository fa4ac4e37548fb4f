// What the example programs take from the environment: the node's address and the key.
//
//   OMBRA_URL        the node, http://127.0.0.1:8777 if not set
//   OMBRA_KEY        a private key of 64 hex characters, or a mnemonic
//   OMBRA_KEY_FILE   a file that holds one of these; used if OMBRA_KEY is not set
//   OMBRA_KEY_INDEX  which key of the mnemonic, 0 if not set

import { readFile } from "node:fs/promises";

import { Client, Key } from "./ombra.js";

const { OMBRA_URL, OMBRA_KEY, OMBRA_KEY_FILE, OMBRA_KEY_INDEX = "0" } = process.env;

/** A client of the node. */
export const client = new Client(OMBRA_URL);

/**
 * The key. Arguments of a program are seen by everybody on the machine, so it is no argument.
 * @returns {Promise<Key>}
 */
export async function readKey() {
  if (!OMBRA_KEY && !OMBRA_KEY_FILE) {
    throw new Error("no key: set OMBRA_KEY, or OMBRA_KEY_FILE to a file that holds the key");
  }
  const secret = (OMBRA_KEY ?? (await readFile(OMBRA_KEY_FILE, "utf8"))).trim();
  if (/^[0-9a-f]{64}$/.test(secret)) return Key.fromPrivateKey(secret);
  return Key.fromMnemonic(secret, { index: Number(OMBRA_KEY_INDEX) });
}

/**
 * Runs a program: what goes wrong is told in one line, with exit code 1.
 * @param {string} usage what is printed, with exit code 2, if `main` answers `false`
 * @param {(words: string[]) => Promise<false | void>} main takes the arguments
 */
export async function run(usage, main) {
  try {
    if ((await main(process.argv.slice(2))) === false) {
      console.error(`usage: ${usage}`);
      process.exitCode = 2;
    }
  } catch (error) {
    console.error(`error: ${error.code ? `${error.code}: ` : ""}${error.message}`);
    process.exitCode = 1;
  }
}
