//! What peers offer, each asked by itself and none waited for longer than it may take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use p2p::ports::SnapshotHead;
use p2p::{Peer, PeerKey};
use store::snapshots::{FORMAT, OFFER_BYTES_MAX, Offer, OfferError, Verified};
use tokio::task::JoinSet;
use types::Hash;

use super::choose::{self, Choice, Content, Teller};
use super::fetch::{self, Source, fetch_whole};
use super::peers::Peers;
use crate::replay::ChainReplay;
use crate::supervisor::answer_of;

/// How long peers have to be found and to offer something.
const OFFERS_TIME_MAX: Duration = Duration::from_secs(45);
/// How long to look for further peers after the first has answered, when nobody offers anything and half
/// of the named peers have said so.
const NO_OFFER_TIME: Duration = Duration::from_secs(8);
/// How often is looked for peers that were not asked yet.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How long a peer is left in peace before it is asked again: whoever offers something goes on to newer
/// snapshots meanwhile, and peers that were met at different times have to agree.
const AGAIN_TIME: Duration = Duration::from_millis(500);
/// How long a peer may take to say what it offers.
const HEADS_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a peer may take for all that it is asked about its offers.
const OFFERS_OF_PEER_TIME_MAX: Duration = Duration::from_secs(30);
/// How many strangers are asked at once, and how many named peers beside them; each may send an offer
/// of 16 MiB. Who is next is left to chance, so that nobody gains by being there first.
const PEERS_ASKED_MAX: usize = 8;
/// How many offers of one peer are looked at. Two, because peers go on to a newer snapshot at different
/// moments.
const OFFERS_OF_PEER: usize = 2;

/// What a peer offers, followed from genesis. Only what says which it is, is kept: all offers together
/// might not fit into the memory.
#[derive(Clone, Copy, Debug)]
struct Told {
    teller: Teller<PeerKey>,
    content: Content,
    head: SnapshotHead,
}

/// What peers offer now.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// The best first.
    pub(super) choices: Vec<Choice<PeerKey>>,
    /// The height of the newest offer of a peer with a voice that passes over the trusted block.
    pub(super) above_trusted: Option<u64>,
    told: Vec<Told>,
}

impl Gathered {
    /// All who offer anything, and so have chunks. Nobody twice.
    pub(super) fn tellers(&self) -> BTreeSet<Teller<PeerKey>> {
        self.told.iter().map(|told| told.teller).collect()
    }
}

/// What came of asking one peer.
struct Answer {
    teller: Teller<PeerKey>,
    /// Whether it said what it offers.
    has_answered: bool,
    told: Vec<Told>,
    /// The height of its newest offer that passes over the trusted block.
    above_trusted: Option<u64>,
    lack: Option<Lack>,
}

/// Why an offer is none.
#[derive(Debug, thiserror::Error)]
enum Lack {
    #[error("the offer of height {height} did not arrive: {lack:?}")]
    Withheld { height: u64, lack: fetch::Lack },
    /// The peer does not offer it any more.
    #[error("the offer of height {height} was replaced by a newer one")]
    Gone { height: u64 },
    #[error("{0}")]
    Wrong(OfferError),
}

/// Where the gathering stands.
#[derive(Default)]
struct Round {
    /// When each peer was asked last, which lies ahead while it is being asked.
    asked: BTreeMap<PeerKey, Instant>,
    told: Vec<Told>,
    /// The height of the newest offer of a peer with a voice that passes over the trusted block.
    above_trusted: Option<u64>,
    /// When the first offer of a peer with a voice came.
    first: Option<Instant>,
    /// Who of those with a voice has said what it offers, and when the first of them did.
    answered: BTreeMap<PeerKey, Instant>,
}

/// Asks peers for what they offer.
pub(super) struct Offers<'a> {
    pub(super) peers: &'a Peers,
    pub(super) replay: &'a Arc<ChainReplay>,
}

