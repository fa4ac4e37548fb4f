// What a wallet, a miner or a web page needs to use an Ombra chain. README.md has examples.

export { AbiFunction, decodeCall } from "./abi.js";
export { AgentMethod, agentMethods, methodOf } from "./agent-abi.js";
export {
  inferChat,
  inferMessages,
  inferNumber,
  inferString,
  inferToolsChat,
  readAnswer,
  readRequest,
  resume,
  toolResult,
  writeRequest,
} from "./agent-methods.js";
export { FieldError } from "./bytes.js";
export { checkCall, computeResultHash, priceOf } from "./call-check.js";
export { callAgent, checkElection, prepareCall, readAgent, readCall, waitForCall } from "./calls.js";
export { Client } from "./client.js";
export { drawMembers, verifyElection } from "./election.js";
export { OmbraError } from "./errors.js";
export { bareAddress, Key } from "./keys.js";
export { generateMnemonic, parseMnemonic } from "./mnemonic.js";
export { Subscription } from "./subscription.js";
export {
  agentCall,
  agentCancel,
  agentClaim,
  agentFinish,
  agentRefuse,
  agentRegister,
  agentRequest,
  agentRetire,
  agentStep,
  attachSignature,
  BLOB_CHUNK_BYTES,
  blobChunk,
  blobFinalize,
  blobInit,
  blobTransactions,
  buildTransaction,
  callAppeal,
  callCommit,
  callReveal,
  chatTurn,
  completeAndSign,
  completeFields,
  computeAgentId,
  computeAgentRunId,
  computeCallId,
  computeCommitment,
  computeContentHash,
  computeConversationId,
  computeSettlement,
  DEFAULT_TOOLS,
  evidence,
  forkVote,
  minerBond,
  minerOffer,
  minerRegister,
  minerUnbond,
  paramVote,
  protection,
  signTransaction,
  transfer,
  validatorVote,
} from "./transactions.js";
