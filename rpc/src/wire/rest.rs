//! The shapes of REST answers, where they are not those of JSON-RPC (docs/rest.md).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::{Address, Amount, CommittedBlock, Hash, Header};

use super::{
    AccountTx, AccountView, AddressText, AmountText, BlockFeesView, BlockTransactions, Commit,
    HashText, HeaderView, MinerView, RunView, StepView, TurnView, TxObject,
};

/// How high the chain is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeightView {
    /// The index of the latest block; 0 before the first.
    pub height: u64,
    /// The latest block.
    pub latest_block: BlockName,
}

/// A block's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockName {
    /// Its index.
    pub index: u64,
    /// Its hash.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// Block time.
    pub timestamp: u64,
}

/// Figures of the chain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatsView {
    /// The index of the latest block.
    pub height: u64,
    /// Its hash.
    #[schemars(with = "HashText")]
    pub latest_block_hash: Hash,
    /// Miners in the directory.
    pub total_miners: u64,
    /// Transactions in the last 100 blocks.
    pub recent_tx_count: u64,
    /// Rewards of the 100 completed runs that were asked for last.
    #[schemars(with = "AmountText")]
    pub recent_rewards: Amount,
    /// Validators that proposed one of the last 100 blocks.
    pub active_proposers: u64,
    /// Peers that this node is connected to.
    pub p2p_peers: u64,
}

/// A block of the chain, or genesis under the index 0.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestBlock {
    /// The header's members; genesis has only those that mean something for it.
    #[serde(flatten)]
    pub header: RestHeader,
    /// The header's hash: the block's name.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The same as `previousHash`.
    #[schemars(with = "HashText")]
    pub prev_hash: Hash,
    /// What places in it cost.
    #[serde(flatten)]
    pub fees: BlockFeesView,
    /// Signed objects, in order of execution.
    pub transactions: BlockTransactions,
    /// The certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
}

/// The header of a block, or what stands for one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RestHeader {
    /// A block's.
    Block(HeaderView),
    /// What is known of genesis.
    Genesis(GenesisHeader),
}

/// Genesis in the shape of a header.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenesisHeader {
    /// The chain's name.
    pub chain_id: String,
    /// 0.
    pub index: u64,
    /// Zeros.
    #[schemars(with = "HashText")]
    pub previous_hash: Hash,
    /// The time that genesis names.
    pub timestamp: u64,
    /// Zeros.
    #[schemars(with = "AddressText")]
    pub proposer: Address,
    /// 0.
    pub tx_count: u64,
}

/// A block in a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedBlock {
    /// Its index.
    pub index: u64,
    /// Its hash.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The block before.
    #[schemars(with = "HashText")]
    pub prev_hash: Hash,
    /// The validator that made it.
    #[schemars(with = "AddressText")]
    pub proposer: Address,
    /// How many transactions it has.
    pub tx_count: u64,
    /// Block time.
    pub timestamp: u64,
    /// What it burned.
    #[schemars(with = "AmountText")]
    pub tokens_burned: Amount,
}

impl ListedBlock {
    pub(crate) const fn new(hash: Hash, header: &Header) -> Self {
        Self {
            index: header.index,
            hash,
            prev_hash: header.previous_hash,
            proposer: header.proposer,
            tx_count: header.tx_count,
            timestamp: header.timestamp,
            tokens_burned: header.tokens_burned,
        }
    }
}

/// A block as the WebSocket tells it: without its transactions, which have a channel of their own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SocketBlock {
    /// The block.
    #[serde(flatten)]
    pub block: ListedBlock,
    /// The same as `prevHash`.
    #[schemars(with = "HashText")]
    pub previous_hash: Hash,
    /// Its transactions' hashes, in order of execution; the first 10,000 of more.
    #[schemars(with = "Vec<HashText>")]
    pub transactions: Vec<Hash>,
}

impl SocketBlock {
    /// The public client takes no message of more than a mebibyte.
    const HASHES_MAX: usize = 10_000;