impl Offers<'_> {
    /// What peers offer but for what is known to be a lie.
    pub(super) async fn gather(
        &self,
        lies: &BTreeSet<Content>,
        tries: &BTreeMap<Content, u32>,
    ) -> Gathered {
        let started = Instant::now();
        let (mut round, mut asks) = (Round::default(), JoinSet::new());
        loop {
            self.ask_more(&mut round, &mut asks);
            let step = tokio::time::timeout(LOOK_INTERVAL, asks.join_next());
            match step.await {
                Ok(Some(answer)) => {
                    if let Some(answer) = answer_of(answer) {
                        self.note(answer, lies, &mut round).await;
                    }
                }
                // Nobody is being asked: that is no reason to be busy.
                Ok(None) => tokio::time::sleep(LOOK_INTERVAL).await,
                Err(_elapsed) => {}
            }
            let told: Vec<_> = round.told.iter().map(|told| (told.teller, told.content)).collect();
            let choices = choose::order(&told, tries);
            let tellers: BTreeSet<_> = told.iter().map(|(teller, _)| *teller).collect();
            let speakers = tellers.iter().filter(|teller| teller.has_voice).count();
            let state = (speakers, round.waits_for_somebody());
            let is_decided = round
                .first
                .is_some_and(|first| choose::is_decided(&choices, state, first.elapsed()));
            let has_none = speakers == 0 && asks.is_empty();
            let is_hopeless = has_none && self.is_hopeless(&round, started);
            if is_decided || is_hopeless || started.elapsed() >= OFFERS_TIME_MAX {
                let Round { told, above_trusted, .. } = round;
                return Gathered { choices, above_trusted, told };
            }
        }
    }

    /// Whether nobody is left to be waited for, where nobody offers anything: half of the named peers have
    /// said so for a while, or all who are connected have failed. A peer that answers first is no reason
    /// to hear no other one.
    fn is_hopeless(&self, round: &Round, started: Instant) -> bool {
        let first = round.answered.values().min().map(Instant::elapsed);
        let is_heard = round.answered.len() >= self.peers.handle().named().div_ceil(2).max(1);
        if is_heard && first.is_some_and(|time| time >= NO_OFFER_TIME) {
            return true;
        }
        let peers = self.peers.handle().peers();
        let have_failed =
            !peers.is_empty() && peers.iter().all(|peer| self.peers.has_failed(&peer.key));
        have_failed && started.elapsed() >= NO_OFFER_TIME
    }

    /// Asks peers that were not asked yet, and the others again. Strangers take no named peer's turn.
    fn ask_more(&self, round: &mut Round, asks: &mut JoinSet<Answer>) {
        let all_speak = self.peers.handle().named() == 0;
        let (named, strange): (Vec<Peer>, Vec<Peer>) =
            self.peers.handle().peers().into_iter().partition(|peer| peer.is_named);
        for peers in [named, strange] {
            let under_way = peers.iter().filter(|peer| round.is_asking(&peer.key)).count();
            let mut due: Vec<Teller<PeerKey>> = peers
                .iter()
                .filter(|peer| !self.peers.has_failed(&peer.key))
                .map(|peer| Teller { peer: peer.key, has_voice: all_speak || peer.is_named })
                .filter(|teller| round.is_due(teller))
                .collect();
            shuffle(&mut due);
            due.sort_by_key(|teller| round.has_told(&teller.peer));
            for teller in due.into_iter().take(PEERS_ASKED_MAX.saturating_sub(under_way)) {
                // Nobody is asked twice at the same time.
                round.asked.insert(teller.peer, Instant::now() + OFFERS_OF_PEER_TIME_MAX);
                let source = self.peers.source(teller.peer);
                let known = round.told_by(&teller.peer).copied().collect();
                asks.spawn(ask((source, teller.has_voice), known, Arc::clone(self.replay)));
            }
        }
    }

    async fn note(&self, answer: Answer, lies: &BTreeSet<Content>, round: &mut Round) {
        let Answer { teller, has_answered, mut told, above_trusted, lack } = answer;
        let Teller { peer, has_voice } = teller;
        if has_voice {
            round.above_trusted = round.above_trusted.max(above_trusted);
        }
        round.asked.insert(peer, Instant::now());
        if has_answered && has_voice {
            round.answered.entry(peer).or_insert_with(Instant::now);
        }
        if let Some(lack) = lack {
            self.lacks(peer, lack).await;
        }
        told.retain(|told| !lies.contains(&told.content));
        if !told.is_empty() && has_voice && round.first.is_none() {
            round.first = Some(Instant::now());
        }
        if has_answered {
            round.told.retain(|earlier| earlier.teller.peer != peer);
        }
        round.told.extend(told);
    }

    async fn lacks(&self, peer: PeerKey, lack: Lack) {
        match lack {
            Lack::Withheld { .. } => {
                tracing::warn!(%peer, error = %lack, "a peer does not deliver what it offers");
                self.peers.fault([peer]);
            }
            Lack::Gone { .. } => {
                tracing::info!(%peer, error = %lack, "an offer is gone; asking for a newer one");
                self.peers.note_gone(peer);
            }
            Lack::Wrong(error) => {
                tracing::warn!(%peer, %error, "an offered snapshot is wrong");
                self.peers.handle().blame(peer, format!("an offered snapshot: {error}")).await;
                self.peers.give_up(peer);
            }
        }
    }

    /// The whole of an offer, from the first of those who make it that gives it again.
    pub(super) async fn whole(
        &self,
        gathered: &Gathered,
        choice: &Choice<PeerKey>,
    ) -> Option<Verified> {
        for Told { teller, content, head } in &gathered.told {
            if *content != choice.content {
                continue;
            }
            match verified(&self.peers.source(teller.peer), *head, Arc::clone(self.replay)).await {
                Ok(verified) => return Some(verified),
                Err(lack) => self.lacks(teller.peer, lack).await,
            }
        }
        None
    }

    /// The chunks of an offer did not come. Who offers it still has failed; who does not went on to a
    /// newer one.
    pub(super) async fn gave_up(&self, choice: &Choice<PeerKey>, gathered: &Gathered) {
        for Told { teller, content, head } in &gathered.told {
            if *content != choice.content {
                continue;
            }
            let source = self.peers.source(teller.peer);
            if is_gone(&source, head).await {
                self.peers.note_gone(teller.peer);
            } else {
                self.peers.fault([teller.peer]);
            }
        }
    }
}

