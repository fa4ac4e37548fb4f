//! The pool without its lock: its parts, and the operations that need no file of their own.

use std::collections::BTreeSet;

use types::{Address, CheckedTx, Rejection};

use super::candidates::candidates;
use super::contents::Contents;
use super::draft::Draft;
use super::evict::Eviction;
use super::history::History;
use super::limits::{Capacity, Limits};
use super::promotion::Promotion;
use super::query::Query;
use super::rebuild::{Rebuild, has_unsettled};
use super::rivals::Contests;
use crate::error::PoolFault;
use crate::journal::Written;
use crate::market::Offered;
use crate::order::BlockLimits;
use crate::ports::PendingLedger;
use crate::{Config, PoolEvent};

/// So many places in the tenth are given away at a time, while others wait for the pool.
const SHARED_MAX: usize = 256;

/// Everything behind the lock. Invariants between the parts:
///
/// 1. The draft is the committed state with the settled transactions of the contents executed in their
///    order. What is unsettled there was executable and is to be executed again (`rebuild`).
/// 2. A sender's `next` is the draft's nonce of its account and, if some of its transactions are
///    unsettled, so much more.
pub(crate) struct Core {
    pub(super) config: Config,
    pub(super) limits: Limits,
    pub(super) contents: Contents,
    pub(super) draft: Draft,
    pub(super) history: History,
    /// What has to go because it keeps others out that a block could take (fork v7).
    pub(super) contests: Contests,
    /// Whose queue may have something executable since a block or a rebuild.
    pub(super) restless: BTreeSet<Address>,
    /// Whether the draft was built anew for an empty block, and no other block came since (fork v7).
    pub(super) was_in_vain: bool,
    /// When queued transactions were last looked at for their age, in milliseconds since 1970.
    pub(super) aged_ms: u64,
}

impl Core {
    pub(crate) fn new(
        config: Config,
        max_clock_skew_ms: u64,
        ledger: Box<dyn PendingLedger>,
    ) -> Self {
        let draft = Draft::new(ledger);
        Self {
            limits: Limits::new(&config, max_clock_skew_ms),
            contents: Contents::new(&config, draft.base_fee()),
            history: History::new(&config),
            config,
            draft,
            contests: Contests::default(),
            restless: BTreeSet::new(),
            was_in_vain: false,
            aged_ms: 0,
        }
    }

    /// What the pool answers.
    pub(crate) const fn query(&self) -> Query<'_> {
        Query { contents: &self.contents, draft: &self.draft, history: &self.history }
    }

    pub(super) const fn capacity(&self) -> Capacity<'_> {
        Capacity { limits: &self.limits, contents: &self.contents, draft: &self.draft }
    }

    pub(super) const fn eviction(&mut self) -> Eviction<'_> {
        let Self { limits, contents, draft, history, contests, .. } = self;
        Eviction { limits, contents, draft, history, contests }
    }

    pub(super) const fn promotion(&mut self) -> Promotion<'_> {
        let Self { contents, draft, history, .. } = self;
        Promotion { contents, draft, history }
    }

    pub(super) const fn rebuild(&mut self) -> Rebuild<'_> {
        let Self { config, contents, draft, history, restless, .. } = self;
        Rebuild { contents, draft, history, restless, block_share: config.block_share }
    }

    /// What the journal has noted.
    pub(crate) const fn written(&self) -> &Written {
        self.history.written()
    }

    /// What the journal notes, and of what.
    pub(crate) const fn journal(&mut self) -> (&mut Contents, &mut Written) {
        (&mut self.contents, self.history.written_mut())
    }

    /// What happened since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<PoolEvent> {
        self.history.take_events()
    }

    /// How many transactions are executed again at a time, while others wait for the pool: with a block as
    /// in between, so that consensus waits no longer than anybody else.
    pub(super) fn slice(&self) -> usize {
        (self.config.rebuild_slice / 4).max(1)
    }

    /// Whether there is something for [`Core::settle`] to do.
    pub(crate) fn has_unsettled(&self) -> bool {
        self.contests.has_doomed() || has_unsettled(&self.contents, &self.draft, &self.restless)
    }

    /// Executes a slice of what is to be executed again. Answers whether there is more.
    pub(crate) fn settle(&mut self, now_ms: u64) -> Result<bool, PoolFault> {
        let most = self.slice();
        let left = self.eviction().drop_doomed(most, now_ms)?;
        self.rebuild().settle(left, now_ms)?;
        Ok(self.has_unsettled())
    }

    /// The transactions for a block, in the order in which they are to be executed, without what was
    /// `offered` already.
    pub(crate) fn candidates(&self, limits: BlockLimits, offered: &mut Offered) -> Vec<CheckedTx> {
        candidates(&self.contents, limits, self.config.block_share, offered)
    }

    /// A block was built of what was offered. What it could not take needs something that is not in the
    /// block, so it is not offered again before that can have changed.
    pub(crate) fn built(&mut self, offered: &Offered) {
        for hash in offered.refused() {
            if self.contents.close(hash) {
                self.draft.doubt_if_evicted(hash);
            }
        }
    }

    /// Gives places in the tenth that have become free, and shares in it, to those who could have more.
    pub(super) fn share_tenth(&mut self) {
        let room = self.capacity().room_beside_tenth();
        self.contents.share_tenth(room, SHARED_MAX);
    }

    /// Drops everything for `reason`.
    pub(crate) fn clear(&mut self, reason: &Rejection, now_ms: u64) -> Result<usize, PoolFault> {
        let history = &mut self.history;
        let bury = |entry| history.bury(entry, reason.clone(), now_ms);
        let count = self.contents.take_all(&self.draft, bury);
        self.restless.clear();
        self.contests = Contests::default();
        self.draft.reset()?;
        self.contents.follow_base_fee(&self.draft);
        Ok(count)
    }
}
