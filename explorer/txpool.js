// The node's pool: the states of what is in it.

/** Can be executed now; waits for the base fee to fall, from fork v7 on; waits for an earlier nonce. */
const STATES = ["pending", "waiting", "queued"];

/** Each state with what a list of the pool has in it. The node leaves out `waiting` if it has nothing. */
export const byState = (content) => STATES.map((state) => [state, content[state] ?? {}]);