    pub(crate) fn new(committed: &CommittedBlock) -> Self {
        let (header, txs) = (&committed.block.header, &committed.block.transactions);
        Self {
            block: ListedBlock::new(committed.hash, header),
            previous_hash: header.previous_hash,
            transactions: txs.iter().take(Self::HASHES_MAX).map(|tx| tx.hash()).collect(),
        }
    }
}

/// Blocks, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct BlockList {
    /// The blocks.
    pub blocks: Vec<ListedBlock>,
    /// How many the chain has.
    pub total: u64,
}

/// Whole blocks, oldest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FullBlocks {
    /// The blocks; fewer than asked for where their texts are large.
    pub blocks: Vec<RestBlock>,
    /// How many the chain has.
    pub total: u64,
    /// The `from` to go on with; null when all that was asked for is here.
    pub next_from: Option<u64>,
}

/// An account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestAccount {
    /// The address.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// What it holds by the latest block.
    #[schemars(with = "AmountText")]
    pub balance: Amount,
    /// The same in OMBRA with six decimals.
    pub balance_ombra: String,
    /// What it can spend after its pending transactions.
    #[schemars(with = "AmountText")]
    pub pending_balance: Amount,
    /// The nonce that its next transaction must have, pending ones counted.
    pub nonce: u64,
    /// The nonce by the latest block.
    pub committed_nonce: u64,
    /// Its transactions in the pool.
    pub pending_count: u64,
    /// What its open runs hold in escrow.
    #[schemars(with = "AmountText")]
    pub escrowed: Amount,
    /// Whether it is in the miner directory.
    pub is_miner: bool,
    /// Its entry there; null if it has none.
    pub miner: Option<MinerView>,
    /// Its last transactions, newest first, at most 20.
    pub recent_txs: Vec<AccountTx>,
}

impl RestAccount {
    pub(crate) fn new(
        view: AccountView,
        pending_count: u64,
        escrowed: Amount,
        recent_txs: Vec<AccountTx>,
    ) -> Self {
        Self {
            address: view.address,
            balance: view.balance,
            balance_ombra: view.balance_ombra,
            pending_balance: view.pending_balance,
            nonce: view.pending_nonce,
            committed_nonce: view.nonce,
            pending_count,
            escrowed,
            is_miner: view.is_miner,
            miner: view.miner,
            recent_txs,
        }
    }
}

/// What an account holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BalanceView {
    /// What it holds by the latest block.
    #[schemars(with = "AmountText")]
    pub balance: Amount,
    /// The same in OMBRA with six decimals.
    pub balance_ombra: String,
    /// The nonce that its next transaction must have, pending ones counted.
    pub nonce: u64,
}

/// What transfers paid lately.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct FeeEstimate {
    /// A tenth paid this or less.
    #[schemars(with = "AmountText")]
    pub low: Amount,
    /// Half paid this or less.
    #[schemars(with = "AmountText")]
    pub medium: Amount,
    /// Nine tenths paid this or less.
    #[schemars(with = "AmountText")]
    pub high: Amount,
    /// How many transfers were looked at; 100 at most. Without any, the fees are 0: transfers need
    /// none.
    pub sample: u64,
}

/// What a search found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", content = "result", rename_all = "camelCase")]
pub enum Found {
    /// A block, by index or hash.
    Block(Box<ListedBlock>),
    /// A transaction.
    Tx(RestTx),
    /// An account.
    Account(Box<AccountView>),
    /// A run.
    AgentRun(Box<RunView>),
    /// A conversation, with its first turn.
    Conversation(Box<ConversationHit>),
    /// Nothing.
    None(()),
}

/// A conversation that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationHit {
    /// The conversation.
    #[schemars(with = "HashText")]
    pub conversation_id: Hash,
    /// Its first turn; null where it has runs only.
    pub first_turn: Option<TurnView>,
}

