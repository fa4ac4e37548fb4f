// The node's pool: the states of what is in it, and whether it has refused a transaction.

/** Can be executed now; waits for the base fee to fall, from fork v7 on; waits for an earlier nonce. */
const STATES = ["pending", "waiting", "queued"];

/** Each state with what a list of the pool has in it. The node leaves out `waiting` if it has nothing. */
export const byState = (content) => STATES.map((state) => [state, content[state] ?? {}]);

/** The chain's rules reject the transaction; the node does not understand it. */
const REFUSALS = [-32050, -32602];

/**
 * Whether a failed submission says that the node has not taken the transaction. After any other failure
 * it may have: after an internal error, the transaction is in the pool, and only the journal lacks it.
 */
export const isRefusal = (error) => REFUSALS.includes(error.number);
