//! What this crate needs from the rest of the node. The crate `node` implements each port over
//! `state`, `txpool` and `consensus`, and hands them over in [`Ports`].
//!
//! Reading ports show the latest committed state. They are called on threads that may block; a
//! cost is stated where it is more than a few point reads. Lists take a typed position and a
//! limit; a [`Slice`] says where the next one begins.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use types::agent::ExecutorId;
use types::{
    Account, Address, Amount, Blob, BlockFees, Bond, CheckedTx, CommittedBlock, Forks, Hash,
    Header, Miner, MinerFigures, Params, PublicKey, Run, RunStatus, SealedBlock, Signature, Step,
    SubmitterFigures, Supply, TxLocation,
};

mod agents;
mod calls;
mod market;
mod node;
mod offers;
mod pool;
mod rules;

pub use agents::{AgentEntry, AgentFilter, Agents};
pub use calls::{CallEntry, CallFilter, Calls};
pub use market::{CallEstimate, CallWish, HeldElection, Market};
pub use node::{
    Admin, AdminError, Check, Clock, Endpoints, Events, Identity, Network, Peer, PeerChange,
    PoolEvent, Readiness, Trust,
};
pub use offers::{OfferEntry, OfferFilter, OfferPlace, Offers};
pub use pool::{
    DroppedTx, Effects, PendingAccount, Pool, PoolCount, PoolTx, Projection, SenderContent,
    SettlementNow, Submit, SubmitError,
};
pub use rules::{
    ForkCounts, ForkState, ForkVoter, ForkVotes, Keys, NextRules, NextValue, ParamState,
    ParamVoter, ParamVotes, PunishedKey, Rules,
};

/// Everything that the interfaces are served from.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "ports are opaque")]
pub struct Ports {
    /// Blocks and validators.
    pub chain: Arc<dyn Chain>,
    /// Included transactions, headers, turns.
    pub transactions: Arc<dyn Transactions>,
    /// Accounts and supply.
    pub accounts: Arc<dyn Accounts>,
    /// Agent runs.
    pub runs: Arc<dyn Runs>,
    /// Miners and blobs.
    pub directory: Arc<dyn Directory>,
    /// Agents of the market.
    pub agents: Arc<dyn Agents>,
    /// Calls of agents.
    pub calls: Arc<dyn Calls>,
    /// Offers of miners.
    pub offers: Arc<dyn Offers>,
    /// The market as requesters see it.
    pub market: Arc<dyn Market>,
    /// Merkle proofs.
    pub proofs: Arc<dyn Proofs>,
    /// Forks that are to come.
    pub forks: Arc<dyn ForkCounts>,
    /// The rules that votes can change, and what places in blocks cost by them.
    pub rules: Arc<dyn Rules>,
    /// What the chain remembers of validators' keys.
    pub keys: Arc<dyn Keys>,
    /// Taking transactions in.
    pub submit: Arc<dyn Submit>,
    /// The state with everything pending applied.
    pub projection: Arc<dyn Projection>,
    /// The pool's content.
    pub pool: Arc<dyn Pool>,
    /// Peers.
    pub network: Arc<dyn Network>,
    /// What happens, as it happens.
    pub events: Arc<dyn Events>,
    /// Health.
    pub readiness: Arc<dyn Readiness>,
    /// The operator's levers.
    pub admin: Arc<dyn Admin>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// What never changes while the node runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainFacts {
    /// The chain's name.
    pub chain_id: String,
    /// The hash of genesis: the `previousHash` of block 1.
    pub genesis_hash: Hash,
    /// The time that genesis names, in milliseconds since 1970.
    pub genesis_time_ms: u64,
    /// From which heights on kinds are valid.
    pub forks: Forks,
    /// The chain's parameters.
    pub params: Params,
    /// The program's version.
    pub version: String,
}

/// Why a port does not answer: a fault of this node (storage, a broken invariant), which is logged and
/// never shown to clients; or, with [`Fault::missing`], that the node does not have what was asked for,
/// which clients are told.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{doing}")]
pub struct Fault {
    /// What the node was doing.
    pub doing: &'static str,
    /// Why it failed.
    #[source]
    pub source: Arc<dyn Error + Send + Sync>,
    /// What the node does not have, if that is why.
    pub missing: Option<Missing>,
}

impl Fault {
    /// `source` happened while `doing`.
    pub fn new(doing: &'static str, source: impl Error + Send + Sync + 'static) -> Self {
        Self { doing, source: Arc::new(source), missing: None }
    }

