//! Following the chain: what a committed block does to the pool.
//!
//! # Why the draft stays right without executing anything again
//!
//! The draft is the old state with the executable transactions p₁ … pₙ executed in their order. A
//! block takes some of them, B; the others, R, stay. If the block holds nothing else, the draft
//! must be the new state with R executed in order. It is, because a block keeps the nonce order of
//! each sender, and transactions of different senders do not disturb each other. Take an r in R
//! that stands before a b in B, of another sender. b was valid after r, and the block shows that it
//! is valid without r. So
//!
//! - money: only its own transactions debit an account, and credits commute: each finds as much as
//!   it needs in either order;
//! - runs and blobs: if r and b change the same one, then either b needed r (a claim needs the
//!   request, a step the claim) and would not be valid without it, or both want what only one can
//!   have (two claims of one run) and b would not be valid after r. Both are excluded. What only
//!   the sender can change (its miner entry, its blob, the steps of its run) is kept in nonce order.
//!   Run ids of different senders differ, since a run id hashes the sender;
//! - existence of turns, runs, final blobs and versions of agents only ever grows by transactions.
//!
//! So r and b commute, and R can be moved behind B. A kind of transaction for which this does not
//! hold must be reported in [`Touched`] by whoever calls [`crate::Pool::committed`]; a property test
//! compares the pool with a naive one that executes everything again.
//!
//! A block may hold transactions that are not executable here: of nodes whose gossip has not come, or
//! such as are to be executed again. They are executed on the draft first, behind R. If each is valid
//! there, they have become some of the pₙ, and all that was said holds. If one is not, something here
//! contradicts the block: the same nonce, a run that two miners claim.
//!
//! What a block does beyond its transactions is in [`Touched`], and the draft knows nothing of it.
//! What it does to accounts is only ever a credit (refunds, fees, rewards) and is told to the draft,
//! which adds it where needed: a credit commutes with everything. Runs, blobs and votes that it
//! changes matter only if an executable transaction is about them: of others the draft has no row of
//! its own ([`crate::ports::PendingLedger::advance`]).
//!
//! So the draft is built anew when a block contradicts what is executable, when it holds too much that
//! is not, when it touched what something executable is about, when something was evicted that could not
//! be taken off the draft (`evict`), when nothing got into it although there was something to offer (so
//! that a transaction that wrongly counts as executable cannot stay; from v7 on once, however many empty
//! blocks follow), and now and then (so that the draft's changes cannot pile up). That takes its time,
//! but not all of it while the block is committed: see `rebuild`.
//!
//! A vote of a validator in a block is no reason: only votes depend on votes, and which of them was free is
//! settled with the credits. That validators have changed, or that something was decided, hits those votes
//! that wait. One that names a height that has come is executed again alone, with what its sender sent
//! after it, and dropped.
//!
//! A block may also lock or burn a part of a miner's bond. The draft is told, but the order matters here:
//! what the miner has waiting may count on money that is gone. So those transactions are executed again,
//! with what the miner sent after them. Other senders are not affected.
//!
//! An agent that is retired hits calls of it that wait: they too are executed again alone, and dropped.
//!
//! What came before its time waits for a phase of its call (`held`), and is tried again when one begins.
//!
//! What waits for the base fee to fall stays on the draft, with its money set aside. So it needs nothing
//! to come back, and what builds on it needs not be found.

use std::collections::{BTreeMap, BTreeSet};

use types::call::CallChange;
use types::tx::Subject;
use types::{
    Account, Address, Amount, BlockEvents, Body, BondChange, CheckedTx, Code, Credit, Event, Hash,
    Rejection,
};

use super::{Core, DOUBTFUL_MAX};
use crate::entries::Place;
use crate::error::Fault;
use crate::senders::SenderId;

