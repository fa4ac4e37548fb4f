//! `ombra tx fork-vote`: a validator's vote for the height of a fork. For the first fork that is voted for
//! there is no kind yet with which to vote, so its votes are transfers (docs/protocol.md section 8.1).

use clap::Args;
use types::params::{FORK_VOTE_BLOCKS, INTEGER_MAX};
use types::{Body, ForkVote};
use wallet::Signed;

use super::SendArgs;
use super::deliver::Delivery;
use crate::client::{CliError, Out, Outcome};

/// The type of a vote that is counted beside the state.
const TYPE: &str = "TRANSFER";

/// A vote for a fork.
#[derive(Args, Debug)]
pub struct ForkVoteArgs {
    /// The fork, such as v7
    fork: String,
    /// The first block in which its rules apply
    #[arg(value_parser = clap::value_parser!(u64).range(1..=INTEGER_MAX))]
    height: u64,
    /// Vote even if this program does not know the fork, because the validator's node runs another
    /// program that does
    #[arg(long)]
    for_another_program: bool,
    #[command(flatten)]
    send: SendArgs,
}

pub(super) async fn run(args: ForkVoteArgs, out: Out<'_>) -> Outcome {
    let ForkVoteArgs { fork, height, for_another_program, send } = args;
    let is_transfer = state::forks::COUNTED.contains(&fork.as_str());
    if !is_transfer && !state::rule_votes::is_votable(&fork) {
        let counted = state::forks::COUNTED.join(", ");
        return Err(CliError::Usage(format!(
            "{fork:?} is not a fork that can be voted for; expected {counted}, or from v7 on v8 to \
             v99"
        )));
    }
    if !state::forks::is_known(&fork) && !for_another_program {
        return Err(CliError::Usage(format!(
            "this program (ombra {}) does not know the fork {fork}, and a vote says that the \
             validator's node does: vote with the program that the node runs, or add \
             --for-another-program",
            env!("CARGO_PKG_VERSION")
        )));
    }
    let delivery = Delivery::open(send)?;
    let envelope = delivery.envelope().await?;
    if delivery.sends() {
        refuse_vain(&delivery, &fork, height).await?;
    }
    if !is_transfer {
        let body = Body::ForkVote(ForkVote { fork, height });
        return delivery.deliver_with(&envelope, &body, out).await;
    }
    let vote = ForkVote { fork, height };
    let signed = Signed::fork_vote(delivery.sender.keypair(), &envelope, &vote);
    delivery.deliver_signed(TYPE, &signed, out).await
}

/// Refuses a vote that the chain would take and not count.
async fn refuse_vain(delivery: &Delivery, fork: &str, height: u64) -> Outcome {
    let client = delivery.client();
    let is_transfer = state::forks::COUNTED.contains(&fork);
    if !is_transfer && client.params().await?["active"] != true {
        return Err(CliError::Usage(format!(
            "FORK is {fork}: votes for it count only once fork v7 is active"
        )));
    }
    let (chain, forks) = (client.chain_info().await?, client.forks().await?.into_value());
    let next = chain.height.saturating_add(1);
    let delay = forks["delayBlocks"].as_u64().unwrap_or_default();
    let (first, last) = (next.saturating_add(delay), next.saturating_add(FORK_VOTE_BLOCKS));
    if (first..=last).contains(&height) {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "HEIGHT is {height}, expected {first} to {last}: at least {delay} blocks ahead, so that \
         everybody has time to upgrade, and at most {FORK_VOTE_BLOCKS}"
    )))
}