    /// What was asked for stands before `earliest`, the first block that the node has.
    #[must_use]
    pub fn history(earliest: u64) -> Self {
        let source = Arc::new(Began(earliest));
        Self {
            doing: "reading blocks that the node does not have",
            source,
            missing: Some(Missing::BlocksBefore(earliest)),
        }
    }

    /// The events that were asked for stand before `from`, the first block whose events the node has.
    #[must_use]
    pub fn no_events(from: u64) -> Self {
        let source = Arc::new(Began(from));
        let missing = Some(Missing::EventsBefore(from));
        Self { doing: "reading events that the node does not have", source, missing }
    }
}

/// What a node does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Blocks before this one: it began with a snapshot.
    BlocksBefore(u64),
    /// Events of blocks before this one: a program before 0.3 committed them.
    EventsBefore(u64),
}

/// The node's chain begins later than what was asked for.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the first block here is {0}")]
struct Began(u64);

/// Part of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice<T, P> {
    /// At most as many as asked for. May be fewer, even none, although there are more: an
    /// implementation may bound how many entries it looks at.
    pub items: Vec<T>,
    /// The position to ask with next, or none at the end. Must lie beyond the position that was
    /// asked with.
    pub next: Option<P>,
}

/// A committed block as clients get it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownBlock {
    /// The header and the texts of the transactions.
    pub block: SealedBlock,
    /// What made it final.
    pub certificate: Option<Certificate>,
    /// What the places in it cost; none before v7.
    pub fees: Option<BlockFees>,
}

/// The latest committed block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tip {
    /// Its index; 0 before the first block.
    pub height: u64,
    /// Its hash; the genesis hash before the first block.
    pub hash: Hash,
    /// Its timestamp; the genesis time before the first block.
    pub timestamp: u64,
    /// The first block that the node has, or will have: 1, unless it began with a snapshot.
    pub earliest: u64,
    /// The first block of which the node knows, or will know, what it did: `earliest`, unless a program
    /// before 0.3 committed later ones.
    pub events_from: u64,
}

/// The precommits that made a block final.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The block's index.
    pub height: u64,
    /// The round that decided it.
    pub round: u32,
    /// The block.
    pub block_hash: Hash,
    /// Who signed, in order of addresses.
    pub signatures: Vec<(Address, Signature)>,
}

/// A validator at some height.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Validator {
    /// Its account.
    pub address: Address,
    /// Its key.
    pub public_key: PublicKey,
    /// Its voting power.
    pub power: u64,
    /// Blocks that it proposed.
    pub proposed: u64,
    /// Rounds in which it was to propose and nothing was decided.
    pub missed: u64,
    /// Its votes for changes of the set that count now, in order of candidates.
    pub votes: Vec<ValidatorVote>,
    /// Pairs of messages in which this node saw it contradict itself.
    pub equivocations: u64,
    /// The last of these pairs, oldest first; at most 16.
    pub evidence: Vec<Equivocation>,
}

/// An open vote for a change of the validator set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValidatorVote {
    /// The key of the validator that shall be added, changed or removed.
    pub candidate_key: PublicKey,
    /// The power that it shall have; 0 removes it.
    pub power: u64,
    /// The last block time at which the vote counts.
    pub expires_at: u64,
}

/// Two signed messages of one validator of which an honest one sends at most one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Equivocation {
    /// The height that was being decided.
    pub height: u64,
    /// The round.
    pub round: u32,
    /// `proposal`, `prevote` or `precommit`.
    pub kind: &'static str,
    /// The two messages: the block (none for nil), a proposal's valid round (−1 for none), and the
    /// signature.
    pub messages: [(Option<Hash>, i64, Signature); 2],
}

/// Blocks, certificates, validators.
pub trait Chain: Send + Sync {
    /// The latest committed block.
    fn tip(&self) -> Tip;

    /// The block at `height`, which is at least 1; none if it is not committed. It has no events
    /// below [`Tip::events_from`]. Called once for each new block by the subscriptions, so the
    /// latest blocks should be held in memory.
    ///
    /// # Errors
    /// [`Fault`].
    fn block(&self, height: u64) -> Result<Option<Arc<CommittedBlock>>, Fault>;

    /// The index of the block with this hash.
    ///
    /// # Errors
    /// [`Fault`].
    fn height_of(&self, hash: &Hash) -> Result<Option<u64>, Fault>;

