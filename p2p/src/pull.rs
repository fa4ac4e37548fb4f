//! What this node missed: peers are asked for the hashes in their pools, and for those transactions
//! that this node does not know.
//!
//! A peer is asked for everything when it connects, and from time to time one peer after the other
//! for a few pages, each time going on where the last one ended; so gossip may lose messages.
//!
//! A pull has to come forward: who answers ever so little ever so late, or lists what it does not
//! give, is left for a while. Peers that an operator named are pulled from beside all others, so that
//! they never wait for these.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use types::{Address, Hash};

use crate::command::Command;
use crate::credit::Worth;
use crate::ports::{Outcome, Pool};
use crate::recent::Recent;
use crate::serve::goes_on;
use crate::verdict::offence;
use crate::wire::{self, ANSWER_BYTES_WANTED, PACK_MAX, Question, WireError, Wish};
use crate::{Counters, NetworkFault, SignedTx};

/// How often a peer is asked again.
pub(crate) const PULL_INTERVAL: Duration = Duration::from_secs(5);
/// Pulls that may wait, of named peers and of others. More peers than that do not connect at the same
/// time.
pub(crate) const PULLS_MAX: usize = 64;
/// Named peers that are pulled from at the same time.
const PARALLEL_NAMED: usize = 4;
/// Others that are pulled from at the same time, beside the former.
const PARALLEL_OTHERS: usize = 8;
/// Pages of a pull from a peer that has just connected: about 260,000 hashes.
const PAGES_FIRST: usize = 128;
/// Pages of a later pull.
const PAGES_LATER: usize = 4;
/// How long a peer may keep this node waiting in one pull, beyond the time that its bytes take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a pull lasts at most. Whoever lists at the least rate would else hold a place for thirteen
/// minutes. What a pool has left after it comes with later pulls, which go on where the last one was.
const PULL_TIME_MAX: Duration = Duration::from_secs(60);
/// A pull ends when so many transactions were listed and not given, and more than were given. An honest
/// peer lacks those that a block took since it listed them.
const WITHHELD_MAX: usize = 4_096;
/// The least rate, in bytes per second: a line that is slower has no room for a share of the
/// transactions of a busy chain either.
const RATE_MIN: usize = 32 * 1024;
/// How long a peer that was too slow is left; doubled with each further time.
const REST: Duration = Duration::from_secs(30);
const REST_MAX: Duration = Duration::from_secs(960);
/// Slow peers that are remembered. New names cost nothing, so more would not help.
const SLOW_MAX: usize = 1_024;
/// A pull ends when so many transactions were refused, and more than were new.
const REFUSED_MAX: u32 = 1_024;

/// How much to pull.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// Everything, from the beginning.
    Whole,
    /// A few pages, from where the last pull ended.
    Part,
}

/// What all pulls share.
#[derive(Clone)]
pub(crate) struct Tools {
    pub(crate) pool: Arc<dyn Pool>,
    pub(crate) recent: Arc<Recent>,
    /// What the pool refused lately is not fetched again for a while.
    pub(crate) refused: Arc<Recent>,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) counters: Counters,
}

/// The task that pulls.
pub(crate) struct Puller {
    /// From peers that an operator named.
    pub(crate) named: mpsc::Receiver<(PeerId, Extent)>,
    /// From others.
    pub(crate) others: mpsc::Receiver<(PeerId, Extent)>,
    pub(crate) tools: Tools,
}

/// Why a pull ended before its end.
enum Stopped {
    /// The peer did not answer, or went away.
    Unanswered,
    /// The peer kept this node waiting, or did not give what it listed.
    Slow,
    /// The peer broke a rule.
    Offence(String),
}

/// An answer that is no answer, or only the beginning of one.
fn unreadable(what: &str, error: WireError) -> Stopped {
    if error.is_cut_off() {
        return Stopped::Unanswered;
    }
    Stopped::Offence(format!("{what}: {error}"))
}

/// How a pull ended.
struct Ended {
    peer: PeerId,
    extent: Extent,
    /// Where to go on; none for the beginning.
    position: Option<Address>,
    was_slow: bool,
}

/// Peers that were too slow.
#[derive(Default)]
struct Slow(BTreeMap<PeerId, (Instant, u32)>);

impl Slow {
    fn rests(&self, peer: &PeerId, now: Instant) -> bool {
        self.0.get(peer).is_some_and(|(until, _)| now < *until)
    }