impl Round {
    fn is_asking(&self, peer: &PeerKey) -> bool {
        self.asked.get(peer).is_some_and(|last| *last > Instant::now())
    }

    /// Whether a peer is to be asked now. A stranger that has told what it has is not asked again: it only
    /// gives chunks.
    fn is_due(&self, Teller { peer, has_voice }: &Teller<PeerKey>) -> bool {
        let last = self.asked.get(peer);
        let is_over = last.is_none_or(|last| last.elapsed() >= AGAIN_TIME);
        !self.is_asking(peer) && is_over && (*has_voice || !self.has_told(peer))
    }

    fn has_told(&self, peer: &PeerKey) -> bool {
        self.told_by(peer).next().is_some()
    }

    /// What a peer offers, as far as it is known.
    fn told_by(&self, peer: &PeerKey) -> impl Iterator<Item = &Told> {
        self.told.iter().filter(move |told| told.teller.peer == *peer)
    }

    /// Whether somebody is being asked who has told nothing yet.
    fn waits_for_somebody(&self) -> bool {
        let mut asking = self.asked.keys().filter(|peer| self.is_asking(peer));
        asking.any(|peer| !self.has_told(peer))
    }
}

/// Asks a peer what it offers, and follows those of its newest offers from genesis that are not known yet.
async fn ask(
    (source, has_voice): (Source, bool),
    known: Vec<Told>,
    replay: Arc<ChainReplay>,
) -> Answer {
    let teller = Teller { peer: source.peer, has_voice };
    let (told, above_trusted, lack) = (Vec::new(), None, None);
    let mut answer = Answer { teller, has_answered: false, told, above_trusted, lack };
    let work = ask_all(&source, &known, replay, &mut answer);
    if tokio::time::timeout(OFFERS_OF_PEER_TIME_MAX, work).await.is_err() {
        answer.lack = Some(Lack::Withheld { height: 0, lack: fetch::Lack::Slow });
    }
    answer
}

