//! Blocks: building one from candidates, and executing one that somebody else built or that was
//! stored (docs/protocol.md section 6). Both go through the same `Execution`.

use std::sync::Arc;

use types::block::merkle_root;
use types::randomness::Input;
use types::{
    Address, Amount, Block, BlockEvents, CheckedTx, Event, Forks, Hash, Header, Keypair, Params,
    Randomness, Rejection, SetMember, TxEvent,
};

use crate::bonds;
use crate::chain::{Chain, Context};
use crate::draft::{Changes, Draft};
use crate::error::{StorageError, TxError};
use crate::execute::execute_if;
use crate::fees::{Price, Used, next_base_fee};
use crate::ledger::{self, OVERFLOW};
use crate::market::draw::{self, Begun};
use crate::market::phases::{self, Now};
use crate::rule_votes;
use crate::rules::{self, Rules};
use crate::sweep::{clear_remains, sweep};
use crate::tables::{FeeRow, Fees};
use crate::tx::envelope::{Charge, Done};
use crate::validators;
use crate::view::Read;
use crate::work;

/// The end of the chain, on which the next block stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parent {
    /// Its index; 0 for genesis.
    pub height: u64,
    /// Its hash; the genesis hash for genesis.
    pub hash: Hash,
    /// Its timestamp in milliseconds; the genesis time for genesis.
    pub timestamp: u64,
    /// Root of the state after it: what the next header carries.
    pub state_root: Hash,
    /// What the randomness of the next block is made of: that of this block, or the genesis hash if it
    /// has none.
    pub randomness: Hash,
    /// Who proposed it; nobody genesis.
    pub proposer: Option<Address>,
}

impl Parent {
    /// The timestamp of a block that is made at `now_ms`: later than the parent's in any case.
    #[must_use]
    pub const fn next_timestamp(&self, now_ms: u64) -> u64 {
        let least = self.timestamp.saturating_add(1);
        if now_ms > least { now_ms } else { least }
    }
}

/// A block and everything that it does.
#[derive(Debug)]
pub struct Executed {
    /// The block.
    pub block: Block,
    /// The rows that it changes.
    pub changes: Changes,
    /// What it did.
    pub events: BlockEvents,
}

/// Why a block is not valid on top of its parent.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// A member of the header is not what the chain or the content demands.
    #[error("{field} is {got}, expected {expected}")]
    Header {
        /// The member.
        field: &'static str,
        /// What it is.
        got: String,
        /// What it must be.
        expected: String,
    },
    /// There are more bytes of payloads and signatures than a block may have.
    #[error("the transactions have {bytes} bytes, at most {max} are allowed")]
    TooLarge {
        /// How many there are.
        bytes: u64,
        /// `maxBlockBytes`.
        max: u64,
    },
    /// The transactions take more work than a block may.
    #[error("transaction {position} takes the block beyond {max} units of work")]
    TooMuchWork {
        /// The place of the first one that has no room, from 0.
        position: u32,
        /// `maxBlockWork`.
        max: u64,
    },
    /// A transaction is not valid at its place.
    #[error("transaction {position}: {rejection}")]
    Transaction {
        /// Its place, from 0.
        position: u32,
        /// The rule that it breaks.
        rejection: Box<Rejection>,
    },
    /// Our fault, not the block's.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What a block has so much of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Bytes of payloads and signatures, as `maxBlockBytes` says.
    Bytes,
    /// Units of work, as `maxBlockWork` says, from v7 on.
    Work,
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Work => "units of work",
        })
    }
}

/// Why a transaction does not come into the block that is being built.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The block has no room for it; a smaller one may fit.
    #[error("the block has room for {room} more {resource}, the transaction takes {needed}")]
    Full {
        /// What there is too little of.
        resource: Resource,
        /// How much of it the transaction takes; of work at least so much.
        needed: u64,
        /// What is left of it.
        room: u64,
    },
    /// It is not valid at this place.
    #[error("{0}")]
    Rejected(Box<Rejection>),
    /// Our fault.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<TxError> for PushError {
    fn from(error: TxError) -> Self {
        match error {
            TxError::Rejected(rejection) => Self::Rejected(rejection),
            TxError::Storage(fault) => Self::Storage(fault),
        }
    }
}

