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
//!   have (two claims of one run) and b would not be valid after r. Both are excluded, unless a
//!   third transaction gives the run back between them: more about that below. What only
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
//! A miner that gives a run back opens it for the next. If the pool has that miner's claim and the next
//! one's, the latter is valid without the former, but then the former is not valid after it. So if a block
//! claims or cancels a run of which another claim is executable, what is about the run is executed again.
//!
//! An agent that is retired hits calls of it that wait: they too are executed again alone, and dropped.
//!
//! What came before its time waits for a phase of its call (`held`), and is tried again when one begins.
//!
//! What waits for the base fee to fall stays on the draft, with its money set aside. So it needs nothing
//! to come back, and what builds on it needs not be found. But it and what its sender sent after it are on the
//! draft and in no block, so what they take there would be kept from everybody: the run of a claim, the
//! appeal of a call. If a newcomer that a block could take wants it, they go (`rivals`). For that the pool
//! counts the blocks that had room for more.

use std::collections::BTreeSet;

use types::tx::Subject;
use types::{Body, BondChange, CheckedTx, Code, Hash, Rejection};

use super::parts::Core;
use super::touched::Touched;
use crate::entries::EntryPlace;
use crate::error::PoolFault;
use crate::market::Market;
use crate::senders::SenderId;

/// A block that was committed.
#[derive(Clone, Copy, Debug)]
pub struct Committed<'a> {
    /// Its transactions in order.
    pub included: &'a [CheckedTx],
    /// What it changed beyond them.
    pub touched: &'a Touched,
}

