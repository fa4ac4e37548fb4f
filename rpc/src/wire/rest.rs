//! The shapes of REST answers that differ from those of JSON-RPC (docs/rest.md).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::{Address, Amount, CommittedBlock, Hash, Header};

use super::{
    AccountTx, AccountView, AddressText, AmountText, BlockFeesView, BlockTransactions, Commit,
    HashText, HeaderView, MinerView, RunView, StepView, TurnView, TxObject,
};

/// The height of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeightView {
    /// The height of the latest block; 0 before the first block.
    pub height: u64,
    /// The latest block.
    pub latest_block: BlockName,
}

/// The index, hash and time of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockName {
    /// The index of the block.
    pub index: u64,
    /// The hash of the block.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
}

/// Statistics of the chain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatsView {
    /// The height of the latest block.
    pub height: u64,
    /// The hash of the latest block.
    #[schemars(with = "HashText")]
    pub latest_block_hash: Hash,
    /// The number of miners in the directory.
    pub total_miners: u64,
    /// The number of transactions in the last 100 blocks.
    pub recent_tx_count: u64,
    /// The sum of the rewards of the 100 completed runs with the latest requests.
    #[schemars(with = "AmountText")]
    pub recent_rewards: Amount,
    /// The number of validators that proposed at least one of the last 100 blocks.
    pub active_proposers: u64,
    /// The number of peers that this node is connected to.
    pub p2p_peers: u64,
}

/// A block, or the genesis with index 0.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestBlock {
    /// The members of the header. Genesis has only those that apply to it.
    #[serde(flatten)]
    pub header: RestHeader,
    /// The hash of the header, which identifies the block.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The same as `previousHash`.
    #[schemars(with = "HashText")]
    pub prev_hash: Hash,
    /// The fees of the block.
    #[serde(flatten)]
    pub fees: BlockFeesView,
    /// The signed transactions in the order of execution.
    pub transactions: BlockTransactions,
    /// The commit certificate of the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
}

/// The header of a block, or of genesis.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RestHeader {
    /// The header of a block.
    Block(HeaderView),
    /// The members of genesis.
    Genesis(GenesisHeader),
}

/// The genesis in the shape of a header.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenesisHeader {
    /// The id of the chain.
    pub chain_id: String,
    /// Always 0.
    pub index: u64,
    /// Always zeros.
    #[schemars(with = "HashText")]
    pub previous_hash: Hash,
    /// The genesis time, in milliseconds since 1970.
    pub timestamp: u64,
    /// Always zeros.
    #[schemars(with = "AddressText")]
    pub proposer: Address,
    /// Always 0.
    pub tx_count: u64,
}

/// A block in a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedBlock {
    /// The index of the block.
    pub index: u64,
    /// The hash of the block.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The hash of the previous block.
    #[schemars(with = "HashText")]
    pub prev_hash: Hash,
    /// The address of the validator that made the block.
    #[schemars(with = "AddressText")]
    pub proposer: Address,
    /// The number of transactions in the block.
    pub tx_count: u64,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
    /// The amount that the block burned.
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

/// A block on the WebSocket, with the hashes of its transactions. The transactions themselves come
/// on another channel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SocketBlock {
    /// The block.
    #[serde(flatten)]
    pub block: ListedBlock,
    /// The same as `prevHash`.
    #[schemars(with = "HashText")]
    pub previous_hash: Hash,
    /// The transaction hashes in the order of execution, at most the first 10,000.
    #[schemars(with = "Vec<HashText>")]
    pub transactions: Vec<Hash>,
}

impl SocketBlock {
    /// The public client accepts no message of more than 1 MiB.
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

/// A list of blocks, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct BlockList {
    /// The blocks.
    pub blocks: Vec<ListedBlock>,
    /// The number of blocks on the chain.
    pub total: u64,
}

/// A list of blocks with their transactions, oldest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FullBlocks {
    /// The blocks. Fewer than requested if they are large.
    pub blocks: Vec<RestBlock>,
    /// The number of blocks on the chain.
    pub total: u64,
    /// The `from` with which to continue. `null` if the answer has all requested blocks.
    pub next_from: Option<u64>,
}

/// An account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestAccount {
    /// The address of the account.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The balance as of the latest block.
    #[schemars(with = "AmountText")]
    pub balance: Amount,
    /// The balance in OMBRA, with six decimals.
    pub balance_ombra: String,
    /// The amount that the account can spend after its pending transactions.
    #[schemars(with = "AmountText")]
    pub pending_balance: Amount,
    /// The nonce of the account's next transaction, counting its pending transactions.
    pub nonce: u64,
    /// The nonce of the account's next transaction, as of the latest block.
    pub committed_nonce: u64,
    /// The number of the account's transactions in the pool.
    pub pending_count: u64,
    /// The amount that the account's runs hold in escrow, including held rewards.
    #[schemars(with = "AmountText")]
    pub escrowed: Amount,
    /// Whether the account has an entry in the miner directory.
    pub is_miner: bool,
    /// The account's entry in the miner directory. `null` if it has none.
    pub miner: Option<MinerView>,
    /// The account's last transactions, newest first, at most 20.
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

/// The balance of an account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BalanceView {
    /// The balance as of the latest block.
    #[schemars(with = "AmountText")]
    pub balance: Amount,
    /// The balance in OMBRA, with six decimals.
    pub balance_ombra: String,
    /// The nonce of the account's next transaction, counting its pending transactions.
    pub nonce: u64,
}

