//! A block being executed: what comes before its transactions, the transactions, and its end.

use std::sync::Arc;

use types::{Address, Amount, BlockEvents, CheckedTx, Event, Header, Randomness, TxEvent};

use super::error::{BlockError, PushError, Resource};
use super::header::check_randomness;
use super::parent::Parent;
use crate::activation;
use crate::bonds;
use crate::chain::ChainRules;
use crate::context::Context;
use crate::draft::{Changes, Draft};
use crate::error::StorageError;
use crate::execute::execute_if;
use crate::fees::{Price, Used, next_base_fee};
use crate::ledger::{self, OVERFLOW};
use crate::market::draw::{self, Begun};
use crate::market::phases::{self, Now, Room};
use crate::rule_votes;
use crate::rules::Rules;
use crate::sweep::{clear_remains, sweep};
use crate::tables::{FeeRow, Fees};
use crate::tx::envelope::{Charge, Done};
use crate::validators;
use crate::view::Read;
use crate::work;

/// A block is nearly full if less than one part in so many of its work is left.
const NEARLY_FULL: u64 = 64;

/// Where and when a block is executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockContext {
    pub(super) height: u64,
    pub(super) timestamp: u64,
    pub(super) proposer: Address,
}

/// A block being executed.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) chain: Arc<ChainRules>,
    pub(super) rules: Rules,
    pub(super) place: BlockContext,
    pub(super) draft: Draft,
    burned_before: Amount,
    paid: Paid,
    /// What happened before the transactions.
    begun: Vec<Event>,
    pub(super) transactions: Vec<CheckedTx>,
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
pub(super) struct Outcome {
    pub(super) transactions: Vec<CheckedTx>,
    pub(super) tokens_burned: Amount,
    pub(super) changes: Changes,
    pub(super) events: BlockEvents,
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
    pub(super) fn new(
        chain: Arc<ChainRules>,
        base: Arc<dyn Read>,
        place: BlockContext,
    ) -> Result<Self, StorageError> {
        let rules = Rules::at(&chain, &*base, place.height)?;
        let mut draft = Draft::new(base);
        activation::begin_block(&mut draft, &chain, &rules, place.height)?;
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
    pub(super) fn check_randomness(
        &self,
        parent: &Parent,
        header: &Header,
    ) -> Result<(), BlockError> {
        let sets = if self.rules.is_v7() { validators::sets(&self.draft)? } else { None };
        let set = sets.as_ref().map_or(&self.chain.validators, |sets| &sets.current);
        check_randomness(&self.rules.forks, set, parent, header)
    }

    /// From v8 on: draws the members of the calls that wait for it, with the block's randomness, which has
    /// been checked.
    pub(super) fn hold_elections(
        &mut self,
        parent: &Parent,
        randomness: Option<&Randomness>,
    ) -> Result<(), StorageError> {
        let BlockContext { height, timestamp, proposer } = self.place;
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

    pub(super) fn position(&self) -> u32 {
        u32::try_from(self.transactions.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn room(&self) -> u64 {
        u64::from(self.chain.params.max_block_bytes).saturating_sub(self.used.bytes)
    }

    pub(super) fn work_room(&self) -> u64 {
        self.rules.params.max_block_work.saturating_sub(self.used.work)
    }

    pub(super) fn has_work_room(&self) -> bool {
        self.work_room() >= self.counting()(work::LEAST)
    }

    pub(super) fn is_nearly_full(&self) -> bool {
        self.work_room() < self.rules.params.max_block_work / NEARLY_FULL
    }

    /// How a block counts the work of a transaction: not before v7, and as no more than the whole budget,
    /// so that there is a place for every transaction in a block without others.
    fn counting(&self) -> impl Fn(u64) -> u64 + Copy + use<> {
        let max = if self.rules.is_v7() { self.rules.params.max_block_work } else { 0 };
        move |work| work.min(max)
    }

    pub(super) fn push(&mut self, tx: &CheckedTx) -> Result<(), PushError> {
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
        let BlockContext { height, timestamp, proposer } = self.place;
        let position = self.position();
        let rules = &self.rules;
        let ctx = Context { rules, height, timestamp, proposer, position, rankings: None };
        let Done { event, charge, work, had: _, left: _ } =
            execute_if(tx, &mut self.draft, &ctx, fits)?;
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
    pub(super) fn finish(mut self) -> Result<Outcome, StorageError> {
        const UNBURNED: StorageError =
            StorageError::Inconsistent { what: "a block took burned money back" };
        let BlockContext { height, timestamp, .. } = self.place;
        self.draft.begin_end_of_block();
        let mut end = std::mem::take(&mut self.begun);
        let now = Now { height, timestamp };
        let mut room = Room::of_block(&self.rules.params);
        end.extend(sweep(&mut self.draft, &self.rules, now, &mut room)?);
        end.extend(phases::end_block(&mut self.draft, now, &mut room)?);
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

/// What a transaction takes of `maxBlockBytes`.
pub(super) fn content_bytes(tx: &CheckedTx) -> u64 {
    u64::try_from(tx.content_bytes()).unwrap_or(u64::MAX)
}