/// A block that was committed.
#[derive(Clone, Copy, Debug)]
pub struct Committed<'a> {
    /// Its transactions in order.
    pub included: &'a [CheckedTx],
    /// What it changed beyond them.
    pub touched: &'a Touched,
}

/// What a block changed otherwise than by the effects of its transactions that every block would
/// have: by sweeps, and for its proposer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Touched {
    /// Runs that a sweep reopened or ended.
    pub runs: BTreeSet<Hash>,
    /// Blobs that a sweep dropped, and those whose last chunk showed that the bytes are not those that
    /// were announced.
    pub blobs: BTreeSet<String>,
    /// Calls whose members were drawn, or whose phase ended.
    pub calls: BTreeSet<Hash>,
    /// Agents that take no more calls.
    pub agents: BTreeSet<Hash>,
    /// How much sweeps (to the submitters of ended runs), fees and reward (to the proposer) credited
    /// to whom.
    pub credits: BTreeMap<Address, Amount>,
    /// What the end of the block did to bonds.
    pub bonds: BTreeMap<Address, BondChange>,
    /// Whether the validators of the next heights changed, or something on which they vote was decided:
    /// who may vote, and on what.
    pub validators: bool,
}

impl Touched {
    /// What a block's events say of it.
    #[must_use]
    pub fn by(events: &BlockEvents) -> Self {
        let mut touched = Self::default();
        for (_, event) in events.iter() {
            touched.note(event);
            if let Some((miner, change)) = event.bond_change() {
                touched.change_bond(miner, change);
            }
        }
        for Credit { address, amount } in &events.credits {
            touched.credit(*address, *amount);
        }
        touched
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::RunReopened { agent_run_id, .. }
            | Event::RunGivenBack { agent_run_id, .. }
            | Event::RunTimedOut { agent_run_id, .. }
            | Event::RewardPaid { agent_run_id, .. } => {
                self.runs.insert(*agent_run_id);
            }
            // The pool takes a FINALIZE before anybody knows the hash of the chunks.
            Event::BlobDropped { blob_id }
            | Event::BlobChunkStored { blob_id, is_as_announced: Some(false), .. } => {
                self.blobs.insert(blob_id.clone());
            }
            Event::ValidatorChanged { .. }
            | Event::ValidatorSetActivated { .. }
            | Event::EvidenceTaken { .. }
            | Event::ForkFixed { .. }
            | Event::ParamFixed { .. } => {
                self.validators = true;
            }
            Event::CallChanged { call_id, change } => {
                if is_of_the_block(change) {
                    self.calls.insert(*call_id);
                }
            }
            // Others may have calls of it waiting.
            Event::AgentRetired { agent_id, .. } => {
                self.agents.insert(*agent_id);
            }
            // Effects that the transaction has in every block, and credits, which are told apart.
            Event::Transferred { .. }
            | Event::TurnAdded { .. }
            | Event::RunRequested { .. }
            | Event::RunClaimed { .. }
            | Event::RunStepped { .. }
            | Event::RunFinished { .. }
            | Event::RunCancelled { .. }
            | Event::MinerRegistered { .. }
            | Event::BlobAnnounced { .. }
            | Event::BlobChunkStored { .. }
            | Event::BlobFinalized { .. }
            | Event::ValidatorVoted { .. }
            | Event::RewardMinted { .. }
            | Event::ForkVoted { .. }
            | Event::ParamVoted { .. }
            // That a parameter has changed, or that the base fee has grown too far, is the ledger's to say.
            | Event::FeesCharged { .. }
            | Event::BondAdded { .. }
            | Event::UnbondingBegun { .. }
            | Event::UnbondingPaid { .. }
            | Event::RunHeld { .. }
            | Event::RewardRefused { .. }
            | Event::AgentRegistered { .. }
            | Event::OfferSet { .. }
            // Told to the draft, as credits are.
            | Event::BondUnlocked { .. }
            | Event::CallBondLocked { .. }
            | Event::CallBondUnlocked { .. } => {}
        }
    }

    fn change_bond(&mut self, miner: Address, change: BondChange) {
        let sum = self.bonds.entry(miner).or_default();
        let add = |one: Amount, other| one.checked_add(other).unwrap_or(Amount::MAX);
        sum.locked = add(sum.locked, change.locked);
        sum.unlocked = add(sum.unlocked, change.unlocked);
        sum.burned = add(sum.burned, change.burned);
    }

    /// The block credited so much to an account, beyond what its transactions did.
    pub fn credit(&mut self, address: Address, amount: Amount) {
        if !amount.is_zero() {
            let credit = self.credits.entry(address).or_default();
            *credit = credit.checked_add(amount).unwrap_or(Amount::MAX);
        }
    }
}