/// Makes a block out of transactions that are tried one after the other.
#[derive(Debug)]
pub struct BlockBuilder {
    parent: Parent,
    execution: Execution,
    randomness: Option<Randomness>,
}

impl BlockBuilder {
    /// An empty block on top of `parent`, whose state is `base`. The timestamp is raised to the
    /// least that is allowed if it is not later than the parent's.
    ///
    /// From fork v7 on the key of the proposer makes the block's randomness. Others refuse the block
    /// unless it is in the set of the height; that is not looked at here.
    ///
    /// # Errors
    /// [`StorageError`] if `base` has no state.
    pub fn new(
        chain: Arc<Chain>,
        base: Arc<dyn Read>,
        parent: Parent,
        proposer: &Keypair,
        now_ms: u64,
    ) -> Result<Self, StorageError> {
        let height = parent.height.checked_add(1).ok_or(LAST_HEIGHT)?;
        let timestamp = parent.next_timestamp(now_ms);
        let place = Place { height, timestamp, proposer: proposer.address() };
        let mut execution = Execution::new(chain, base, place)?;
        let input = input(&execution.chain.chain_id, &parent, height);
        let randomness = execution.rules.is_v7().then(|| input.prove(proposer));
        execution.hold_elections(&parent, randomness.as_ref())?;
        Ok(Self { parent, execution, randomness })
    }

    /// Executes a transaction as the block's next one. One that is refused changes nothing.
    ///
    /// # Errors
    /// [`PushError::Full`] if it is too much for the rest of the block, [`PushError::Rejected`]
    /// if it is not valid here.
    pub fn push(&mut self, tx: &CheckedTx) -> Result<(), PushError> {
        self.execution.push(tx)
    }

    /// How many transactions the block has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.execution.transactions.len()
    }

    /// Whether the block has no transaction.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.execution.transactions.is_empty()
    }

    /// The state after what is in the block so far.
    #[must_use]
    pub const fn state(&self) -> &Draft {
        &self.execution.draft
    }

    /// What is left of `maxBlockBytes`.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.execution.room()
    }

    /// What is left of `maxBlockWork`; nothing is counted before v7.
    #[must_use]
    pub fn work_room(&self) -> u64 {
        self.execution.work_room()
    }

    /// Sweeps, pays the reward and writes the header.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the state contradicts itself.
    pub fn finish(self) -> Result<Executed, StorageError> {
        let Self { parent, execution, randomness } = self;
        let Place { height, timestamp, proposer } = execution.place;
        let chain_id = execution.chain.chain_id.clone();
        let Outcome { transactions, tokens_burned, changes, events } = execution.finish()?;
        let header = Header {
            chain_id,
            index: height,
            previous_hash: parent.hash,
            timestamp,
            proposer,
            tx_root: tx_root(&transactions),
            state_root: parent.state_root,
            tokens_burned,
            tx_count: u64::try_from(transactions.len()).unwrap_or(u64::MAX),
            randomness,
        };
        Ok(Executed { block: Block { header, transactions }, changes, events })
    }
}

