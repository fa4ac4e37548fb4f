//! Bodies of the agent market, with what does not matter filled in.

use types::ids::compute_call_id;
use types::tx::{AgentCall, CallPrices, HexBytes, MinerBond, MinerOffer, WorkLimits};
use types::{Amount, Body, Hash};

use crate::world::{CHAIN_ID, key};

/// The selector of `f()`.
const PAYLOAD: [u8; 4] = [0x26, 0x12, 0x1f, 0xf0];

pub fn bond(amount: u64) -> Body {
    Body::MinerBond(MinerBond { amount: Amount::new(amount) })
}

/// An offer for these prices: for a call, for a million of tokens read and written, for fuel.
pub fn offer(executor: &str, capacity: u64, prices: [u64; 4]) -> Body {
    let [per_call, prompt_per_m, completion_per_m, fuel_per_g] = prices.map(Amount::new);
    let executor = executor.to_owned();
    Body::MinerOffer(MinerOffer {
        executor,
        capacity,
        per_call,
        prompt_per_m,
        completion_per_m,
        fuel_per_g,
    })
}

/// What the key of `seed` would ask of three members with this nonce, for prices as in [`offer`].
pub fn call(seed: u8, nonce: u64, agent_id: Hash, prices: [u64; 4]) -> AgentCall {
    let [per_call, prompt_per_m, completion_per_m, fuel_per_g] = prices.map(Amount::new);
    AgentCall {
        call_id: compute_call_id(CHAIN_ID, &key(seed).address(), nonce),
        agent_id,
        agent_version: "1.0.0".to_owned(),
        payload: HexBytes(PAYLOAD.to_vec()),
        consensus: "majority".to_owned(),
        committee_size: 3,
        prices: CallPrices { per_call, prompt_per_m, completion_per_m, fuel_per_g },
        limits: WorkLimits { input_tokens: 10, output_tokens: 10, fuel: 0, result_bytes: 16_384 },
        max_fee: Amount::new(10_000),
        timeout_ms: 60_000,
        threshold: None,
        appealable: None,
        on_result: None,
        conversation_id: None,
    }
}
