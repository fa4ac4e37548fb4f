//! The kinds of transactions: one file each, with its rules in order of precedence and its effects.
//!
//! A kind says here what it does to the state; its fields and the limits that need no state are in
//! the file of the same name in the crate `types`. CONTRIBUTING.md has the recipe for a new one.

mod agent_call;
mod agent_cancel;
mod agent_claim;
mod agent_finish;
mod agent_refuse;
pub(crate) mod agent_register;
mod agent_request;
mod agent_retire;
mod agent_step;
mod blob_chunk;
mod blob_finalize;
mod blob_init;
pub(crate) mod blobs;
pub(crate) mod call_appeal;
mod call_commit;
mod call_reveal;
mod chat_turn;
mod early;
pub(crate) mod envelope;
mod evidence;
mod fork_vote;
mod kind;
#[cfg(test)]
mod made_up;
mod miner_bond;
mod miner_offer;
mod miner_register;
mod miner_unbond;
mod param_vote;
mod transfer;
mod validator_vote;
pub(crate) mod votes;

pub(crate) use early::is_early;
pub(crate) use kind::{Cost, Inclusion, Kind};