/// Validates a block by executing it on the state after its parent: a proposal of another
/// validator, a block of another node, or a stored block that is verified again. The clock is not
/// looked at ([`check_clock`]), nor whose turn it was to propose.
///
/// # Errors
/// [`BlockError`] with the first rule that the block breaks.
pub fn execute_block(
    chain: &Arc<Chain>,
    base: Arc<dyn Read>,
    parent: &Parent,
    block: Block,
) -> Result<Executed, BlockError> {
    let Block { header, transactions } = block;
    check_header(chain, parent, &header, &transactions)?;
    let Header { index, timestamp, proposer, .. } = header;
    let place = Place { height: index, timestamp, proposer };
    let mut execution = Execution::new(Arc::clone(chain), base, place)?;
    execution.check_randomness(parent, &header)?;
    execution.hold_elections(parent, header.randomness.as_ref())?;
    let bytes = transactions.iter().map(content_bytes).fold(0, u64::saturating_add);
    let max = u64::from(chain.params.max_block_bytes);
    if bytes > max {
        return Err(BlockError::TooLarge { bytes, max });
    }
    let max_work = execution.rules.params.max_block_work;
    for tx in &transactions {
        let position = execution.position();
        execution.push(tx).map_err(|error| match error {
            PushError::Full { resource: Resource::Bytes, .. } => {
                BlockError::TooLarge { bytes, max }
            }
            PushError::Full { resource: Resource::Work, .. } => {
                BlockError::TooMuchWork { position, max: max_work }
            }
            PushError::Rejected(rejection) => BlockError::Transaction { position, rejection },
            PushError::Storage(fault) => BlockError::Storage(fault),
        })?;
    }
    let Outcome { transactions, tokens_burned, changes, events } = execution.finish()?;
    require("tokensBurned", &header.tokens_burned, &tokens_burned)?;
    Ok(Executed { block: Block { header, transactions }, changes, events })
}

/// Whether a proposal's timestamp is at most `maxClockSkewMs` ahead of this node's clock. Not a
/// rule for blocks that are final.
///
/// # Errors
/// [`BlockError::Header`] if it is further ahead.
pub fn check_clock(timestamp: u64, now_ms: u64, params: &Params) -> Result<(), BlockError> {
    let latest = now_ms.saturating_add(params.max_clock_skew_ms);
    if timestamp <= latest {
        return Ok(());
    }
    let expected = format!("at most {latest}, the clock and maxClockSkewMs");
    Err(BlockError::Header { field: "timestamp", got: timestamp.to_string(), expected })
}

const LAST_HEIGHT: StorageError = StorageError::Inconsistent { what: "the height overflows" };

fn tx_root(transactions: &[CheckedTx]) -> Hash {
    merkle_root(&transactions.iter().map(|tx| tx.hash()).collect::<Vec<_>>())
}

fn content_bytes(tx: &CheckedTx) -> u64 {
    u64::try_from(tx.content_bytes()).unwrap_or(u64::MAX)
}

/// What a header must be on top of its parent.
///
/// # Errors
/// [`BlockError`] that names the field.
pub fn check_header(
    chain: &Chain,
    parent: &Parent,
    header: &Header,
    transactions: &[CheckedTx],
) -> Result<(), BlockError> {
    let index = parent.height.checked_add(1).ok_or(LAST_HEIGHT)?;
    require("chainId", &header.chain_id, &chain.chain_id)?;
    require("index", &header.index, &index)?;
    require("previousHash", &header.previous_hash, &parent.hash)?;
    if header.timestamp <= parent.timestamp {
        let expected = format!("more than {}, the previous block's", parent.timestamp);
        let got = header.timestamp.to_string();
        return Err(BlockError::Header { field: "timestamp", got, expected });
    }
    require("stateRoot", &header.state_root, &parent.state_root)?;
    let count = u64::try_from(transactions.len()).unwrap_or(u64::MAX);
    require("txCount", &header.tx_count, &count)?;
    require("txRoot", &header.tx_root, &tx_root(transactions))
}

/// What a header must say of randomness: nothing before fork v7, and then what the key proves that its
/// proposer has in `set`, that of its height (docs/protocol.md section 6.1). Costs about as much as
/// three signatures and is charged to no budget: a block has one.
///
/// # Errors
/// [`BlockError::Header`] that names the member.
pub fn check_randomness(
    forks: &Forks,
    set: &[SetMember],
    parent: &Parent,
    header: &Header,
) -> Result<(), BlockError> {
    let refused = |field, got: &dyn std::fmt::Display, expected: &str| {
        Err(BlockError::Header { field, got: got.to_string(), expected: expected.to_owned() })
    };
    let is_v7 = header.index >= forks.v7_from();
    let Randomness { value, proof } = match &header.randomness {
        Some(randomness) if is_v7 => randomness,
        Some(randomness) => return refused("randomness", &randomness.value, "none before fork v7"),
        None if is_v7 => return refused("randomness", &"missing", "it, from fork v7 on"),
        None => return Ok(()),
    };
    let Some(key) = validators::key_of(set, &header.proposer) else {
        return refused("proposer", &header.proposer, "a validator of the height");
    };
    match input(&header.chain_id, parent, header.index).verify(&key, proof) {
        Some(proved) => require("randomness", value, &proved),
        None => refused("randomnessProof", proof, "a proof of the proposer's key"),
    }
}