    /// The block at `height` as it is shown; none if it is not committed.
    ///
    /// # Errors
    /// [`Fault`].
    fn shown(&self, height: u64) -> Result<Option<ShownBlock>, Fault>;

    /// The validators of the block at `height`, in order of addresses; none if that block is
    /// more than two above the latest: its validators are not decided yet.
    ///
    /// # Errors
    /// [`Fault`].
    fn validators(&self, height: u64) -> Result<Option<Vec<Validator>>, Fault>;
}

/// A transaction in a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IncludedTx {
    /// The transaction.
    pub tx: CheckedTx,
    /// Where it stands.
    pub location: TxLocation,
    /// The block.
    pub block_hash: Hash,
    /// The block's timestamp.
    pub timestamp: u64,
}

/// What an account has at stake as a miner, and what it has done as a submitter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stake {
    /// Its bond.
    pub bond: Bond,
    /// What it took out of its bond: when it is paid, and how much. The earliest first.
    pub unbonding: Vec<(u64, Amount)>,
    /// What it has done as a submitter of runs.
    pub submitter: SubmitterFigures,
}

/// Transactions, or runs with theirs, that are loaded before their size is looked at: neighbours cost one
/// read.
pub(crate) const LOADED_TOGETHER: usize = 8;

/// What stands in blocks, by name, by place and by conversation.
pub trait Transactions: Send + Sync {
    /// The included transaction with this hash.
    ///
    /// # Errors
    /// [`Fault`].
    fn by_hash(&self, hash: &Hash) -> Result<Option<IncludedTx>, Fault>;

    /// The transactions at these places, in the order asked for; a place that does not exist is
    /// a fault, because positions come from records. At most 1,500 places, often several in one
    /// block.
    ///
    /// # Errors
    /// [`Fault`].
    fn at(&self, locations: &[TxLocation]) -> Result<Vec<IncludedTx>, Fault>;

    /// As [`Transactions::at`], but ends with the transaction whose bytes make the sum reach
    /// `bytes_max`, so that no list loads much more than it shows.
    ///
    /// # Errors
    /// [`Fault`].
    fn at_within(
        &self,
        locations: &[TxLocation],
        bytes_max: usize,
    ) -> Result<Vec<IncludedTx>, Fault> {
        let (mut included, mut bytes) = (Vec::new(), 0_usize);
        for some in locations.chunks(LOADED_TOGETHER) {
            for one in self.at(some)? {
                bytes = bytes.saturating_add(one.tx.signed_bytes());
                included.push(one);
                if bytes >= bytes_max {
                    return Ok(included);
                }
            }
        }
        Ok(included)
    }

    /// Headers with their hashes from `from` downwards, at most `limit`, ending with block 1.
    ///
    /// # Errors
    /// [`Fault`].
    fn headers(&self, from: u64, limit: usize) -> Result<Vec<(Hash, Header)>, Fault>;

    /// Where the turns of a conversation are, in chain order, after `after`.
    ///
    /// # Errors
    /// [`Fault`].
    fn turns(
        &self,
        conversation_id: &Hash,
        after: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<TxLocation, TxLocation>, Fault>;
}

/// Accounts and the supply.
pub trait Accounts: Send + Sync {
    /// The account; zeros if it does not exist.
    ///
    /// # Errors
    /// [`Fault`].
    fn account(&self, address: &Address) -> Result<Account, Fault>;

    /// Where the account's transactions are (sent by it, or moving money to it), newest first,
    /// before `before`.
    ///
    /// # Errors
    /// [`Fault`].
    fn transactions(
        &self,
        address: &Address,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<TxLocation, TxLocation>, Fault>;

    /// The counters of the supply.
    ///
    /// # Errors
    /// [`Fault`].
    fn supply(&self) -> Result<Supply, Fault>;

    /// Who holds how much at one moment, with the `richest_max` richest accounts. Reads every
    /// account, about a microsecond each.
    ///
    /// # Errors
    /// [`Fault`].
    fn census(&self, richest_max: usize) -> Result<Census, Fault>;

    /// What each account's runs hold at one moment. Reads every run that holds money.
    ///
    /// # Errors
    /// [`Fault`].
    fn escrows(&self) -> Result<Escrows, Fault>;
}

/// Who holds how much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Census {
    /// After which block.
    pub height: u64,
    /// How many accounts there are.
    pub accounts: u64,
    /// How many miners are in the directory.
    pub miners: u64,
    /// What all accounts hold.
    pub held: Amount,
    /// What is in escrow.
    pub escrowed: Amount,
    /// What validators of the next height hold.
    pub held_by_validators: Group,
    /// What miners of the directory hold that are not among these validators.
    pub held_by_miners: Group,
    /// The richest accounts, richest first, and by address where they hold the same.
    pub richest: Vec<(Address, Amount)>,
}

/// Some accounts together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Group {
    /// How many there are.
    pub accounts: u64,
    /// What they hold.
    pub amount: Amount,
}

