// What the example programs take from the environment: the node's address, the key, and its chain.
//
//   OMBRA_URL        the node, http://127.0.0.1:8777 if not set
//   OMBRA_KEY        a private key of 64 hex characters, or a mnemonic
//   OMBRA_KEY_FILE   a file that holds one of these; used if OMBRA_KEY is not set
//   OMBRA_KEY_INDEX  which key of the mnemonic, 0 if not set
//   OMBRA_CHAIN_ID   the only chain that is signed for; if not set, that of the first use of
//                    OMBRA_KEY_FILE, which is remembered beside it, and else the node's

import { readFile, realpath, writeFile } from "node:fs/promises";

import { Client, Key } from "./ombra.js";

const { OMBRA_URL, OMBRA_KEY, OMBRA_KEY_FILE, OMBRA_KEY_INDEX = "0", OMBRA_CHAIN_ID } = process.env;

/** Where the chain of the key's first use is remembered, as `ombra` does beside its wallets. */
const memory = async () => `${await realpath(OMBRA_KEY_FILE)}.chain`;
const remembers = !OMBRA_KEY && OMBRA_KEY_FILE && !OMBRA_CHAIN_ID;

/** The chain that is remembered; none before the first use, and none without a key. */
async function recall() {
  if (!remembers) return OMBRA_CHAIN_ID ? { chainId: OMBRA_CHAIN_ID } : undefined;
  try {
    const { v, chainId, genesisHash } = JSON.parse(await readFile(await memory(), "utf8"));
    if (v === 1 && chainId && genesisHash) return { chainId, genesisHash };
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
  throw new Error(`${await memory()} does not say which chain the key is used on`);
}

/** A client of the node. */
export const client = new Client(OMBRA_URL, { chain: await recall() });

/**
 * The key. Arguments of a program are seen by everybody on the machine, so it is no argument. The
 * chain of its first use is remembered before anything is signed.
 * @returns {Promise<Key>}
 */
export async function readKey() {
  if (!OMBRA_KEY && !OMBRA_KEY_FILE) {
    throw new Error("no key: set OMBRA_KEY, or OMBRA_KEY_FILE to a file that holds the key");
  }
  const secret = (OMBRA_KEY ?? (await readFile(OMBRA_KEY_FILE, "utf8"))).trim();
  if (remembers && (await recall()) === undefined) await remember(await client.chain());
  if (/^[0-9a-f]{64}$/.test(secret)) return Key.fromPrivateKey(secret);
  return Key.fromMnemonic(secret, { index: Number(OMBRA_KEY_INDEX) });
}

/** Of two programs that use a key for the first time at the same time, the first to write decides. */
async function remember(chain) {
  const text = `${JSON.stringify({ v: 1, ...chain })}\n`;
  try {
    await writeFile(await memory(), text, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    const known = await recall();
    if (known?.chainId === chain.chainId && known.genesisHash === chain.genesisHash) return;
    throw new Error(`${await memory()} remembers another chain than the node's`, { cause: error });
  }
}

/** Characters that drive a terminal, turn the direction of writing, or cannot be seen. */
const UNSAFE =
  /[^\P{Cc}\n\t]|[\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}]/gu;

/**
 * A text of a stranger for a terminal.
 * @param {unknown} text
 */
export const printable = (text) => String(text).replace(UNSAFE, "\ufffd");

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
    console.error(printable(`error: ${error.code ? `${error.code}: ` : ""}${error.message}`));
    process.exitCode = 1;
  }
}
