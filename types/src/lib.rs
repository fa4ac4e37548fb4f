//! The data types of the chain and their encoding: addresses, amounts, keys, transactions, blocks,
//! records.
//!
//! ```text
//! text ──parse──▶ Transaction ──check::verify──▶ CheckedTx ──▶ pool, blocks, execution
//!                     ▲
//! fields ──build──▶ Unsigned ──sign──▶ text
//! ```
//!
//! Entry points: [`Transaction::parse`], [`check::verify`], [`build`], [`block::Block`].
//! Rules: docs/protocol.md sections 1–6, 8, 9, 15, 17 and 18.
//!
//! Not here: files, network, database, clocks, randomness, anything asynchronous. What a
//! transaction does to the state is in the crate `state`.

#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::indexing_slicing,
        clippy::float_arithmetic
    )
)]

pub mod abi;
pub mod address;
pub mod agent;
pub mod amount;
pub mod bid;
pub mod block;
pub mod build;
pub mod call;
pub mod check;
pub mod codec;
pub mod error;
pub mod event;
mod fork_vote;
pub mod forks;
pub mod hash;
pub mod ids;
pub mod json;
pub mod keys;
pub mod late;
pub mod market;
pub mod params;
pub mod randomness;
pub mod records;
pub mod sign_bytes;
pub mod text;
pub mod transaction;
pub mod tx;
pub mod vrf;

#[cfg(test)]
mod testing;

pub use address::Address;
pub use amount::Amount;
pub use bid::Bid;
pub use block::{Block, CommittedBlock, Header, SealedBlock, UncheckedBlock};
pub use error::{Code, Rejection};
pub use event::{BlockEvents, BlockFees, BondChange, Credit, EscrowChange, Event, TxEvent};
pub use forks::{Fork, Forks};
pub use hash::Hash;
pub use keys::{Keypair, PublicKey, Signature};
pub use late::Late;
pub use market::{Offer, Prices, Usage};
pub use params::Params;
pub use randomness::Randomness;
pub use records::{
    Account, Agent, AgentVersion, Blob, Bond, Ender, KeyStanding, Miner, MinerFigures, OpenVote,
    Run, RunAgent, RunProtection, RunStatus, SetMember, Settlement, Step, SubmitterFigures, Supply,
    TxLocation, ValidatorSets,
};
pub use transaction::{CheckedTx, SealedTx, SizeLimits, Transaction};
pub use tx::{Body, ForkVote};