async fn ask_all(source: &Source, known: &[Told], replay: Arc<ChainReplay>, answer: &mut Answer) {
    let Source { handle, peer, .. } = source;
    let heads = handle.snapshots(*peer, FORMAT, HEADS_TIME_MAX).await;
    answer.has_answered = heads.is_ok();
    let (heads, above_trusted) =
        choose::up_to_trusted(heads.unwrap_or_default(), replay.trusted_height(), OFFERS_OF_PEER);
    answer.above_trusted = above_trusted;
    for head in heads {
        if let Some(told) = known.iter().find(|told| told.head == head) {
            answer.told.push(*told);
            continue;
        }
        match verified(source, head, Arc::clone(&replay)).await {
            Ok(verified) => {
                let content = Content {
                    height: verified.tip.height,
                    block: verified.tip.hash,
                    root: verified.tip.state_root,
                    manifest: verified.offer.manifest.hash(),
                };
                answer.told.push(Told { teller: answer.teller, content, head });
            }
            Err(lack) => {
                answer.lack = Some(lack);
                return;
            }
        }
    }
}

/// An offer, followed from genesis to its ranges.
async fn verified(
    source: &Source,
    head: SnapshotHead,
    replay: Arc<ChainReplay>,
) -> Result<Verified, Lack> {
    let SnapshotHead { height, hash, bytes } = head;
    let form = |what| Lack::Wrong(OfferError::Form { what });
    if bytes > OFFER_BYTES_MAX {
        return Err(form("the length of an offer"));
    }
    let encoded = match fetch_whole(source, hash, bytes).await {
        Ok(whole) => whole.bytes,
        Err(fetch::Lack::Absent) if is_gone(source, &head).await => {
            return Err(Lack::Gone { height });
        }
        Err(lack) => return Err(Lack::Withheld { height, lack }),
    };
    let found = Hash::digest(&encoded);
    if found != hash {
        return Err(Lack::Wrong(OfferError::Chunk { found, expected: hash }));
    }
    let work = move || Offer::decode(&encoded)?.verify(&replay.replay());
    let verified = answer_of(tokio::task::spawn_blocking(work).await);
    let lack = fetch::Lack::Absent;
    let verified = verified.ok_or(Lack::Withheld { height, lack })?.map_err(Lack::Wrong)?;
    if verified.tip.height == height { Ok(verified) } else { Err(form("the height of an offer")) }
}

/// Whether a peer says that it does not offer this any more.
async fn is_gone(source: &Source, head: &SnapshotHead) -> bool {
    let heads = source.handle.snapshots(source.peer, FORMAT, HEADS_TIME_MAX).await;
    heads.is_ok_and(|heads| !heads.contains(head))
}

/// Puts peers into an order that nobody can foresee.
fn shuffle(tellers: &mut [Teller<PeerKey>]) {
    let mut seed = [0; 32];
    if getrandom::fill(&mut seed).is_err() {
        // Their own order, then.
        return;
    }
    tellers.sort_by_cached_key(|Teller { peer, has_voice: _ }| {
        *Hash::digest_parts(&[&seed, peer.to_string().as_bytes()]).as_bytes()
    });
}
