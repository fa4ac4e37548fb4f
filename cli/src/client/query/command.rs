//! The questions of `ombra query`.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use types::agent::ExecutorId;
use types::{Address, Hash};
use wallet::Client;

use super::answer::{show, text};
use super::pages::{PageArgs, items};
use super::{agents, calls, forks, lists, single};
use crate::client::options::NodeArgs;
use crate::client::{CliError, Out, Outcome, input};

/// What to ask.
#[derive(Debug, Subcommand)]
pub enum QueryCommand {
    /// The chain and its newest block
    #[command(after_help = "Example: ombra query chain --json")]
    Chain(PlainArgs),
    /// The newest block as the setting `sync.trusted` of another node
    #[command(after_help = "Example: ombra query trusted --rpc https://a.node.you.trust")]
    Trusted(PlainArgs),
    /// A block with its transactions
    #[command(after_help = "Example: ombra query block latest")]
    Block(BlockArgs),
    /// A transaction, and where it is
    #[command(after_help = "Example: ombra query tx HASH")]
    Tx(TxArgs),
    /// An account's balance and nonce
    #[command(after_help = "Example: ombra query account dev:0 --transactions")]
    Account(AccountArgs),
    /// An agent run
    #[command(after_help = "Example: ombra query run RUN")]
    Run(RunArgs),
    /// Agent runs, newest first
    #[command(after_help = "Example: ombra query runs --status pending --limit 10")]
    Runs(RunsArgs),
    /// The steps of an agent run
    #[command(after_help = "Example: ombra query steps RUN")]
    Steps(StepsArgs),
    /// The turns of a conversation
    #[command(after_help = "Example: ombra query conversation ID")]
    Conversation(ConversationArgs),
    /// The miner directory
    #[command(after_help = "Example: ombra query miners")]
    Miners(MinersArgs),
    /// What an account has at stake as a miner
    #[command(after_help = "Example: ombra query bond dev:1")]
    Bond(BondArgs),
    /// Offers of miners; for one executor, the largest bonds first
    #[command(after_help = "Example: ombra query offers --executor wasm-1")]
    Offers(OffersArgs),
    /// An agent with one of its versions and its methods
    #[command(after_help = "Example: ombra query agent AGENT --version 1.0.0")]
    Agent(agents::ShowArgs),
    /// A call: what was asked, who answered what and when, and what it cost
    #[command(after_help = "Examples: ombra query call CALL\n          \
                            ombra query call CALL --check-election\n\n\
                            docs/market.md section 5.5 says what the check of an election proves.")]
    Call(calls::CallArgs),
    /// Calls, newest first
    #[command(after_help = "Example: ombra query calls --requester dev:0 --status success")]
    Calls(calls::CallsArgs),
    /// The randomness of a block, with its proof
    #[command(after_help = "Example: ombra query randomness 120")]
    Randomness(calls::RandomnessArgs),
    /// The OMBRA supply: created, burned, in escrow, in circulation
    #[command(after_help = "Example: ombra query supply")]
    Supply(PlainArgs),
    /// The validators
    #[command(after_help = "Example: ombra query validators")]
    Validators(PlainArgs),
    /// The keys of validators that lost their power for good
    #[command(after_help = "Example: ombra query punished")]
    Punished(PunishedArgs),
    /// Upcoming forks: who votes for which height, which heights are fixed, and when they begin
    #[command(after_help = "Example: ombra query forks")]
    Forks(PlainArgs),
    /// The parameters that votes can change: values, bounds, votes
    #[command(after_help = "Example: ombra query params")]
    Params(PlainArgs),
    /// What a place in the next block costs, and other fees
    #[command(after_help = "Example: ombra query fees --size 2048")]
    Fees(FeesArgs),
    /// The node's peers
    #[command(after_help = "Example: ombra query peers")]
    Peers(PlainArgs),
}

/// A question without parameters.
#[derive(Args, Debug)]
pub struct PlainArgs {
    #[command(flatten)]
    node: NodeArgs,
}

/// The place whose price is asked for.
#[derive(Args, Debug)]
pub struct FeesArgs {
    /// Bytes of the transaction: its payload and 64 more [default: 512]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    size: Option<u64>,
    #[command(flatten)]
    node: NodeArgs,
}