const fn input<'a>(chain_id: &'a str, parent: &Parent, height: u64) -> Input<'a> {
    Input { chain_id, previous: parent.randomness, height }
}

pub(crate) fn require<T: PartialEq + std::fmt::Display>(
    field: &'static str,
    got: &T,
    expected: &T,
) -> Result<(), BlockError> {
    if got == expected {
        return Ok(());
    }
    Err(BlockError::Header { field, got: got.to_string(), expected: expected.to_string() })
}

/// Where and when a block is executed.
#[derive(Clone, Copy, Debug)]
struct Place {
    height: u64,
    timestamp: u64,
    proposer: Address,
}

/// A block being executed.
#[derive(Debug)]
struct Execution {
    chain: Arc<Chain>,
    rules: Rules,
    place: Place,
    draft: Draft,
    burned_before: Amount,
    paid: Paid,
    /// What happened before the transactions.
    begun: Vec<Event>,
    transactions: Vec<CheckedTx>,
    events: Vec<TxEvent>,
    used: Used,
    /// What the price follows of it.
    priced: Used,
}

/// What the transactions of a block paid for their places.
#[derive(Clone, Copy, Debug, Default)]
struct Paid {
    burned: Amount,
    tips: Amount,
}

/// What an execution gives.
struct Outcome {
    transactions: Vec<CheckedTx>,
    tokens_burned: Amount,
    changes: Changes,
    events: BlockEvents,
}

impl Paid {
    fn count(&mut self, charge: &Charge) -> Result<(), StorageError> {
        self.burned = self.burned.checked_add(charge.inclusion).ok_or(OVERFLOW)?;
        // A proposer that tips itself has each tip again: together they may be more than all money.
        let tips = self.tips.checked_add(charge.tip);
        self.tips = tips.unwrap_or(Amount::MAX);
        Ok(())
    }
}

impl Execution {
    fn new(chain: Arc<Chain>, base: Arc<dyn Read>, place: Place) -> Result<Self, StorageError> {
        let rules = Rules::at(&chain, &*base, place.height)?;
        let mut draft = Draft::new(base);
        rules::begin_block(&mut draft, &chain, &rules, place.height)?;
        let burned_before = ledger::supply(&draft)?.burned;
        let (transactions, events) = (Vec::new(), Vec::new());
        let (paid, used, priced) = (Paid::default(), Used::default(), Used::default());
        Ok(Self {
            chain,
            rules,
            place,
            draft,
            burned_before,
            paid,
            begun: Vec::new(),
            transactions,
            events,
            used,
            priced,
        })
    }

    /// [`check_randomness`] with the set of the height. The start of block v7 has written one.
    fn check_randomness(&self, parent: &Parent, header: &Header) -> Result<(), BlockError> {
        let sets = if self.rules.is_v7() { validators::sets(&self.draft)? } else { None };
        let set = sets.as_ref().map_or(&self.chain.validators, |sets| &sets.current);
        check_randomness(&self.rules.forks, set, parent, header)
    }

    /// From v8 on: draws the members of the calls that wait for it, with the block's randomness, which has
    /// been checked.
    fn hold_elections(
        &mut self,
        parent: &Parent,
        randomness: Option<&Randomness>,
    ) -> Result<(), StorageError> {
        let Place { height, timestamp, proposer } = self.place;
        let Some(randomness) = randomness.filter(|_| self.rules.is_v8(height)) else {
            return Ok(());
        };
        let sets = validators::sets(&self.draft)?;
        let set = sets.as_ref().map_or(&self.chain.validators, |sets| &sets.current);
        let is_others = set.len() == 1 || parent.proposer.is_none_or(|it| it != proposer);
        let begun = Begun { height, timestamp, randomness: randomness.value, is_others };
        self.begun = draw::begin_block(&mut self.draft, &self.rules.params, &begun)?;
        Ok(())
    }

