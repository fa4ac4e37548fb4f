//! The commands of `ombra tx`.

use clap::Subcommand;

use super::any::{self, AnyArgs};
use super::appeal::{self, AppealArgs};
use super::blob::{self, BlobArgs};
use super::evidence::{self, EvidenceArgs};
use super::fork_vote::{self, ForkVoteArgs};
use super::kinds::{
    self, CancelArgs, ChatArgs, ClaimArgs, FinishArgs, RegisterArgs, RequestArgs, StepArgs,
    TransferArgs, ValidatorVoteArgs,
};
use super::param_vote::{self, ParamVoteArgs};
use super::refuse::{self, RefuseArgs};
use super::stake::{self, BondArgs, OfferArgs, UnbondArgs};
use crate::client::{Out, Outcome};

/// Which transaction.
#[derive(Debug, Subcommand)]
pub enum TxCommand {
    /// Write a turn of a conversation (costs 100 micro)
    #[command(after_help = "Example: ombra tx chat \"Hello\" --conversation ID --dev 0")]
    Chat(ChatArgs),
    /// Ask for an agent run and put its fee into escrow
    #[command(
        after_help = "Example: ombra tx request \"What is my balance?\" --max-fee 1ombra --tools chain_get_balance --dev 0"
    )]
    Request(RequestArgs),
    /// Claim a pending run as its miner
    #[command(
        after_help = "Example: ombra tx claim RUN --model-info my-model --tier desktop --dev 1"
    )]
    Claim(ClaimArgs),
    /// Record a step of a claimed run
    #[command(after_help = "Example: ombra tx step RUN --tokens 120 --output \"thinking\" --dev 1")]
    Step(StepArgs),
    /// Settle a run; the amounts follow from its recorded steps
    #[command(after_help = "Example: ombra tx finish RUN --answer \"12 OMBRA\" --dev 1")]
    Finish(FinishArgs),
    /// Take back the escrow of a run that no miner has claimed
    #[command(after_help = "Example: ombra tx cancel RUN --dev 0")]
    Cancel(CancelArgs),
    /// Refuse the held reward of your own run, which burns it; from fork v7 on
    #[command(
        after_help = "Example: ombra tx refuse RUN --reason \"It answers another question.\" --dev \
                      0\n\n\
                      Refusing burns the reward, and refuseStake (`ombra query params`) of \
                      your own money. Of the miner's bond it burns as much as both together, but no \
                      more than the claim locked. Nothing comes back."
    )]
    Refuse(RefuseArgs),
    /// Send OMBRA to an address
    #[command(after_help = "Example: ombra tx transfer dev:3 1.5ombra --dev 0")]
    Transfer(TransferArgs),
    /// Register the sender in the miner directory
    #[command(
        after_help = "Example: ombra tx register my-miner --capabilities chat,code --model-info llama --dev 1"
    )]
    Register(RegisterArgs),
    /// Put money at stake as a miner, from fork v7 on
    #[command(after_help = "Example: ombra tx bond 20ombra --dev 1")]
    Bond(BondArgs),
    /// Take money out of the bond; it is paid out after the time of the parameter unbondMs (`ombra
    /// query params`)
    #[command(after_help = "Example: ombra tx unbond 5ombra --dev 1")]
    Unbond(UnbondArgs),
    /// Offer to work for an executor at these prices or more, from fork v8 on, or take the offer back
    #[command(
        after_help = "Examples: ombra tx offer wasm-1 --capacity 4 --per-call 1000 --fuel-per-g 50 \
                      --dev 1\n          \
                      ombra tx offer wasm-1 --remove --dev 1\n\n\
                      An offer replaces your previous one for the same executor. It requires a \
                      bond of at least the parameter minBond; `ombra query offers` shows whether \
                      it counts."
    )]
    Offer(OfferArgs),
    /// Appeal the decision of a call, from fork v8 on: a committee twice as large answers again
    #[command(after_help = "Example: ombra tx appeal CALL --dev 0 --dry-run\n\n\
                      You pay for the work of the second committee and put down a deposit, which \
                      you lose if the decision is upheld; docs/market.md section 5.4 says what \
                      comes back. --dry-run shows what it would cost.")]
    Appeal(AppealArgs),
    /// Store a file on the chain: announces it, sends its chunks, seals it
    #[command(after_help = "Example: ombra tx blob picture.png --content-type image/png --dev 0")]
    Blob(BlobArgs),
    /// Vote as a validator to add, change or remove a validator
    #[command(after_help = "Example: ombra tx validator-vote PUBLICKEY --power 10 --key-file \
                      HOME/keys/validator.key\n\n\
                      From fork v7 on, a key that is not a validator yet has to agree: `ombra \
                      validator accept` prints the values for --acceptance and --expires-at.")]
    ValidatorVote(ValidatorVoteArgs),
    /// Vote as a validator for the height from which a fork's rules apply
    #[command(
        after_help = "Example: ombra tx fork-vote v7 1250000 --key-file HOME/keys/validator.key\n\n\
                      A vote says that the validator's node runs a program that knows the fork. So this \
                      program only votes for forks that it knows itself, unless \
                      --for-another-program says that the node runs another one."
    )]
    ForkVote(ForkVoteArgs),
    /// Vote as a validator for another value of a parameter
    #[command(
        after_help = "Example: ombra tx param-vote baseFeeFloor 20 1250000 --key-file HOME/keys/validator.key\n\n\
                      `ombra query params` shows the parameters that can be voted for, their bounds and \
                      the open votes. The first vote of a validator in a block costs nothing."
    )]
    ParamVote(ParamVoteArgs),
    /// Send the node's evidence against a validator that contradicted itself, from fork v7 on: the
    /// validator loses its power for good
    #[command(
        after_help = "Example: ombra tx evidence ADDRESS --key-file HOME/keys/validator.key\n\n\
                      Nodes with a validator key send their evidence on their own. Anyone may send \
                      evidence, and it costs nothing; `ombra query validators` shows for which \
                      validators the node has some."
    )]
    Evidence(EvidenceArgs),
    /// Send a transaction of any kind, field by field
    #[command(
        after_help = "Example: ombra tx any transfer --to dev:3 --amount 1.5ombra --dev 0\n\n\
                      The options are the fields of docs/protocol.md section 5. The other commands \
                      fill in what they can compute; this one sends the fields as you give them."
    )]
    Any {
        /// Which kind
        #[command(subcommand)]
        kind: AnyArgs,
    },
}

