// Shows a balance, or sends money and waits for the block.
// Usage: OMBRA_KEY_FILE=key.txt node send.js [ADDRESS MICRO]

import { client, printable, readKey, run } from "./environment.js";

await run("node send.js [ADDRESS MICRO]", async (words) => {
  const [to, amount] = words;
  if (words.length !== 0 && words.length !== 2) return false;
  const key = await readKey();
  if (to !== undefined) {
    const { hash } = await client.submit(key, "TRANSFER", { to, amount });
    const { blockIndex } = await client.waitFor(hash);
    console.log(printable(`${hash} is in block ${blockIndex}`));
  }
  const { balanceOmbra, nonce } = await client.rpc("ombra_getAccount", [key.address]);
  console.log(printable(`${key.address} has ${balanceOmbra} OMBRA, nonce ${nonce}`));
});