/// What each account's runs hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Escrows {
    /// After which block.
    pub height: u64,
    /// Sums of `maxFee` of open runs and of rewards that are held; only accounts that have some.
    pub by_submitter: BTreeMap<Address, Amount>,
}

/// Which runs to list. Conditions that are given must all hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunFilter {
    /// The run's status now.
    pub status: Option<RunStatus>,
    /// Who asked.
    pub submitter: Option<Address>,
    /// Who claimed it.
    pub miner: Option<Address>,
    /// Its conversation.
    pub conversation_id: Option<Hash>,
}

/// Agent runs.
pub trait Runs: Send + Sync {
    /// The run's record.
    ///
    /// # Errors
    /// [`Fault`].
    fn run(&self, agent_run_id: &Hash) -> Result<Option<Run>, Fault>;

    /// The run's steps by ascending index, after the step `after`; empty for an unknown run.
    ///
    /// # Errors
    /// [`Fault`].
    fn steps(
        &self,
        agent_run_id: &Hash,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Slice<Step, u64>, Fault>;

    /// Runs that fit the filter, newest request first, with requests before `before`. A filter
    /// with several conditions may have to look at many runs: bound it and answer short.
    ///
    /// # Errors
    /// [`Fault`].
    fn list(
        &self,
        filter: &RunFilter,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<Run, TxLocation>, Fault>;
}

/// An entry of the miner directory with what the miner has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MinerEntry {
    /// The entry.
    pub miner: Miner,
    /// Its figures.
    pub figures: MinerFigures,
}

/// Miners and blobs.
pub trait Directory: Send + Sync {
    /// Registered miners in order of addresses, after `after`.
    ///
    /// # Errors
    /// [`Fault`].
    fn miners(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Slice<MinerEntry, Address>, Fault>;

    /// The entry of an account.
    ///
    /// # Errors
    /// [`Fault`].
    fn miner(&self, address: &Address) -> Result<Option<MinerEntry>, Fault>;

    /// The entry with this `minerId`.
    ///
    /// # Errors
    /// [`Fault`].
    fn miner_by_id(&self, miner_id: &Hash) -> Result<Option<MinerEntry>, Fault>;

    /// The blob's record.
    ///
    /// # Errors
    /// [`Fault`].
    fn blob(&self, blob_id: &str) -> Result<Option<Blob>, Fault>;

    /// The bytes of a finalised blob; none if there is none of that id. Up to `maxBlobBytes`.
    ///
    /// # Errors
    /// [`Fault`].
    fn blob_bytes(&self, blob_id: &str) -> Result<Option<Vec<u8>>, Fault>;
}

/// What a proof is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProofTarget {
    /// An account.
    Account(Address),
    /// A run.
    AgentRun(Hash),
    /// The validators of the next heights.
    Validators,
    /// What an account has at stake as a miner.
    Bond(Address),
    /// A miner's offer for an executor.
    Offer(Address, ExecutorId),
    /// An agent.
    Agent(Hash),
    /// A call.
    Call(Hash),
}

/// That a key has a value, or none, in an authenticated state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proof {
    /// The key in the tree.
    pub key: Hash,
    /// The authenticated bytes at the key; none proves absence.
    pub value: Option<Vec<u8>>,
    /// The key and value hash of the leaf that the path ends in, if it ends in one.
    pub leaf: Option<(Hash, Hash)>,
    /// Hashes of the siblings on the path, from the leaf to the root.
    pub siblings: Vec<Hash>,
    /// The root that the path leads to.
    pub state_root: Hash,
    /// The header that carries the root.
    pub header: Header,
    /// The certificate of that header.
    pub certificate: Certificate,
}

/// Merkle proofs.
pub trait Proofs: Send + Sync {
    /// A proof in the newest state whose root a committed header carries; none if there is no
    /// such header yet.
    ///
    /// # Errors
    /// [`Fault`].
    fn prove(&self, target: &ProofTarget) -> Result<Option<Proof>, Fault>;
}