/// Whose bond.
#[derive(Args, Debug)]
pub struct BondArgs {
    /// 40 hex characters, 'ox' and 40 hex characters, or dev:N
    #[arg(value_parser = input::address)]
    address: Address,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which block.
#[derive(Args, Debug)]
pub struct BlockArgs {
    /// 'latest', an index, or a hash
    #[arg(default_value = "latest", value_parser = which_block)]
    block: Value,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which transaction.
#[derive(Args, Debug)]
pub struct TxArgs {
    /// Hash of the transaction
    hash: Hash,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which account.
#[derive(Args, Debug)]
pub struct AccountArgs {
    /// 40 hex characters, 'ox' and 40 hex characters, or dev:N
    #[arg(value_parser = input::address)]
    address: Address,
    /// List its transactions instead, newest first
    #[arg(long)]
    transactions: bool,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which run.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The run's id
    run: Hash,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which runs.
#[derive(Args, Debug)]
pub struct RunsArgs {
    /// Only runs of this status: pending, claimed, running, completed, failed, timeout, …
    #[arg(long)]
    status: Option<String>,
    /// Only runs of this submitter
    #[arg(long, value_name = "ADDRESS", value_parser = input::address)]
    submitter: Option<Address>,
    /// Only runs of this miner
    #[arg(long, value_name = "ADDRESS", value_parser = input::address)]
    miner: Option<Address>,
    /// Only runs of this conversation
    #[arg(long, value_name = "ID")]
    conversation: Option<Hash>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Whose steps.
#[derive(Args, Debug)]
pub struct StepsArgs {
    /// The run's id
    run: Hash,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which conversation.
#[derive(Args, Debug)]
pub struct ConversationArgs {
    /// The conversation's id
    conversation: Hash,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which miners.
#[derive(Args, Debug)]
pub struct MinersArgs {
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which offers.
#[derive(Args, Debug)]
pub struct OffersArgs {
    /// Only offers for this executor: wasm-1, or wasm-1:, model-1: or container: and 64 hex characters
    #[arg(long)]
    executor: Option<ExecutorId>,
    /// Only offers of this miner
    #[arg(long, value_name = "ADDRESS", value_parser = input::address)]
    miner: Option<Address>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which punished keys.
#[derive(Args, Debug)]
pub struct PunishedArgs {
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Carries out `ombra query`.
///
/// # Errors
/// [`CliError`].
#[expect(clippy::too_many_lines, reason = "a few lines for each question")]
pub async fn run(command: QueryCommand, out: Out<'_>) -> Outcome {
    match command {
        QueryCommand::Chain(PlainArgs { node }) => {
            let chain = node.client()?.chain_info().await?;
            show(&node, chain.text(), out, |value| single::chain(value).to_string())
        }
        QueryCommand::Trusted(PlainArgs { node }) => {
            let trusted = trusted(node.client()?.chain_info().await?.text())?;
            show(&node, &trusted.to_string(), out, single::trusted)
        }
        QueryCommand::Block(args) => {
            let block = args.node.client()?.block(&args.block).await?;
            show(&args.node, block.text(), out, single::block)
        }
        QueryCommand::Tx(args) => {
            let status = args.node.client()?.transaction(&args.hash).await?;
            show(&args.node, status.text(), out, single::transaction)
        }
        QueryCommand::Account(args) => account(&args, out).await,
        QueryCommand::Run(args) => {
            let run = args.node.client()?.run(&args.run).await?;
            show(&args.node, run.text(), out, single::run)
        }
        QueryCommand::Runs(args) => runs(&args, out).await,
        QueryCommand::Steps(args) => {
            let client = args.node.client()?;
            let steps = items(args.page.page(), async |page| {
                client.steps(&args.run, &page).await.map(|it| text(&it))
            });
            show(&args.node, &steps.await?, out, lists::steps)
        }
        QueryCommand::Conversation(args) => {
            let client = args.node.client()?;
            let turns = items(args.page.page(), async |page| {
                client.conversation(&args.conversation, &page).await.map(|it| text(&it))
            });
            show(&args.node, &turns.await?, out, lists::turns)
        }
        QueryCommand::Miners(args) => {
            let client = args.node.client()?;
            let miners = items(args.page.page(), async |page| {
                client.miners(&page).await.map(|it| text(&it))
            });
            show(&args.node, &miners.await?, out, lists::miners)
        }
        QueryCommand::Bond(BondArgs { address, node }) => {
            let bond = node.client()?.bond(&address).await?;
            show(&node, bond.text(), out, |value| single::bond(value).to_string())
        }
        QueryCommand::Offers(args) => offers(&args, out).await,
        QueryCommand::Agent(args) => agents::one(args, out).await,
        QueryCommand::Call(args) => Box::pin(calls::one(&args, out)).await,
        QueryCommand::Calls(args) => calls::many(&args, out).await,
        QueryCommand::Randomness(args) => calls::randomness(&args, out).await,
        QueryCommand::Supply(PlainArgs { node }) => {
            let supply = node.client()?.supply().await?;
            show(&node, supply.text(), out, |value| single::supply(value).to_string())
        }
        QueryCommand::Validators(PlainArgs { node }) => {
            let validators = node.client()?.validators().await?;
            show(&node, validators.text(), out, lists::validators)
        }
        QueryCommand::Punished(args) => {
            let client = args.node.client()?;
            let keys = items(args.page.page(), async |page| {
                client.punished_keys(&page).await.map(|it| text(&it))
            });
            show(&args.node, &keys.await?, out, lists::punished)
        }
        QueryCommand::Forks(PlainArgs { node }) => forks::forks(&node, out).await,
        QueryCommand::Params(PlainArgs { node }) => {
            let params = node.client()?.params().await?;
            show(&node, params.text(), out, lists::params)
        }
        QueryCommand::Fees(FeesArgs { size, node }) => {
            let client = node.client()?;
            let estimate = client.fee_estimate(size).await?.into_value();
            let schedule = client.fee_schedule().await?.into_value();
            let fees = json!({ "estimate": estimate, "schedule": schedule }).to_string();
            show(&node, &fees, out, |value| single::fees(value).to_string())
        }
        QueryCommand::Peers(PlainArgs { node }) => {
            let peers = node.client()?.peers().await?;
            show(&node, peers.text(), out, lists::peers)
        }
    }
}

/// Height and hash of the newest block. At height 0 there is nothing to trust but genesis.
pub(super) fn trusted(chain: &str) -> Result<Value, CliError> {
    let unreadable =
        || CliError::Failed("the node's answer cannot be read: no newest block".into());
    let chain: Value = serde_json::from_str(chain)
        .map_err(|error| CliError::Failed(format!("the node's answer cannot be read: {error}")))?;
    let height = chain["height"].as_u64().ok_or_else(unreadable)?;
    let hash: Hash =
        chain["latestBlockHash"].as_str().and_then(|it| it.parse().ok()).ok_or_else(unreadable)?;
    if height == 0 {
        let why = "the chain has no block yet: there is nothing to trust but its genesis";
        return Err(CliError::Failed(why.to_owned()));
    }
    Ok(json!({ "height": height, "hash": hash }))
}

async fn account(args: &AccountArgs, out: Out<'_>) -> Outcome {
    let client: Client = args.node.client()?;
    if args.transactions {
        let sent = items(args.page.page(), async |page| {
            client.account_transactions(&args.address, &page).await.map(|it| text(&it))
        });
        return show(&args.node, &sent.await?, out, lists::account_transactions);
    }
    let account = client.account(&args.address).await?;
    show(&args.node, account.text(), out, |value| single::account(value).to_string())
}

async fn runs(args: &RunsArgs, out: Out<'_>) -> Outcome {
    let mut filter = Map::new();
    let members = [
        ("status", args.status.as_ref().map(|status| json!(status))),
        ("submitter", args.submitter.map(|address| json!(address))),
        ("miner", args.miner.map(|address| json!(address))),
        ("conversationId", args.conversation.map(|id| json!(id))),
    ];
    for (key, value) in members {
        filter.extend(value.map(|value| (key.to_owned(), value)));
    }
    let client = args.node.client()?;
    let runs =
        items(args.page.page(), async |page| client.runs(&filter, &page).await.map(|it| text(&it)));
    show(&args.node, &runs.await?, out, lists::runs)
}

async fn offers(args: &OffersArgs, out: Out<'_>) -> Outcome {
    let mut filter = Map::new();
    let members = [
        ("executor", args.executor.map(|executor| json!(executor))),
        ("miner", args.miner.map(|address| json!(address))),
    ];
    for (key, value) in members {
        filter.extend(value.map(|value| (key.to_owned(), value)));
    }
    let client = args.node.client()?;
    let offers = items(args.page.page(), async |page| {
        client.offers(&filter, &page).await.map(|it| text(&it))
    });
    show(&args.node, &offers.await?, out, lists::offers)
}

/// `latest`, an index or a hash, as the interface wants it.
fn which_block(text: &str) -> Result<Value, String> {
    if let Ok(index) = text.parse::<u64>() {
        return Ok(json!(index));
    }
    if text == "latest" || text.parse::<Hash>().is_ok() {
        return Ok(json!(text));
    }
    Err(format!("{text:?}: expected 'latest', an index, or a hash of 64 hex characters"))
}
