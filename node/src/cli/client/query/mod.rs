//! `ombra query`: the node's answers as tables, or as the JSON that the node sent.

pub mod agents;
pub mod calls;
mod certified;
mod election;
mod forks;
mod lists;
mod single;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use types::agent::ExecutorId;
use types::{Address, Hash};
use wallet::{Answer, Client, ClientError, Page};

use super::options::NodeArgs;
use super::{CliError, Out, Outcome, input, until_interrupted};

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
    /// Offers of miners: for one executor those of the largest bonds first
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
    /// All OMBRA: made, burned, in escrow, in circulation
    #[command(after_help = "Example: ombra query supply")]
    Supply(PlainArgs),
    /// The validators
    #[command(after_help = "Example: ombra query validators")]
    Validators(PlainArgs),
    /// The keys of validators that lost their power for good
    #[command(after_help = "Example: ombra query punished")]
    Punished(PunishedArgs),
    /// The forks that are to come: who votes for which height, what is fixed, and when it begins
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

/// Which part of a list.
#[derive(Args, Debug)]
pub struct PageArgs {
    /// At most so many items, up to 500
    #[arg(long, value_name = "N", default_value_t = 30)]
    limit: u32,
    /// Go on after this cursor of the page before
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl PageArgs {
    fn page(&self) -> Page {
        Page { cursor: self.cursor.clone(), limit: Some(self.limit) }
    }
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
fn trusted(chain: &str) -> Result<Value, CliError> {
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

/// The most pages that are asked for to make one list.
const PAGES_MAX: usize = 500;

/// A page of a list, its items as the node wrote them.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// As many items as were asked for, or as there are: a filter, or long texts, can leave pages short or
/// empty, with a cursor to go on. After ctrl-C, and when a later page is refused, what there is so far
/// is the answer.
async fn items(
    page: Page,
    ask: impl AsyncFn(Page) -> Result<String, ClientError>,
) -> Result<String, CliError> {
    let unreadable = |error: serde_json::Error| {
        CliError::Failed(format!("the node's answer cannot be read: {error}"))
    };
    let first = ask(page.clone()).await?;
    let mut list: Listed = serde_json::from_str(&first).map_err(unreadable)?;
    let wanted = page.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    for _ in 1..PAGES_MAX {
        let missing = u32::try_from(wanted.saturating_sub(list.items.len())).unwrap_or(u32::MAX);
        let Some(cursor) = list.next_cursor.clone().filter(|_| missing > 0) else { break };
        let next = Page { cursor: Some(cursor), limit: page.limit.map(|_| missing) };
        let answer = match until_interrupted(ask(next)).await? {
            Some(Err(error)) if list.items.is_empty() => return Err(error.into()),
            Some(Err(_)) | None => break,
            Some(Ok(answer)) => answer,
        };
        let Listed { items, next_cursor } = serde_json::from_str(&answer).map_err(unreadable)?;
        list.items.extend(items);
        list.next_cursor = next_cursor;
    }
    serde_json::to_string(&list).map_err(unreadable)
}

/// What the node wrote.
fn text<T>(answer: &Answer<T>) -> String {
    answer.text().to_owned()
}

/// The node's own text, or what `human` makes of it.
fn show(node: &NodeArgs, text: &str, out: Out<'_>, human: fn(&Value) -> String) -> Outcome {
    if node.json {
        writeln!(out, "{text}")?;
        return Ok(());
    }
    let value = serde_json::from_str(text)
        .map_err(|error| CliError::Failed(format!("the node's answer cannot be read: {error}")))?;
    writeln!(out, "{}", human(&value))?;
    Ok(())
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

#[cfg(test)]
mod tests {
    //! Lists of which whole pages are left out.

    use std::cell::RefCell;

    use serde_json::json;
    use types::Hash;
    use wallet::{ClientError, Page};

    use super::{lists, single, trusted};

    #[test]
    fn the_pair_to_trust_is_ready_for_the_settings() {
        let hash = Hash::new([9; 32]);
        let chain = json!({"height": 7, "latestBlockHash": hash, "peers": 3}).to_string();
        let pair = trusted(&chain).unwrap();
        assert_eq!(json!({"height": 7, "hash": hash}), pair);
        let text = single::trusted(&pair);
        let read: toml::Table = text.parse().expect("TOML");
        let trusted = &read["sync"]["trusted"];
        assert_eq!(Some(7), trusted["height"].as_integer());
        assert_eq!(Some(hash.to_string()), trusted["hash"].as_str().map(str::to_owned));
        for chain in
            [json!({"height": 0, "latestBlockHash": hash}), json!({"height": 7}), json!([])]
        {
            assert_eq!(1, super::trusted(&chain.to_string()).unwrap_err().exit_code(), "{chain}");
        }
    }

    #[test]
    fn fees_and_parameters_say_whether_the_fork_is_active() {
        let tips = json!({"p10": "0", "p50": "5", "p90": "9", "sample": 30, "blocks": 20});
        let mut fees = json!({
            "estimate": {"blockIndex": 8, "active": true, "baseFee": "10", "size": 512,
                "inclusionFee": "5", "suggestedMaxBaseFee": "2000", "tips": tips},
            "schedule": {"baseFeeFloor": "10", "registerFee": "10000", "blobInitFee": "1000"},
        });
        let said = single::fees(&fees).to_string();
        assert!(said.contains("5 micro for 512 bytes") && said.contains("0, 5, 9 micro"), "{said}");
        fees["estimate"]["active"] = json!(false);
        let said = single::fees(&fees).to_string();
        assert!(said.contains("fork v7 is not active") && !said.contains("512 bytes"), "{said}");
        fees["estimate"]["activeFrom"] = json!(90);
        assert!(single::fees(&fees).to_string().contains("begins with block 90"));

        let voter = json!({"address": "ab", "power": 3, "blockIndex": 2});
        let vote = json!({"value": 20, "height": 90, "power": "3", "voters": [voter]});
        let next = json!({"value": 30, "height": 60});
        let param = json!({"name": "baseFeeFloor", "value": 10, "min": 1, "max": 1_000_000,
            "next": next, "votes": [vote]});
        let mut params = json!({"active": true, "totalPower": "10", "params": [param]});
        let said = lists::params(&params);
        for wanted in ["1 to 1000000", "30 from block 60", "20 from block 90", "3 of 10"] {
            assert!(said.contains(wanted), "{wanted}: {said}");
        }
        assert!(!said.contains("not active"), "{said}");
        params["active"] = json!(false);
        assert!(lists::params(&params).contains("fork v7 is not active"));
    }

    /// A node with a list of so many pages, `at` being what it has been asked.
    async fn listed(
        pages: &[(&[u32], Option<&str>)],
        limit: u32,
    ) -> (String, Vec<(Option<String>, Option<u32>)>) {
        let asked = RefCell::new(Vec::new());
        let page = Page { cursor: None, limit: Some(limit) };
        let list = super::items(page, async |page| {
            let (items, next) = pages[asked.borrow().len() % pages.len()];
            asked.borrow_mut().push((page.cursor, page.limit));
            Ok(json!({"items": items, "nextCursor": next}).to_string())
        });
        (list.await.unwrap(), asked.into_inner())
    }

    /// A first one that is refused is all that there is to say.
    #[tokio::test]
    async fn a_later_page_that_is_refused_leaves_what_there_is() {
        let nothing: &[u32] = &[];
        for (items, expected) in
            [(&[7][..], Some(r#"{"items":[7],"nextCursor":"a"}"#)), (nothing, None)]
        {
            let page = Page { cursor: None, limit: Some(3) };
            let list = super::items(page, async |page| match page.cursor {
                None => Ok(json!({"items": items, "nextCursor": "a"}).to_string()),
                Some(_) => Err(ClientError::NotFound { message: "it is gone".to_owned() }),
            });
            assert_eq!(list.await.ok().as_deref(), expected);
        }
    }

    #[tokio::test]
    async fn short_pages_are_joined_until_there_are_as_many_items_as_were_asked_for() {
        let pages: [(&[u32], _); 4] =
            [(&[], Some("a")), (&[1, 2], Some("b")), (&[3], Some("c")), (&[4], Some("d"))];
        let (list, asked) = listed(&pages, 3).await;
        assert_eq!(r#"{"items":[1,2,3],"nextCursor":"c"}"#, list);
        let cursor = |text: &str| Some(text.to_owned());
        assert_eq!(vec![(None, Some(3)), (cursor("a"), Some(3)), (cursor("b"), Some(1))], asked);

        let (list, asked) = listed(&[(&[7], None)], 3).await;
        assert_eq!((r#"{"items":[7],"nextCursor":null}"#, 1), (list.as_str(), asked.len()));
        let (list, asked) = listed(&[(&[], Some("on"))], 3).await;
        assert_eq!(super::PAGES_MAX, asked.len(), "nobody asks for ever");
        let empty = serde_json::from_str(&list).unwrap();
        assert_eq!("none yet\n\nmore: --cursor on", lists::runs(&empty));
    }
}