/// Carries out `ombra tx`.
///
/// # Errors
/// [`crate::client::CliError`].
pub async fn run(command: TxCommand, out: Out<'_>) -> Outcome {
    match command {
        TxCommand::Chat(args) => kinds::chat(args, out).await,
        TxCommand::Request(args) => kinds::request(args, out).await,
        TxCommand::Claim(args) => kinds::claim(args, out).await,
        TxCommand::Step(args) => kinds::step(args, out).await,
        TxCommand::Finish(args) => kinds::finish(args, out).await,
        TxCommand::Cancel(args) => kinds::cancel(args, out).await,
        TxCommand::Refuse(args) => refuse::run(args, out).await,
        TxCommand::Transfer(args) => kinds::transfer(args, out).await,
        TxCommand::Register(args) => kinds::register(args, out).await,
        TxCommand::Bond(args) => stake::bond(args, out).await,
        TxCommand::Unbond(args) => stake::unbond(args, out).await,
        TxCommand::Offer(args) => stake::offer(args, out).await,
        TxCommand::Appeal(args) => appeal::run(args, out).await,
        TxCommand::Blob(args) => blob::run(args, out).await,
        TxCommand::ValidatorVote(args) => kinds::validator_vote(args, out).await,
        TxCommand::ForkVote(args) => fork_vote::run(args, out).await,
        TxCommand::ParamVote(args) => param_vote::run(args, out).await,
        TxCommand::Evidence(args) => evidence::run(args, out).await,
        TxCommand::Any { kind } => any::run(kind, out).await,
    }
}
