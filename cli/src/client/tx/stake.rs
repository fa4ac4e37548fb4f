//! `ombra tx bond`, `unbond` and `offer`: what a miner has at stake, and what it works for.

use clap::Args;
use types::agent::ExecutorId;
use types::params::OFFER_CAPACITY_MAX;
use types::tx::{MinerBond, MinerOffer, MinerUnbond};
use types::{Amount, Body};

use super::SendArgs;
use super::deliver::Delivery;
use crate::client::{Out, Outcome, input};

/// Money to put at stake.
#[derive(Args, Debug)]
pub struct BondArgs {
    /// Micro-OMBRA, or with unit: 20ombra
    #[arg(value_parser = input::amount)]
    amount: Amount,
    #[command(flatten)]
    send: SendArgs,
}

/// Money to take out again.
#[derive(Args, Debug)]
pub struct UnbondArgs {
    /// Micro-OMBRA, or with unit: 20ombra
    #[arg(value_parser = input::amount)]
    amount: Amount,
    #[command(flatten)]
    send: SendArgs,
}

/// An offer, or one to take back.
#[derive(Args, Debug)]
pub struct OfferArgs {
    /// wasm-1, or wasm-1:, model-1: or container: and 64 hex characters
    executor: ExecutorId,
    /// How many calls to work on at once
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=OFFER_CAPACITY_MAX))]
    capacity: u64,
    /// Lowest price for a call, whatever it takes
    #[arg(long, value_name = "AMOUNT", default_value = "0", value_parser = input::amount)]
    per_call: Amount,
    /// Lowest price for a million tokens that are read
    #[arg(long, value_name = "AMOUNT", default_value = "0", value_parser = input::amount)]
    prompt_per_m: Amount,
    /// Lowest price for a million tokens that are written
    #[arg(long, value_name = "AMOUNT", default_value = "0", value_parser = input::amount)]
    completion_per_m: Amount,
    /// Lowest price for a billion units of fuel
    #[arg(long, value_name = "AMOUNT", default_value = "0", value_parser = input::amount)]
    fuel_per_g: Amount,
    /// Take the offer back instead
    #[arg(long, conflicts_with_all = [
        "capacity", "per_call", "prompt_per_m", "completion_per_m", "fuel_per_g",
    ])]
    remove: bool,
    #[command(flatten)]
    send: SendArgs,
}

pub(super) async fn bond(args: BondArgs, out: Out<'_>) -> Outcome {
    let body = Body::MinerBond(MinerBond { amount: args.amount });
    Delivery::open(args.send)?.deliver(&body, out).await
}

pub(super) async fn unbond(args: UnbondArgs, out: Out<'_>) -> Outcome {
    let body = Body::MinerUnbond(MinerUnbond { amount: args.amount });
    Delivery::open(args.send)?.deliver(&body, out).await
}

pub(super) async fn offer(args: OfferArgs, out: Out<'_>) -> Outcome {
    let body = Body::MinerOffer(MinerOffer {
        executor: args.executor.to_string(),
        capacity: if args.remove { 0 } else { args.capacity },
        per_call: args.per_call,
        prompt_per_m: args.prompt_per_m,
        completion_per_m: args.completion_per_m,
        fuel_per_g: args.fuel_per_g,
    });
    Delivery::open(args.send)?.deliver(&body, out).await
}
