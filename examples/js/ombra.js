// Everything that a wallet, a miner or a web page needs to use an Ombra chain. README.md has examples.

export { FieldError } from "./bytes.js";
export { Client } from "./client.js";
export { OmbraError } from "./errors.js";
export { Key, bareAddress } from "./keys.js";
export { generateMnemonic, parseMnemonic } from "./mnemonic.js";
export { Subscription } from "./subscription.js";
export {
  BLOB_CHUNK_BYTES,
  agentCancel,
  agentClaim,
  agentFinish,
  agentRequest,
  agentStep,
  attachSignature,
  blobChunk,
  blobFinalize,
  blobInit,
  blobTransactions,
  buildTransaction,
  chatTurn,
  completeAndSign,
  completeFields,
  computeAgentRunId,
  computeContentHash,
  computeConversationId,
  computeSettlement,
  minerRegister,
  signTransaction,
  transfer,
  validatorVote,
} from "./transactions.js";
