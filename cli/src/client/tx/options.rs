//! The options of every transaction: node, key, envelope, and what to do with the result.

use clap::Args;
use types::{Amount, Bid};

use crate::client::input;
use crate::client::options::{NodeArgs, SignerArgs};

/// What every transaction needs: a node, a key, and what to do with the result.
#[derive(Args, Clone, Debug)]
pub struct SendArgs {
    #[command(flatten)]
    pub(super) node: NodeArgs,
    #[command(flatten)]
    pub(super) signer: SignerArgs,
    #[command(flatten)]
    pub(super) envelope: EnvelopeArgs,
    #[command(flatten)]
    pub(super) wait: WaitArgs,
    /// Ask the node what the transaction would do, and send nothing
    #[arg(long, conflicts_with = "print")]
    pub(super) dry_run: bool,
    /// Print the signed transaction, and send nothing; with --nonce, the command asks no node, and
    /// the chain is that of --chain-id or the remembered one. Only `tx finish`, `tx evidence`, and
    /// `tx step` without --index still ask the node for a part of what they sign
    #[arg(long)]
    pub(super) print: bool,
}

/// Nonce and time, where the defaults do not fit, and what is offered for a place in a block.
#[derive(Args, Clone, Debug)]
pub struct EnvelopeArgs {
    /// Nonce [default: the next one after pending transactions]
    #[arg(long, value_name = "N")]
    pub(super) nonce: Option<u64>,
    /// Unix milliseconds [default: now]
    #[arg(long, value_name = "MS")]
    pub(super) timestamp: Option<u64>,
    /// Tip for the block's proposer, in micro-OMBRA or with unit, from fork v7 on; for a transfer,
    /// use --fee
    #[arg(long, value_name = "AMOUNT", value_parser = input::amount)]
    pub(super) tip: Option<Amount>,
    /// Highest base fee at which a block may include it, in micro-OMBRA per KiB, from fork v7 on
    /// [default: 2000]
    #[arg(long, value_name = "MICRO", value_parser = input::amount)]
    pub(super) max_base_fee: Option<Amount>,
}

impl EnvelopeArgs {
    /// What is offered for a place in a block.
    pub(super) const fn bid(&self) -> Bid {
        Bid { max_base_fee: self.max_base_fee, tip: self.tip }
    }
}

/// The longest `--timeout`: a year.
pub(in crate::client) const SECONDS_MAX: u64 = 365 * 24 * 60 * 60;

/// How long to wait for the block.
#[derive(Args, Clone, Debug)]
pub struct WaitArgs {
    /// Return as soon as the node has accepted the transaction
    #[arg(long)]
    pub(super) no_wait: bool,
    /// Seconds to wait for inclusion, and for a node that is away or busy
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(..=SECONDS_MAX))]
    pub(super) timeout: u64,
}