    fn note(&mut self, peer: PeerId, was_slow: bool, now: Instant) {
        if !was_slow {
            self.0.remove(&peer);
            return;
        }
        if self.0.len() >= SLOW_MAX && !self.0.contains_key(&peer) {
            let soonest = self.0.iter().min_by_key(|(_, (until, _))| *until);
            if let Some(soonest) = soonest.map(|(peer, _)| *peer) {
                self.0.remove(&soonest);
            }
        }
        let times = self.0.get(&peer).map_or(0, |(_, times)| *times);
        let rest = REST.saturating_mul(1 << times.min(10)).min(REST_MAX);
        self.0.insert(peer, (now + rest, times.saturating_add(1)));
    }
}

impl Puller {
    /// Pulls until asked to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), NetworkFault> {
        stop.run_until_cancelled(self.work()).await;
        Ok(())
    }

    async fn work(&mut self) {
        let (mut named, mut others) = (JoinSet::new(), JoinSet::new());
        let (mut position, mut slow) = (None, Slow::default());
        loop {
            let ended = tokio::select! {
                wanted = self.named.recv(), if named.len() < PARALLEL_NAMED => {
                    let Some(wanted) = wanted else { return };
                    self.begin(&mut named, wanted, position, &slow);
                    continue;
                }
                wanted = self.others.recv(), if others.len() < PARALLEL_OTHERS => {
                    let Some(wanted) = wanted else { return };
                    self.begin(&mut others, wanted, position, &slow);
                    continue;
                }
                Some(ended) = named.join_next() => ended,
                Some(ended) = others.join_next() => ended,
            };
            // A pull has no way to panic; if it did, the next one begins at the beginning.
            let Ok(Ended { peer, extent, position: end, was_slow }) = ended else { continue };
            slow.note(peer, was_slow, Instant::now());
            if extent == Extent::Part {
                position = end;
            }
        }
    }

    fn begin(
        &self,
        running: &mut JoinSet<Ended>,
        (peer, extent): (PeerId, Extent),
        position: Option<Address>,
        slow: &Slow,
    ) {
        let now = Instant::now();
        self.tools.refused.age(now);
        if slow.rests(&peer, now) {
            return;
        }
        let (after, pages) = match extent {
            Extent::Whole => (None, PAGES_FIRST),
            Extent::Part => (position, PAGES_LATER),
        };
        let pull = Pull {
            tools: self.tools.clone(),
            peer,
            patience: PATIENCE,
            time_max: PULL_TIME_MAX,
            total: Worth::default(),
            tally: Tally::default(),
        };
        running.spawn(pull.run(extent, after, pages));
    }
}

/// One pull from one peer.
struct Pull {
    tools: Tools,
    peer: PeerId,
    /// How long the peer may keep this node waiting from now on.
    patience: Duration,
    /// How long it may take in all.
    time_max: Duration,
    /// What came.
    total: Worth,
    tally: Tally,
}

/// What became of the transactions that a peer listed and that this node did not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Tally {
    given: usize,
    withheld: usize,
}

impl Tally {
    /// Whether a peer lists what it does not give.
    const fn is_vain(self) -> bool {
        self.withheld > WITHHELD_MAX && self.withheld > self.given
    }
}

impl Pull {
    /// Pulls at most `pages` pages after `after`.
    async fn run(mut self, extent: Extent, after: Option<Address>, pages: usize) -> Ended {
        let end = tokio::time::timeout(self.time_max, self.pages(after, pages)).await;
        let end = end.unwrap_or(Err(Stopped::Slow));
        let was_slow = matches!(end, Err(Stopped::Slow));
        let peer = self.peer;
        let position = match end {
            Ok(position) => position,
            Err(Stopped::Unanswered | Stopped::Slow) => None,
            Err(Stopped::Offence(what)) => {
                drop(self.tools.commands.send(Command::Offence { peer, what }).await);
                None
            }
        };
        if was_slow {
            tracing::debug!(%peer, "a peer answers too slowly, or in vain, to be pulled from");
        }
        Ended { peer, extent, position, was_slow }
    }