/// The draft is built anew after so many transactions in blocks, and eight times as many as are
/// executable: the work is less than an eighth of what admission costs anyway.
const INCLUDED_MAX: usize = 50_000;
const INCLUDED_FACTOR: usize = 8;

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
    pub(crate) fn committed(
        &mut self,
        block: &Committed<'_>,
        now_ms: u64,
    ) -> Result<(), PoolFault> {
        let slice = self.slice();
        let had_offers = self.contents.has_offers() && !self.was_in_vain;
        // Without what the block has of others everything would have to be executed again.
        let learned = self.learn(block, self.config.rebuild_slice / 2);
        self.take_included(block.included.iter().map(|tx| tx.hash()));
        self.history.expire(now_ms);
        self.drop_aged(now_ms);
        self.draft.count_included(block.included.len());

        let settled = self.contents.order().settled_len();
        let included_max = INCLUDED_MAX.max(settled.saturating_mul(INCLUDED_FACTOR));
        let is_hit = self.is_hit(block.touched);
        let is_right = learned.all
            && (learned.has_ours || settled == 0 || !had_offers)
            && self.draft.included() <= included_max
            && !self.draft.wants_rebuild()
            && !is_hit;
        let follows = is_right && self.follow(block.touched)?;
        if !follows {
            self.rebuild().begin()?;
        }
        if follows {
            self.doubt_late_votes();
            self.doubt_stakes(block.touched);
            self.doubt_calls_of(&block.touched.agents);
            self.doubt_rivals_of(block.included);
        }
        for call in &block.touched.calls {
            self.restless.extend(self.contents.release(*call));
        }
        self.contests.next_block();
        self.follow_base_fee();
        if self.contents.market().is_some() {
            if is_hit || !block.included.is_empty() {
                self.contents.reopen();
            }
            self.contents.reopen_for(block.included, block.touched.credits.keys().copied());
            // Executed once more, nothing would be different.
            self.was_in_vain = block.included.is_empty() && (self.was_in_vain || !follows);
        }
        let age_max_ms = self.config.age_max_ms;
        let expired = self.eviction().drop_expired(age_max_ms, slice, now_ms);
        let left = slice.saturating_sub(learned.count);
        let left = expired.and_then(|()| self.eviction().drop_doomed(left, now_ms));
        let answer = left.and_then(|left| {
            if follows {
                self.rebuild().settle(left, now_ms).map(drop)
            } else {
                self.rebuild().settle_first(slice, now_ms)
            }
        });
        self.share_tenth();
        // What was not executed again is left for the next time.
        if let Err(fault) = answer {
            tracing::error!(%fault, "a pooled transaction could not be executed again");
        }
        Ok(())
    }

    /// Follows the base fee. It does not rise after a block of which half was left.
    fn follow_base_fee(&mut self) {
        let before = self.contents.market().map(Market::base_fee);
        self.contents.follow_base_fee(&self.draft);
        if before.is_some() && self.contents.market().map(Market::base_fee) <= before {
            self.contents.count_roomy_block();
        }
    }

    /// Executes what the block has and the draft has not, at most so many transactions.
    fn learn(&mut self, block: &Committed<'_>, most: usize) -> Learned {
        let mut learned = Learned { count: 0, all: true, has_ours: false };
        for tx in block.included {
            self.history.forget(tx.hash());
            if self.contents.is_settled(tx.hash()) {
                learned.has_ours = true;
                continue;
            }
            self.restless.insert(tx.from());
            if learned.all {
                learned.count = learned.count.saturating_add(1);
                learned.all = learned.count <= most && self.draft.admit(tx).is_ok();
            }
        }
        learned
    }

    /// Brings the draft to the new state with what is settled; false if that failed.
    fn follow(&mut self, touched: &Touched) -> Result<bool, PoolFault> {
        if self.contents.order().settled_len() == 0 {
            return self.draft.reset().map(|()| true);
        }
        match self.draft.advance(&touched.credits, &touched.bonds) {
            Ok(is_right) => Ok(is_right),
            Err(fault) => {
                tracing::error!(%fault, "the pool's draft could not follow a block");
                Ok(false)
            }
        }
    }

    /// Follows many blocks, which hold these transactions of the pool.
    pub(crate) fn chain_moved(&mut self, included: &[Hash], now_ms: u64) -> Result<(), PoolFault> {
        self.take_included(included.iter().copied());
        self.history.expire(now_ms);
        self.rebuild().begin()?;
        self.contests.next_block();
        self.contents.follow_base_fee(&self.draft);
        self.contents.reopen_all();
        self.contents.release_all();
        self.restless.extend(self.contents.senders().iter().map(|(_, sender)| sender.address));
        let most = self.config.rebuild_slice.max(1);
        let answer = self.rebuild().settle_first(most, now_ms);
        self.share_tenth();
        answer
    }

    /// Removes the transactions of blocks.
    fn take_included(&mut self, included: impl Iterator<Item = Hash>) {
        let history = &mut self.history;
        self.contents.take_included(included, |entry| history.included(entry));
    }

    /// Whether an executable transaction is about something that a sweep touched.
    fn is_hit(&self, touched: &Touched) -> bool {
        let subjects = self.contents.subjects();
        let Touched { runs, blobs, calls, agents: _, credits: _, bonds: _, validators } = touched;
        runs.iter().any(|id| subjects.has(Subject::Run(*id)))
            || blobs.iter().any(|id| subjects.has(Subject::Blob(id)))
            || calls.iter().any(|id| subjects.has(Subject::Call(*id)))
            || (*validators && subjects.has(Subject::Validators))
    }

    /// What no block takes any more because a height has come is executed again, and found out.
    fn doubt_late_votes(&mut self) {
        let votes = self.contents.subjects().of_validators().take(VOTES_MAX);
        let is_late = |hash: &Hash| {
            let entry = self.contents.entries().by_hash(*hash);
            entry.is_some_and(|entry| self.draft.is_late(&entry.tx))
        };
        let late: Vec<Hash> = votes.filter(is_late).take(self.draft.doubts_left()).collect();
        self.draft.doubt_all(late);
    }

    /// What counts on a bond of which the block has locked or burned a part is executed again, and found out:
    /// of that miner alone.
    fn doubt_stakes(&mut self, touched: &Touched) {
        let mut doubtful = Vec::new();
        for (miner, change) in &touched.bonds {
            let Some((_, sender)) = self.contents.senders().find(*miner) else { continue };
            let pending =
                sender.pending.iter().filter_map(|slot| self.contents.entries().get(*slot));
            let counting = pending.filter(|entry| counts_on_bond(entry.tx.body(), change));
            doubtful.extend(counting.map(|entry| entry.tx.hash()));
        }
        self.draft.doubt_all(doubtful);
    }

    /// Calls of agents that are retired are executed again, and found out.
    fn doubt_calls_of(&mut self, agents: &BTreeSet<Hash>) {
        let more = self.draft.doubts_left().saturating_add(1);
        let subjects = self.contents.subjects();
        let calls = agents.iter().flat_map(|agent| subjects.of_agent(*agent));
        let calls = calls.take(more).collect();
        self.draft.doubt_all(calls);
    }

    /// If the block claimed or cancelled a run and another claim of it is executable, all that is about
    /// the run is executed again in its order.
    fn doubt_rivals_of(&mut self, included: &[CheckedTx]) {
        let more = self.draft.doubts_left().saturating_add(1);
        let subjects = self.contents.subjects();
        let is_taken =
            |tx: &&CheckedTx| matches!(tx.body(), Body::AgentClaim(_) | Body::AgentCancel(_));
        let runs = included.iter().filter(is_taken).filter_map(|tx| tx.body().agent_run_id());
        let contested = runs.filter(|run| subjects.has_claim_of(*run));
        let rivals: Vec<Hash> = contested.flat_map(|run| subjects.of_run(run)).take(more).collect();
        self.draft.doubt_all(rivals);
    }

    /// Drops what has waited for its turn for too long: nobody will send what is before it.
    fn drop_aged(&mut self, now_ms: u64) {
        let mut age_max_ms = self.config.queued_age_max_ms;
        if self.contents.market().is_some() {
            age_max_ms = age_max_ms.min(self.config.age_max_ms);
        }
        if now_ms.abs_diff(self.aged_ms) < age_max_ms / AGE_LOOKS {
            return;
        }
        self.aged_ms = now_ms;
        let aged: Vec<(SenderId, u64)> = self
            .contents
            .entries()
            .iter()
            .map(|(_, entry)| entry)
            .filter(|entry| entry.place == EntryPlace::Queued)
            .filter(|entry| now_ms.saturating_sub(entry.queued_ms) >= age_max_ms)
            .map(|entry| (entry.sender, entry.tx.nonce()))
            .collect();
        for (id, nonce) in aged {
            let next = self.contents.senders().get(id).map_or(0, |sender| sender.next);
            let reason = Rejection::new(Code::NonceTooHigh, "nonce", nonce, next)
                .with("tx", nonce)
                .with("state", next)
                .with("queuedAgeMaxMs", age_max_ms);
            self.history.drop_queued(&mut self.contents, (id, nonce), reason, now_ms);
            self.contents.close_if_empty(id);
        }
    }
}

/// Whether a transaction of a miner can become invalid by what a block did to the miner's bond.
fn counts_on_bond(body: &Body, change: &BondChange) -> bool {
    let takes = matches!(body, Body::AgentClaim(_) | Body::MinerUnbond(_));
    let offers = matches!(body, Body::MinerOffer(offer) if offer.capacity > 0);
    takes && !change.locked.is_zero() || offers && !change.burned.is_zero()
}