/// Whether a transaction of a miner can become invalid by what a block did to the miner's bond.
fn counts_on_bond(body: &Body, change: &BondChange) -> bool {
    let takes = matches!(body, Body::AgentClaim(_) | Body::MinerUnbond(_));
    let offers = matches!(body, Body::MinerOffer(offer) if offer.capacity > 0);
    takes && !change.locked.is_zero() || offers && !change.burned.is_zero()
}

/// Whether the beginning or the end of a block did it, and no transaction.
const fn is_of_the_block(change: &CallChange) -> bool {
    match change {
        CallChange::Elected { .. }
        | CallChange::Unassigned { .. }
        | CallChange::Revealing { .. }
        | CallChange::Decided { .. }
        | CallChange::Settled { .. } => true,
        CallChange::Requested { .. }
        | CallChange::Committed { .. }
        | CallChange::Revealed { .. }
        | CallChange::Appealed { .. } => false,
    }
}

/// The draft is built anew after so many transactions in blocks, and eight times as many as are
/// executable: the work is less than an eighth of what admission costs anyway.
const ADVANCED_MAX: usize = 50_000;
const ADVANCED_FACTOR: usize = 8;

/// So many votes of validators are asked with each block whether they come too late.
const VOTES_MAX: usize = 4_096;

/// So often within their longest age queued transactions are looked at.
const AGE_LOOKS: u64 = 64;

/// What [`Core::learn`] found in a block.
struct Learned {
    /// Transactions that were not executed on the draft before.
    count: usize,
    /// Whether all of them are now.
    all: bool,
    /// Whether the block has some that were.
    has_ours: bool,
}

impl Core {
    /// Follows a committed block.
    pub(crate) fn committed(&mut self, block: &Committed<'_>, now_ms: u64) -> Result<(), Fault> {
        let slice = self.slice();
        let had_offers = self.has_offers() && !self.was_in_vain;
        // Without what the block has of others everything would have to be executed again.
        let learned = self.learn(block, self.config.rebuild_slice / 2);
        for tx in block.included {
            self.take_included(tx.hash());
        }
        self.dropped.expire(now_ms);
        self.drop_aged(now_ms);
        self.advanced = self.advanced.saturating_add(block.included.len());

        let settled = self.order.settled_len();
        let advanced_max = ADVANCED_MAX.max(settled.saturating_mul(ADVANCED_FACTOR));
        let is_hit = self.is_hit(block.touched);
        let is_right = learned.all
            && (learned.has_ours || settled == 0 || !had_offers)
            && self.advanced <= advanced_max
            && !self.wants_rebuild
            && !is_hit;
        let follows = is_right && self.follow(block.touched)?;
        if !follows {
            self.rebuild()?;
        }
        if follows {
            self.doubt_late_votes();
            self.doubt_stakes(block.touched);
            self.doubt_calls_of(&block.touched.agents);
        }
        for call in &block.touched.calls {
            self.restless.extend(self.held.release(*call));
        }
        self.follow_market();
        if let Some(market) = &mut self.market {
            if is_hit || !block.included.is_empty() {
                market.reopen();
            }
            // Executed once more, nothing would be different.
            self.was_in_vain = block.included.is_empty() && (self.was_in_vain || !follows);
        }
        let answer = self.drop_expired(now_ms).and_then(|()| {
            if follows {
                self.settle(slice.saturating_sub(learned.count), now_ms).map(drop)
            } else {
                self.settle_first(slice, now_ms)
            }
        });
        self.share_tenth();
        // What was not executed again is left for the next time.
        if let Err(fault) = answer {
            tracing::error!(%fault, "a pooled transaction could not be executed again");
        }
        Ok(())
    }