    async fn pages(
        &mut self,
        mut after: Option<Address>,
        pages: usize,
    ) -> Result<Option<Address>, Stopped> {
        for _ in 0..pages {
            let page = self.ask(Wish::List { after }).await?;
            // The stream of a question that is not answered is closed, which looks like this.
            if page.is_empty() {
                return Err(Stopped::Unanswered);
            }
            let (height, mut listing) =
                wire::read_listing(&page).map_err(|error| unreadable("a list", error))?;
            if !goes_on(&listing, after) {
                return Err(Stopped::Offence("a list that goes backwards".to_owned()));
            }
            let told = Command::Height { peer: self.peer, height };
            drop(self.tools.commands.send(told).await);
            let next = listing.next;
            listing.hashes.retain(|hash| !self.tools.refused.has(hash));
            let unknown = self.tools.pool.unknown(listing.hashes).await;
            for part in unknown.chunks(PACK_MAX) {
                self.fetch(part.to_vec()).await?;
            }
            match next {
                None => return Ok(None),
                Some(next) => after = Some(next),
            }
        }
        Ok(after)
    }

    /// Fetches the transactions and offers them to the pool. An answer ends early when it is full, and
    /// then the rest is asked for; what is no longer pooled is left out.
    async fn fetch(&mut self, mut hashes: Vec<Hash>) -> Result<(), Stopped> {
        while !hashes.is_empty() {
            let answer = self.ask(Wish::Fetch { hashes: hashes.clone() }).await?;
            if answer.is_empty() {
                return self.lacks(hashes.len());
            }
            let txs = wire::read_pack(&answer, PACK_MAX)
                .map_err(|error| unreadable("transactions", error))?;
            let before = hashes.len();
            for tx in &txs {
                hashes.retain(|hash| *hash != tx.hash());
            }
            if hashes.len().saturating_add(txs.len()) != before {
                return Err(Stopped::Offence("transactions that nobody asked for".to_owned()));
            }
            self.tally.given = self.tally.given.saturating_add(txs.len());
            self.offer(txs).await?;
            if answer.len() < ANSWER_BYTES_WANTED {
                return self.lacks(hashes.len());
            }
        }
        Ok(())
    }

    /// So many transactions that the peer listed did not come.
    fn lacks(&mut self, count: usize) -> Result<(), Stopped> {
        self.tally.withheld = self.tally.withheld.saturating_add(count);
        if self.tally.is_vain() { Err(Stopped::Slow) } else { Ok(()) }
    }

    async fn offer(&mut self, txs: Vec<SignedTx>) -> Result<(), Stopped> {
        let Tools { pool, recent, refused, commands, counters } = &self.tools;
        let (now, hashes): (_, Vec<Hash>) =
            (Instant::now(), txs.iter().map(SignedTx::hash).collect());
        recent.remember(hashes.iter().copied(), now);
        let outcomes = pool.submit(txs).await;
        if let Some(code) = offence(&outcomes) {
            return Err(Stopped::Offence(format!("an invalid transaction: {code}")));
        }
        let is_refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused(_));
        let lost = hashes.into_iter().zip(&outcomes).filter(|(_, outcome)| is_refused(outcome));
        refused.remember(lost.map(|(hash, _)| hash), now);
        let worth = Worth::of(&outcomes);
        counters.pulled.inc_by(u64::from(worth.new));
        drop(commands.send(Command::Settle { peer: self.peer, worth }).await);
        self.total.new = self.total.new.saturating_add(worth.new);
        self.total.refused = self.total.refused.saturating_add(worth.refused);
        if self.total.refused > REFUSED_MAX.max(self.total.new) {
            return Err(Stopped::Unanswered);
        }
        Ok(())
    }

    /// Asks, and counts how long the answer takes for its bytes.
    async fn ask(&mut self, wish: Wish) -> Result<Vec<u8>, Stopped> {
        let question = Question { height: self.tools.pool.height(), wish }.write();
        let (answer, answered) = oneshot::channel();
        let command = Command::Ask { peer: self.peer, question, answer };
        let asked = Instant::now();
        self.tools.commands.send(command).await.map_err(|_closed| Stopped::Unanswered)?;
        let answer = tokio::time::timeout(self.patience, answered).await;
        let Ok(answer) = answer else { return Err(Stopped::Slow) };
        let answer = answer.ok().flatten().ok_or(Stopped::Unanswered)?;
        self.patience = patience_after(self.patience, asked.elapsed(), answer.len());
        Ok(answer)
    }
}

/// What is left of the patience after an answer of so many bytes that took so long.
fn patience_after(patience: Duration, taken: Duration, bytes: usize) -> Duration {
    let ms = bytes.saturating_mul(1_000) / RATE_MIN;
    let earned = Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX));
    patience.saturating_sub(taken).saturating_add(earned).min(PATIENCE)
}

#[cfg(test)]
mod tests;
