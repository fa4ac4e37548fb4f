//! `ombra tx`: one transaction of any kind, built, signed here, sent and waited for.

pub(super) mod agent;
mod any;
mod appeal;
mod blob;
mod deliver;
mod escrow;
mod evidence;
mod fork_vote;
mod kinds;
mod param_vote;
mod protection;
mod refuse;
mod stake;

use clap::{Args, Subcommand};
use types::{Amount, Bid};

use super::options::{NodeArgs, SignerArgs};
use super::{Out, Outcome, input};

pub use agent::{AgentRegisterArgs, AgentRetireArgs};
pub use any::AnyArgs;
pub use appeal::AppealArgs;
pub use blob::BlobArgs;
pub use evidence::EvidenceArgs;
pub use fork_vote::ForkVoteArgs;
pub use kinds::{
    CancelArgs, ChatArgs, ClaimArgs, FinishArgs, RegisterArgs, RequestArgs, StepArgs,
    StepOutputArgs, TermsArgs, TransferArgs, ValidatorVoteArgs,
};
pub use param_vote::ParamVoteArgs;
pub use protection::ProtectionArgs;
pub use refuse::RefuseArgs;
pub use stake::{BondArgs, OfferArgs, UnbondArgs};

pub(in crate::cli) use super::signer::Sender;
pub(super) use blob::bodies as blob_bodies;
pub(in crate::cli) use deliver::block_of;
pub(super) use deliver::refusal_of;

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
    /// Take a pending run as its miner
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
    /// Refuse the reward that is held for a run of one's own, from fork v7 on: it is burned
    #[command(
        after_help = "Example: ombra tx refuse RUN --reason \"It answers another question.\" --dev 0\n\n\
                      Refusing burns the reward, as much of the miner's bond and more, and the \
                      parameter refuseStake of your own (`ombra query params`). Nothing comes back."
    )]
    Refuse(RefuseArgs),
    /// Send OMBRA to an address
    #[command(after_help = "Example: ombra tx transfer dev:3 1.5ombra --dev 0")]
    Transfer(TransferArgs),
    /// Put the sender into the miner directory
    #[command(
        after_help = "Example: ombra tx register my-miner --capabilities chat,code --model-info llama --dev 1"
    )]
    Register(RegisterArgs),
    /// Put money at stake as a miner, from fork v7 on
    #[command(after_help = "Example: ombra tx bond 20ombra --dev 1")]
    Bond(BondArgs),
    /// Take money out of the bond: it is paid after the parameter unbondMs (`ombra query params`)
    #[command(after_help = "Example: ombra tx unbond 5ombra --dev 1")]
    Unbond(UnbondArgs),
    /// Offer to work for an executor at these prices or more, from fork v8 on, or take the offer back
    #[command(
        after_help = "Examples: ombra tx offer wasm-1 --capacity 4 --per-call 1000 --fuel-per-g 50 --dev 1\n          \
                      ombra tx offer wasm-1 --remove --dev 1\n\n\
                      An offer replaces the one before for the same executor. It needs the bond that the \
                      parameter minBond asks for; `ombra query offers` says whether it counts."
    )]
    Offer(OfferArgs),
    /// Doubt the decision of a call, from fork v8 on: a committee twice as large answers again
    #[command(after_help = "Example: ombra tx appeal CALL --dev 0 --dry-run\n\n\
                      You pay for the work of the second committee and lay down a deposit, which is lost if \
                      the decision is upheld; docs/market.md section 5.4 says what comes back. \
                      --dry-run says what it would take.")]
    Appeal(AppealArgs),
    /// Store a file on the chain: announces it, sends its chunks, seals it
    #[command(after_help = "Example: ombra tx blob picture.png --content-type image/png --dev 0")]
    Blob(BlobArgs),
    /// Vote as a validator to add, change or remove a validator
    #[command(
        after_help = "Example: ombra tx validator-vote PUBLICKEY --power 10 --key-file HOME/keys/validator.key\n\n\
                      From fork v7 on a key that is no validator yet has to agree: \
                      `ombra validator accept` prints what --acceptance and --expires-at are."
    )]
    ValidatorVote(ValidatorVoteArgs),
    /// Vote as a validator for the height from which a fork's rules hold
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
    /// Send what the node has seen of a validator that contradicted itself, from fork v7 on: the
    /// validator loses its power for good
    #[command(
        after_help = "Example: ombra tx evidence ADDRESS --key-file HOME/keys/validator.key\n\n\
                      Nodes with a validator key send what they see by themselves. Anybody may send it, \
                      and it costs nothing; `ombra query validators` says of whom the node has any."
    )]
    Evidence(EvidenceArgs),
    /// Send a transaction of any kind, field by field
    #[command(
        after_help = "Example: ombra tx any transfer --to dev:3 --amount 1.5ombra --dev 0\n\n\
                      The options are the fields of docs/protocol.md section 5. The other commands \
                      compute what can be computed; this one sends what it is given."
    )]
    Any {
        /// Which kind
        #[command(subcommand)]
        kind: AnyArgs,
    },
}

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
    /// Print the signed transaction, and send nothing; with --nonce the node is not asked anything,
    /// and the chain is that of --chain-id or the remembered one
    #[arg(long)]
    pub(super) print: bool,
}

/// Nonce and time, where the defaults do not fit, and what is offered for a place in a block.
#[derive(Args, Clone, Debug)]
pub struct EnvelopeArgs {
    /// Nonce [default: the next one, pending transactions counted]
    #[arg(long, value_name = "N")]
    pub(super) nonce: Option<u64>,
    /// Unix milliseconds [default: now]
    #[arg(long, value_name = "MS")]
    pub(super) timestamp: Option<u64>,
    /// Tip for the block's proposer, in micro-OMBRA or with unit, from fork v7 on; of a transfer it is
    /// --fee
    #[arg(long, value_name = "AMOUNT", value_parser = input::amount)]
    pub(super) tip: Option<Amount>,
    /// Highest base fee at which a block may take it, in micro-OMBRA per KiB, from fork v7 on
    /// [default: 2000]
    #[arg(long, value_name = "MICRO", value_parser = input::amount)]
    pub(super) max_base_fee: Option<Amount>,
}

impl EnvelopeArgs {
    /// What is offered for a place in a block.
    const fn bid(&self) -> Bid {
        Bid { max_base_fee: self.max_base_fee, tip: self.tip }
    }
}

/// The longest `--timeout`: a year.
pub(super) const SECONDS_MAX: u64 = 365 * 24 * 60 * 60;

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

/// Carries out `ombra tx`.
///
/// # Errors
/// [`super::CliError`].
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