    /// Executes what the block has and the draft has not, at most so many transactions.
    fn learn(&mut self, block: &Committed<'_>, most: usize) -> Learned {
        let mut learned = Learned { count: 0, all: true, has_ours: false };
        for tx in block.included {
            self.dropped.forget(tx.hash());
            if self.is_settled(tx.hash()) {
                learned.has_ours = true;
                continue;
            }
            self.restless.insert(tx.from());
            if learned.all {
                learned.count = learned.count.saturating_add(1);
                learned.all = learned.count <= most && self.ledger.admit(tx).is_ok();
            }
        }
        learned
    }

    pub(super) fn is_settled(&self, hash: Hash) -> bool {
        match self.entries.by_hash(hash).map(|entry| entry.place) {
            Some(Place::Pending(seq)) => self.order.is_settled(seq),
            Some(Place::Queued) | None => false,
        }
    }

    /// Brings the draft to the new state with what is settled; false if that failed.
    fn follow(&mut self, touched: &Touched) -> Result<bool, Fault> {
        if self.order.settled_len() == 0 {
            return self.reset_ledger().map(|()| true);
        }
        match self.ledger.advance(&touched.credits, &touched.bonds) {
            Ok(is_right) => Ok(is_right),
            Err(fault) => {
                tracing::error!(%fault, "the pool's draft could not follow a block");
                Ok(false)
            }
        }
    }

    /// Follows many blocks, which hold these transactions of the pool.
    pub(crate) fn chain_moved(&mut self, included: &[Hash], now_ms: u64) -> Result<(), Fault> {
        for hash in included {
            self.take_included(*hash);
        }
        self.dropped.expire(now_ms);
        self.rebuild()?;
        self.follow_market();
        if let Some(market) = &mut self.market {
            market.reopen();
        }
        self.held.release_all();
        self.restless.extend(self.senders.iter().map(|(_, sender)| sender.address));
        let answer = self.settle_first(self.config.rebuild_slice.max(1), now_ms);
        self.share_tenth();
        answer
    }

    /// Removes a transaction of a block.
    fn take_included(&mut self, hash: Hash) {
        let Some(slot) = self.entries.slot(hash) else { return };
        let Some(entry) = self.entries.get(slot) else { return };
        let (id, place, nonce) = (entry.sender, entry.place, entry.tx.nonce());
        match place {
            Place::Pending(seq) => {
                self.order.remove(seq);
                self.withdraw(id, slot);
                self.senders.remove_pending(id, slot);
            }
            Place::Queued => drop(self.senders.dequeue(id, nonce)),
        }
        self.remove_entry(slot);
        self.tally.included();
        self.senders.close_if_empty(id);
    }

    /// Whether an executable transaction is about something that a sweep touched.
    fn is_hit(&self, touched: &Touched) -> bool {
        let Touched { runs, blobs, calls, agents: _, credits: _, bonds: _, validators } = touched;
        runs.iter().any(|id| self.subjects.has(Subject::Run(*id)))
            || blobs.iter().any(|id| self.subjects.has(Subject::Blob(id)))
            || calls.iter().any(|id| self.subjects.has(Subject::Call(*id)))
            || (*validators && self.subjects.has(Subject::Validators))
    }