/// A transaction with what became of it: the members of the signed object, and beside them
/// `blockIndex` (null while it is pending), `blockHash`, `position`, `blockTimestamp`, `txStatus`
/// (`pending`, `included` or `dropped`), `dropped`, and `status` with the same word unless the
/// signed object has a `status` of its own, as AGENT_FINISH does.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct RestTx(pub Box<RawValue>);

impl JsonSchema for RestTx {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TransactionWithPlace".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let tx = generator.subschema_for::<TxObject>();
        let place = generator.subschema_for::<TxPlace>();
        schemars::json_schema!({ "allOf": [tx, place] })
    }
}

/// Where a transaction is, beside its own members.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TxPlace {
    /// The block's index; null while it is pending, and where it was dropped.
    pub block_index: Option<u64>,
    /// The block.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub block_hash: Option<Hash>,
    /// The place in the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Block time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_timestamp: Option<u64>,
    /// From v7 on: what it burned for its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub inclusion_fee: Option<Amount>,
    /// Where it is in its life.
    pub tx_status: super::TxStatus,
    /// The same, unless the signed object has a member of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub status: Option<super::TxStatus>,
    /// Why and when it was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<super::DropView>,
}

/// That a transaction was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Accepted {
    /// True.
    pub ok: bool,
    /// The transaction's name.
    #[schemars(with = "HashText")]
    pub hash: Hash,
}

/// What waits for a block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MempoolView {
    /// How many transactions wait, for a block or for an earlier nonce.
    pub total: u64,
    /// Those that wait for a block, by sender and nonce; at most as many as asked for.
    #[schemars(with = "Vec<TxObject>")]
    pub pending: Vec<Box<RawValue>>,
}

/// The richest accounts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Holders {
    /// The accounts, richest first.
    pub holders: Vec<Holder>,
    /// How many accounts the chain has.
    pub total: u64,
    /// The block after which this was so.
    pub block_index: u64,
}

/// An account among the richest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// From 1.
    pub rank: u64,
    /// The account.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// What it holds.
    #[schemars(with = "AmountText")]
    pub balance: Amount,
    /// The same in OMBRA with six decimals.
    pub balance_ombra: String,
    /// Its part of what accounts hold, in hundredths of a percent, rounded down.
    pub share_bps: u64,
}

/// Who holds the supply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Distribution {
    /// Everything that exists: what accounts hold and what is in escrow.
    #[schemars(with = "AmountText")]
    pub total: Amount,
    /// The parts: `validators`, `miners`, `accounts` (all others) and `escrow`. A validator that is
    /// also a miner counts as a validator.
    pub kinds: Vec<HeldBy>,
    /// The block after which this was so.
    pub block_index: u64,
}

/// A part of the supply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldBy {
    /// Who holds it.
    pub kind: &'static str,
    /// How many accounts hold it; for `escrow`, how many have open runs.
    pub accounts: u64,
    /// How much.
    #[schemars(with = "AmountText")]
    pub amount: Amount,
    /// Its part of the total, in hundredths of a percent, rounded down.
    pub share_bps: u64,
}

/// A run's steps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSteps {
    /// The run.
    #[schemars(with = "HashText")]
    pub agent_run_id: Hash,
    /// How many steps are here.
    pub count: u64,
    /// The steps, by index.
    pub steps: Vec<StepView>,
    /// What to ask with for the next ones; null at the end.
    pub next_cursor: Option<String>,
}

/// Runs of one status, submitter or miner, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunList {
    /// The status that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// The submitter that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub submitter: Option<Address>,
    /// The miner that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub miner: Option<Address>,
    /// How many runs are here.
    pub count: u64,
    /// The runs.
    pub runs: Vec<RunView>,
    /// What to ask with for older ones; null at the end.
    pub next_cursor: Option<String>,
}

/// The turns of a conversation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationTurns {
    /// The conversation.
    #[schemars(with = "HashText")]
    pub conversation_id: Hash,
    /// How many turns are here.
    pub count: u64,
    /// The turns, in chain order.
    pub turns: Vec<TurnView>,
    /// What to ask with for later ones; null at the end.
    pub next_cursor: Option<String>,
}
