// Posts a turn to a conversation if a text is given, then prints the conversation.
// Usage: OMBRA_KEY_FILE=key.txt node chat.js CONVERSATION|new [TEXT]

import { client, printable, readKey, run } from "./environment.js";
import { computeConversationId } from "./ombra.js";

await run("node chat.js CONVERSATION|new [TEXT]", async (words) => {
  const [named, content] = words;
  if (words.length < 1 || words.length > 2 || (named === "new" && content === undefined)) {
    return false;
  }
  const key = content === undefined ? null : await readKey();
  const conversationId = named === "new" ? await computeConversationId(key.address) : named;
  if (key) {
    const fields = { conversationId, role: "user", content };
    const { hash } = await client.submit(key, "CHAT_TURN", fields);
    await client.waitFor(hash);
  }
  console.log(`conversation ${conversationId}`);
  for await (const turn of client.items("ombra_getConversation", [conversationId])) {
    console.log(printable(`${turn.from.slice(0, 8)} ${turn.role}: ${turn.content}`));
  }
});
