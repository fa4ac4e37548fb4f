//! What this node missed: peers are asked for the hashes in their pools, and for those transactions
//! that this node does not know.
//!
//! A peer is asked for everything when it connects, and from time to time one peer after the other
//! for a few pages, each time going on where the last one ended; so gossip may lose messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use types::{Address, Hash};

use crate::command::Command;
use crate::ports::{Outcome, Pool};
use crate::recent::Recent;
use crate::serve::goes_on;
use crate::verdict::offence;
use crate::wire::{self, PACK_MAX, Question, WireError, Wish};
use crate::{Counters, Fault, SignedTx};

/// How often a peer is asked again.
pub(crate) const PULL_INTERVAL: Duration = Duration::from_secs(5);
/// Pulls that may wait. More peers than that do not connect at the same time.
pub(crate) const PULLS_MAX: usize = 64;
/// Peers that are pulled from at the same time.
const PARALLEL_MAX: usize = 4;
/// Pages of a pull from a peer that has just connected: about 260,000 hashes.
const PAGES_FIRST: usize = 128;
/// Pages of a later pull.
const PAGES_LATER: usize = 4;

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
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) counters: Counters,
}

/// The task that pulls.
pub(crate) struct Puller {
    pub(crate) wanted: mpsc::Receiver<(PeerId, Extent)>,
    pub(crate) tools: Tools,
}

/// Why a pull ended before its end.
enum Stopped {
    /// The peer did not answer, or went away.
    Unanswered,
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

impl Puller {
    /// Pulls until asked to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), Fault> {
        stop.run_until_cancelled(self.work()).await;
        Ok(())
    }

    async fn work(&mut self) {
        let mut running = JoinSet::new();
        let mut position = None;
        loop {
            tokio::select! {
                wanted = self.wanted.recv(), if running.len() < PARALLEL_MAX => {
                    let Some((peer, extent)) = wanted else { return };
                    let (after, pages) = match extent {
                        Extent::Whole => (None, PAGES_FIRST),
                        Extent::Part => (position, PAGES_LATER),
                    };
                    let tools = self.tools.clone();
                    running.spawn(async move { (extent, tools.pull(peer, after, pages).await) });
                }
                Some(ended) = running.join_next() => {
                    if let Ok((Extent::Part, end)) = ended {
                        position = end;
                    }
                }
            }
        }
    }
}

impl Tools {
    /// Pulls at most `pages` pages after `after`; answers where to go on, none for the beginning.
    async fn pull(self, peer: PeerId, after: Option<Address>, pages: usize) -> Option<Address> {
        match self.pull_pages(peer, after, pages).await {
            Ok(position) => position,
            Err(Stopped::Unanswered) => None,
            Err(Stopped::Offence(what)) => {
                drop(self.commands.send(Command::Offence { peer, what }).await);
                None
            }
        }
    }

    async fn pull_pages(
        &self,
        peer: PeerId,
        mut after: Option<Address>,
        pages: usize,
    ) -> Result<Option<Address>, Stopped> {
        for _ in 0..pages {
            let page = self.ask(peer, Wish::List { after }).await?;
            // The stream of a question that is not answered is closed, which looks like this.
            if page.is_empty() {
                return Err(Stopped::Unanswered);
            }
            let (height, listing) =
                wire::read_listing(&page).map_err(|error| unreadable("a list", error))?;
            if !goes_on(&listing, after) {
                return Err(Stopped::Offence("a list that goes backwards".to_owned()));
            }
            drop(self.commands.send(Command::Height { peer, height }).await);
            let next = listing.next;
            let unknown = self.pool.unknown(listing.hashes).await;
            for part in unknown.chunks(PACK_MAX) {
                self.fetch(peer, part.to_vec()).await?;
            }
            match next {
                None => return Ok(None),
                Some(next) => after = Some(next),
            }
        }
        Ok(after)
    }

    /// Fetches the transactions and offers them to the pool. An answer may stop early, and what is
    /// no longer pooled is left out; so it is asked again as long as something comes.
    async fn fetch(&self, peer: PeerId, mut hashes: Vec<Hash>) -> Result<(), Stopped> {
        while !hashes.is_empty() {
            let answer = self.ask(peer, Wish::Fetch { hashes: hashes.clone() }).await?;
            if answer.is_empty() {
                return Ok(());
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
            self.recent.remember(txs.iter().map(SignedTx::hash), Instant::now());
            let outcomes = self.pool.submit(txs).await;
            if let Some(code) = offence(&outcomes) {
                return Err(Stopped::Offence(format!("an invalid transaction: {code}")));
            }
            let taken = outcomes.iter().filter(|outcome| **outcome == Outcome::New).count();
            self.counters.pulled.inc_by(u64::try_from(taken).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    async fn ask(&self, peer: PeerId, wish: Wish) -> Result<Vec<u8>, Stopped> {
        let question = Question { height: self.pool.height(), wish }.write();
        let (answer, answered) = oneshot::channel();
        let command = Command::Ask { peer, question, answer };
        self.commands.send(command).await.map_err(|_closed| Stopped::Unanswered)?;
        answered.await.ok().flatten().ok_or(Stopped::Unanswered)
    }
}