    /// What no block takes any more because a height has come is executed again, and found out.
    fn doubt_late_votes(&mut self) {
        let votes = self.subjects.of_validators().take(VOTES_MAX);
        let is_late = |hash: &Hash| {
            self.entries.by_hash(*hash).is_some_and(|entry| self.ledger.is_late(&entry.tx))
        };
        let room = DOUBTFUL_MAX.saturating_sub(self.doubtful.len());
        let late: Vec<Hash> = votes.filter(is_late).take(room).collect();
        self.doubtful.extend(late);
    }

    /// What counts on a bond of which the block has locked or burned a part is executed again, and found out:
    /// of that miner alone.
    fn doubt_stakes(&mut self, touched: &Touched) {
        let mut doubtful = Vec::new();
        for (miner, change) in &touched.bonds {
            let Some((_, sender)) = self.senders.find(*miner) else { continue };
            let pending = sender.pending.iter().filter_map(|slot| self.entries.get(*slot));
            let counting = pending.filter(|entry| counts_on_bond(entry.tx.body(), change));
            doubtful.extend(counting.map(|entry| entry.tx.hash()));
        }
        self.doubt_all(doubtful);
    }

    /// Calls of agents that are retired are executed again, and found out.
    fn doubt_calls_of(&mut self, agents: &BTreeSet<Hash>) {
        let more = DOUBTFUL_MAX.saturating_add(1);
        let calls = agents.iter().flat_map(|agent| self.subjects.of_agent(*agent));
        let calls = calls.take(more).collect();
        self.doubt_all(calls);
    }

    fn doubt_all(&mut self, doubtful: Vec<Hash>) {
        if doubtful.len() > DOUBTFUL_MAX.saturating_sub(self.doubtful.len()) {
            self.give_up_doubt();
        } else {
            self.doubtful.extend(doubtful);
        }
    }

    /// Drops what has waited for its turn for too long: nobody will send what is before it.
    fn drop_aged(&mut self, now_ms: u64) {
        let mut age_max_ms = self.config.queued_age_max_ms;
        if self.market.is_some() {
            age_max_ms = age_max_ms.min(self.config.age_max_ms);
        }
        if now_ms.abs_diff(self.aged_ms) < age_max_ms / AGE_LOOKS {
            return;
        }
        self.aged_ms = now_ms;
        let aged: Vec<(SenderId, u64)> = self
            .entries
            .iter()
            .map(|(_, entry)| entry)
            .filter(|entry| entry.place == Place::Queued)
            .filter(|entry| now_ms.saturating_sub(entry.queued_ms) >= age_max_ms)
            .map(|entry| (entry.sender, entry.tx.nonce()))
            .collect();
        for (id, nonce) in aged {
            let next = self.senders.get(id).map_or(0, |sender| sender.next);
            let reason = Rejection::new(Code::NonceTooHigh, "nonce", nonce, next)
                .with("tx", nonce)
                .with("state", next)
                .with("queuedAgeMaxMs", age_max_ms);
            self.drop_queued(id, nonce, reason, now_ms);
            self.senders.close_if_empty(id);
        }
    }

    /// The account with everything executable applied. What waits for a phase of its call has its nonce,
    /// and so has what its sender sent after it.
    pub(crate) fn account(&self, address: Address) -> Result<Account, Fault> {
        let account = self.ledger.account(address)?;
        let Some((_, sender)) = self.senders.find(address) else { return Ok(account) };
        // What is to be executed again has its nonces, whatever comes of it.
        let mut nonce = account.nonce;
        if !sender.is_settled() {
            nonce = nonce.max(sender.next);
        }
        if self.next_held(address) == Some(nonce) {
            let queued = sender.queued.range(nonce..).map(|(queued, _)| *queued);
            let last = queued.zip(nonce..).take_while(|(queued, at)| queued == at).last();
            nonce = last.map_or(nonce, |(last, _)| last.saturating_add(1));
        }
        Ok(Account { nonce, ..account })
    }
}