/// The fees of recent transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct FeeEstimate {
    /// The fee that a tenth of the transfers did not exceed.
    #[schemars(with = "AmountText")]
    pub low: Amount,
    /// The fee that half of the transfers did not exceed.
    #[schemars(with = "AmountText")]
    pub medium: Amount,
    /// The fee that nine tenths of the transfers did not exceed.
    #[schemars(with = "AmountText")]
    pub high: Amount,
    /// The number of transfers in the sample, at most 100. If it is 0, the fees are 0, because a
    /// transfer needs no fee.
    pub sample: u64,
}

/// The result of a search.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", content = "result", rename_all = "camelCase")]
pub enum Found {
    /// A block, found by its index or hash.
    Block(Box<ListedBlock>),
    /// A transaction, found by its hash.
    Tx(RestTx),
    /// An account, found by its address or `minerId`.
    Account(Box<AccountView>),
    /// A run, found by its id.
    AgentRun(Box<RunView>),
    /// A conversation, found by its id, with its first turn.
    Conversation(Box<ConversationHit>),
    /// No match.
    None(()),
}

/// A conversation that a search found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationHit {
    /// The id of the conversation.
    #[schemars(with = "HashText")]
    pub conversation_id: Hash,
    /// The first turn of the conversation. `null` if the conversation has only runs.
    pub first_turn: Option<TurnView>,
}

/// A transaction and its place. It has the members of the signed object, and `blockIndex` (`null`
/// while the transaction is pending), `blockHash`, `position`, `blockTimestamp`, `txStatus`
/// (`pending`, `included` or `dropped`) and `dropped`. `status` has the same value as `txStatus`,
/// unless the signed object has a `status` of its own, as an AGENT_FINISH does.
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

/// The members that the node adds to a transaction, which say where the transaction is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TxPlace {
    /// The index of the block. `null` if the transaction is pending or was dropped.
    pub block_index: Option<u64>,
    /// The hash of the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub block_hash: Option<Hash>,
    /// The position of the transaction in its block, starting at 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// The time of the block, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_timestamp: Option<u64>,
    /// The inclusion fee that the transaction burned. Present in blocks from v7 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub inclusion_fee: Option<Amount>,
    /// The status of the transaction.
    pub tx_status: super::TxStatus,
    /// The same as `txStatus`, unless the signed object has a member `status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub status: Option<super::TxStatus>,
    /// Why and when the pool dropped the transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<super::DropView>,
}

/// The answer to an accepted transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Accepted {
    /// Always `true`.
    pub ok: bool,
    /// The hash of the transaction.
    #[schemars(with = "HashText")]
    pub hash: Hash,
}

/// The transactions that wait in the pool.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MempoolView {
    /// The number of transactions in the pool, including those that wait for an earlier nonce.
    pub total: u64,
    /// The executable transactions in the order of execution, at most as many as `limit`.
    #[schemars(with = "Vec<TxObject>")]
    pub pending: Vec<Box<RawValue>>,
}

/// The accounts with the largest balances.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Holders {
    /// The accounts, largest balance first.
    pub holders: Vec<Holder>,
    /// The number of accounts on the chain.
    pub total: u64,
    /// The block after which these figures were taken.
    pub block_index: u64,
}

/// An account among those with the largest balances.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The rank, starting at 1.
    pub rank: u64,
    /// The address of the account.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The balance of the account.
    #[schemars(with = "AmountText")]
    pub balance: Amount,
    /// The balance in OMBRA, with six decimals.
    pub balance_ombra: String,
    /// The account's share of all balances, in hundredths of a percent, rounded down.
    pub share_bps: u64,
}

/// How the supply is distributed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Distribution {
    /// The total supply: all balances and everything in escrow.
    #[schemars(with = "AmountText")]
    pub total: Amount,
    /// The parts of the supply: `validators`, `miners`, `accounts` (all other accounts) and
    /// `escrow`. A validator that is also a miner counts as a validator.
    pub kinds: Vec<HeldBy>,
    /// The block after which these figures were taken.
    pub block_index: u64,
}

/// A part of the supply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldBy {
    /// Which part it is: `validators`, `miners`, `accounts` or `escrow`.
    pub kind: &'static str,
    /// The number of accounts in this part. For `escrow`, the number of accounts with open runs.
    pub accounts: u64,
    /// The amount.
    #[schemars(with = "AmountText")]
    pub amount: Amount,
    /// The part's share of the total, in hundredths of a percent, rounded down.
    pub share_bps: u64,
}

/// The steps of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSteps {
    /// The id of the run.
    #[schemars(with = "HashText")]
    pub agent_run_id: Hash,
    /// The number of steps in this answer.
    pub count: u64,
    /// The steps in the order of their indexes.
    pub steps: Vec<StepView>,
    /// The cursor of the next page. `null` at the end of the list.
    pub next_cursor: Option<String>,
}

/// A list of runs with one status, submitter or miner, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunList {
    /// The requested status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// The address of the requested submitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub submitter: Option<Address>,
    /// The address of the requested miner.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub miner: Option<Address>,
    /// The number of runs in this answer.
    pub count: u64,
    /// The runs.
    pub runs: Vec<RunView>,
    /// The cursor of the next page. `null` at the end of the list.
    pub next_cursor: Option<String>,
}

/// The turns of a conversation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationTurns {
    /// The id of the conversation.
    #[schemars(with = "HashText")]
    pub conversation_id: Hash,
    /// The number of turns in this answer.
    pub count: u64,
    /// The turns in the order of the chain.
    pub turns: Vec<TurnView>,
    /// The cursor of the next page. `null` at the end of the list.
    pub next_cursor: Option<String>,
}