    fn position(&self) -> u32 {
        u32::try_from(self.transactions.len()).unwrap_or(u32::MAX)
    }

    fn room(&self) -> u64 {
        u64::from(self.chain.params.max_block_bytes).saturating_sub(self.used.bytes)
    }

    fn work_room(&self) -> u64 {
        self.rules.params.max_block_work.saturating_sub(self.used.work)
    }

    /// How a block counts the work of a transaction: not before v7, and as no more than the whole budget,
    /// so that there is a place for every transaction in a block without others.
    fn counting(&self) -> impl Fn(u64) -> u64 + Copy + use<> {
        let max = if self.rules.is_v7() { self.rules.params.max_block_work } else { 0 };
        move |work| work.min(max)
    }

    fn push(&mut self, tx: &CheckedTx) -> Result<(), PushError> {
        let full = |resource, needed, room| Err(PushError::Full { resource, needed, room });
        let (bytes, room) = (content_bytes(tx), self.room());
        if bytes > room {
            return full(Resource::Bytes, bytes, room);
        }
        let room = self.work_room();
        if room == 0 {
            return full(Resource::Work, work::TRANSACTION, room);
        }
        let counting = self.counting();
        let fits = |work| {
            let needed = counting(work);
            if needed > room { full(Resource::Work, needed, room) } else { Ok(()) }
        };
        let Place { height, timestamp, proposer } = self.place;
        let position = self.position();
        let ctx = Context { rules: &self.rules, height, timestamp, proposer, position };
        let Done { event, charge, work, left: _ } = execute_if(tx, &mut self.draft, &ctx, fits)?;
        self.paid.count(&charge)?;
        let used = Used { bytes, work: counting(work) };
        self.used.add(used);
        self.priced.add(used.priced(charge.bytes));
        self.transactions.push(tx.clone());
        self.events.push(TxEvent { position, event });
        Ok(())
    }

    /// From v7 on: what this block cost, and what the next one will.
    fn price_next(&mut self) -> Result<Option<Event>, StorageError> {
        let Some(Price { base_fee, .. }) = self.rules.price else { return Ok(None) };
        let next_base_fee = next_base_fee(base_fee, self.priced, &self.rules.params);
        if next_base_fee != base_fee {
            self.draft.put::<Fees>(&(), &FeeRow { base_fee: next_base_fee });
        }
        let Paid { burned, tips } = self.paid;
        Ok(Some(Event::FeesCharged { base_fee, burned, tips, next_base_fee }))
    }

    /// The end of the block: deadlines, the validators of the next heights, votes on rules, the price of
    /// the next block, then the reward.
    fn finish(mut self) -> Result<Outcome, StorageError> {
        const UNBURNED: StorageError =
            StorageError::Inconsistent { what: "a block took burned money back" };
        let Place { height, timestamp, .. } = self.place;
        self.draft.begin_end_of_block();
        let mut end = std::mem::take(&mut self.begun);
        let now = Now { height, timestamp };
        end.extend(sweep(&mut self.draft, &self.rules, now)?);
        end.extend(phases::end_block(&mut self.draft, now)?);
        end.extend(bonds::end_block(&mut self.draft)?);
        clear_remains(&mut self.draft)?;
        end.extend(validators::end_block(&mut self.draft, &self.rules, height, timestamp)?);
        end.extend(rule_votes::end_block(&mut self.draft, &self.rules, height)?);
        let reward = self.rules.params.block_reward;
        end.extend(self.price_next()?);
        end.extend(ledger::mint(&mut self.draft, self.place.proposer, reward)?);
        let burned = ledger::supply(&self.draft)?.burned;
        let tokens_burned = burned.checked_sub(self.burned_before).ok_or(UNBURNED)?;
        let (changes, credits) = self.draft.into_parts();
        let events = BlockEvents { transactions: self.events, end, credits };
        Ok(Outcome { transactions: self.transactions, tokens_burned, changes, events })
    }
}
