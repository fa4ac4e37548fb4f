//! Peers that lie about snapshots, or do not give what they offer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use p2p::ports::{ChainSource, EncodedBlock, Nothing, ReadError, SnapshotHead, Status};
use parking_lot::Mutex;
use serde_json::json;
use store::snapshots::{Extra, FORMAT, Offer};
use testkit::net::{Member, Net, Network};
use testkit::node::wait_until;
use testkit::process::Signal;
use types::Hash;

use super::{EVERY, FETCH, INTERVAL, folders, story};
use crate::fake_peer::FakePeer;
use crate::support::{chain, earliest, logs};

const FOLLOWER: usize = 1;
/// An honest node beside the validator: two named peers have to have the block of a snapshot.
const SECOND: usize = 2;
const HONEST: [usize; 2] = [0, SECOND];
/// How soon a node that fetches a snapshot ends when it is asked to. A question to a peer that does
/// not answer lasts longer.
const END_TIME_MAX: Duration = Duration::from_secs(8);

/// What a peer does wrong with a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    /// The last byte of every chunk is another.
    Chunk,
    /// The first subtree is not that of the certified root.
    Root,
    /// The last byte of the certificate is another, so nobody signed it.
    Certificate,
    /// Chunks never come.
    Silence,
    /// Chunks come a thousand bytes at a time.
    Crumbs,
    /// The state is said to be of a later height, and the first range to be another. The number makes
    /// each of these lies another one.
    Height(u64),
    /// There is an extra more, which nobody has. Everything that a root covers is right.
    Extra,
    /// Every chunk is said to have other numbers of rows and bytes.
    Numbers,
    /// It gives what it offers.
    Nothing,
}

impl Lie {
    /// What the node that it is told to logs.
    const fn reason(self) -> &'static str {
        match self {
            Self::Chunk => "a chunk of a snapshot: a chunk has hash",
            Self::Root => "the ranges lead to root",
            Self::Certificate => "the certificate of block",
            Self::Silence => "lack=Slow",
            Self::Crumbs => "a chunk of a snapshot: ",
            Self::Height(_) => "an offered snapshot: ",
            Self::Extra | Self::Numbers | Self::Nothing => "found a proved snapshot",
        }
    }
}

/// A snapshot as a peer gives it: what it is told of, and its offer and chunks by their hashes.
#[derive(Clone)]
struct Content {
    head: SnapshotHead,
    parts: BTreeMap<Hash, Vec<u8>>,
}

/// All of the newest snapshot of an honest node.
fn learn(honest: &Member) -> anyhow::Result<Content> {
    let learner = FakePeer::start(honest, Arc::new(Nothing))?;
    let peer = learner.meet(honest)?;
    let head = learner.snapshot(peer)?;
    let encoded = learner.whole(peer, head.hash, head.bytes)?;
    let manifest = Offer::decode(&encoded)?.manifest;
    let chunks = manifest.parts.iter().filter(|part| part.leaves > 0);
    let chunks = chunks.map(|part| (part.hash, part.bytes));
    let extras = manifest.extras.iter().map(|extra| (extra.hash, extra.bytes));
    let mut parts = BTreeMap::from([(head.hash, encoded)]);
    for (hash, bytes) in chunks.chain(extras) {
        parts.insert(hash, learner.whole(peer, hash, bytes)?);
    }
    Ok(Content { head, parts })
}

/// The chain of a liar: nothing but a snapshot.
struct Forger {
    lie: Lie,
    content: Content,
    /// Nothing ever comes through; it closes when the liar goes.
    gate: Mutex<Receiver<()>>,
}

impl Forger {
    fn new(lie: Lie, mut content: Content, closed: Receiver<()>) -> anyhow::Result<Self> {
        let encoded = content.parts.get(&content.head.hash).context("an offer")?;
        let mut offer = Offer::decode(encoded)?;
        match lie {
            Lie::Root => offer.manifest.parts[0].hash = Hash::digest(b"another state"),
            Lie::Certificate => {
                *offer.certificate.last_mut().context("a certificate")? ^= 1;
            }
            Lie::Height(number) => {
                offer.manifest.parts[0].hash = Hash::digest(&number.to_be_bytes());
                content.head.height += INTERVAL * (1 + number);
            }
            Lie::Extra => {
                let hash = Hash::digest(b"an extra that nobody has");
                offer.manifest.extras.push(Extra { hash, bytes: 1_000 });
            }
            Lie::Numbers => {
                for part in offer.manifest.parts.iter_mut().filter(|part| part.leaves > 0) {
                    (part.leaves, part.bytes) = (part.leaves + 1, part.bytes * 2 + 9);
                }
                for extra in &mut offer.manifest.extras {
                    extra.bytes *= 2;
                }
            }
            Lie::Chunk | Lie::Silence | Lie::Crumbs | Lie::Nothing => {}
        }
        let encoded = offer.encode();
        content.head.hash = Hash::digest(&encoded);
        content.head.bytes = u64::try_from(encoded.len())?;
        content.parts.insert(content.head.hash, encoded);
        Ok(Self { lie, content, gate: Mutex::new(closed) })
    }
}

impl ChainSource for Forger {
    fn status(&self) -> Status {
        let height = self.content.head.height;
        Status { earliest: height + 1, tip: height + 1 }
    }

    fn blocks(&self, _: u64, _: u32, _: usize) -> Result<Vec<EncodedBlock>, ReadError> {
        Ok(Vec::new())
    }

    fn snapshots(&self, format: u32) -> Vec<SnapshotHead> {
        if format == FORMAT { vec![self.content.head] } else { Vec::new() }
    }

    fn piece(&self, hash: &Hash, offset: u64, bytes_max: usize) -> Result<Vec<u8>, ReadError> {
        let Some(whole) = self.content.parts.get(hash) else { return Ok(Vec::new()) };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut piece: Vec<u8> = whole.iter().skip(offset).take(bytes_max).copied().collect();
        if *hash == self.content.head.hash {
            return Ok(piece);
        }
        match self.lie {
            Lie::Chunk => *piece.last_mut().expect("it asks for what there is") ^= 1,
            Lie::Silence => {
                let _closed = self.gate.lock().recv_timeout(Duration::from_secs(60));
            }
            Lie::Crumbs => piece.truncate(1_000),
            // True ones would be taken: they are named by what they contain.
            Lie::Root | Lie::Certificate | Lie::Height(_) => piece.clear(),
            Lie::Extra | Lie::Numbers | Lie::Nothing => {}
        }
        Ok(piece)
    }
}

/// A liar; the end of its gate is dropped before the peer, which would wait for who waits for it.
type Liar = (Sender<()>, FakePeer);

fn liar(honest: &Member, content: &Content, lie: Lie) -> anyhow::Result<Liar> {
    let (gate, closed) = channel();
    let chain = Arc::new(Forger::new(lie, content.clone(), closed)?);
    Ok((gate, FakePeer::start(honest, chain)?))
}

/// A validator and another node, both with snapshots of a chain on which something has happened, and
/// a follower that wants one and does not run.
fn net() -> anyhow::Result<Net> {
    let mut net = Net::make_as(&chain(1, 2, &["minBlockIntervalMs=50", "heartbeatMs=200"]))?;
    net.members[FOLLOWER].configure(FETCH, "true")?;
    // It must not wait for the follower, which does not run.
    let [(name, value)] = peers(&[net.members[0].p2p_address(Network::Gossip)]);
    net.members[SECOND].environment.push((name.to_owned(), value));
    for honest in HONEST {
        net.members[honest].configure(EVERY, &INTERVAL.to_string())?;
        net.members[honest].start()?;
    }
    story(&net.members[0])?;
    let height = net.members[0].height()?.next_multiple_of(INTERVAL);
    for honest in HONEST {
        wait_until("a snapshot", || {
            let shelf = net.members[honest].home().join("data/snapshots");
            let is_offered = |at: &u64| shelf.join(format!("{at}/offer")).exists();
            let mut made = folders(&shelf)?.into_iter().filter(|at| *at >= height);
            Ok(made.any(|at| is_offered(&at)))
        })?;
    }
    Ok(net)
}

/// Liars beside the honest nodes, and where all of them are reached, the liars first.
fn liars(
    net: &Net,
    content: &Content,
    lies: impl IntoIterator<Item = Lie>,
) -> anyhow::Result<(Vec<Liar>, Vec<String>)> {
    let liars = lies.into_iter().map(|lie| liar(&net.members[0], content, lie));
    let liars: Vec<Liar> = liars.collect::<anyhow::Result<_>>()?;
    let mut addresses: Vec<String> = liars.iter().map(|(_, peer)| peer.address()).collect();
    addresses.extend(HONEST.map(|honest| net.members[honest].p2p_address(Network::Gossip)));
    Ok((liars, addresses))
}

/// The follower did not begin with genesis, has the chain of the others, and verifies its database.
fn began_with_a_snapshot(net: &mut Net) -> anyhow::Result<()> {
    let earliest = earliest(&net.members[FOLLOWER])?;
    assert!(earliest > INTERVAL, "it began with genesis: {}", net.members[FOLLOWER].logged()?);
    net.same_block(net.members[0].height()? + 2)?;
    net.members[FOLLOWER].stop()?;
    let verified = net.members[FOLLOWER].db("verify")?;
    assert!(verified.contains(&format!("its first block is {earliest}")), "{verified}");
    Ok(())
}

/// Whether a node has logged that it keeps a peer out.
fn keeps_out(log: &str, peer: &str) -> bool {
    log.lines().any(|line| line.contains("keeping a peer out") && line.contains(peer))
}

/// The setting that a node knows no others than these.
fn peers(addresses: &[String]) -> [(&'static str, String); 1] {
    [("OMBRA__P2P__GOSSIP__PEERS", json!(addresses).to_string())]
}

/// Has the second node offer no snapshots. It has all blocks.
fn offers_none(second: &mut Member) -> anyhow::Result<()> {
    second.stop()?;
    second.configure(EVERY, "0")?;
    std::fs::remove_dir_all(second.home().join("data/snapshots"))?;
    second.start()
}

#[test]
fn strangers_that_agree_do_not_make_a_node_begin_with_what_no_named_peer_offers()
-> anyhow::Result<()> {
    let mut net = net()?;
    let content = learn(&net.members[0])?;
    offers_none(&mut net.members[SECOND])?;
    let (strangers, _) = liars(&net, &content, [Lie::Nothing, Lie::Nothing])?;
    let named = [net.members[SECOND].p2p_address(Network::Gossip)];
    net.members[FOLLOWER].launch(&peers(&named))?;
    for (_, stranger) in &strangers {
        stranger.dial(&net.members[FOLLOWER].p2p_address(Network::Gossip))?;
    }
    net.members[FOLLOWER].answers()?;
    let log = net.members[FOLLOWER].logged()?;
    for (_, stranger) in &strangers {
        assert!(log.contains(&stranger.peer_id()), "a stranger was not there: {log}");
    }
    assert_eq!(1, earliest(&net.members[FOLLOWER])?, "{log}");
    assert!(log.contains("no peer offers a snapshot"), "{log}");
    Ok(())
}

#[test]
fn what_one_named_peer_offers_alone_is_taken_when_another_has_shown_its_block() -> anyhow::Result<()>
{
    let mut net = net()?;
    let content = learn(&net.members[0])?;
    offers_none(&mut net.members[SECOND])?;
    net.members[SECOND].reaches(content.head.height + 1)?;
    net.members[SECOND].signal(Signal::STOP)?;
    let (_gate, alone) = liar(&net.members[0], &content, Lie::Nothing)?;
    let named = [net.members[SECOND].p2p_address(Network::Gossip), alone.address()];
    net.members[FOLLOWER].launch(&peers(&named))?;
    logs(&net.members[FOLLOWER], "too few of the named peers have its block")?;
    let log = net.members[FOLLOWER].logged()?;
    assert!(!log.contains("fetching it"), "{log}");
    net.members[SECOND].signal(Signal::CONT)?;
    net.members[FOLLOWER].answers()?;
    let follower = &net.members[FOLLOWER];
    assert_eq!(content.head.height + 1, earliest(follower)?, "{}", follower.logged()?);
    net.same_block(net.members[0].height()? + 2)?;
    Ok(())
}

#[test]
fn liars_about_snapshots_are_found_out_and_two_honest_peers_are_enough() -> anyhow::Result<()> {
    let mut net = net()?;
    let lies = [Lie::Chunk, Lie::Root, Lie::Certificate, Lie::Crumbs, Lie::Silence];
    let content = learn(&net.members[0])?;
    let (liars, addresses) = liars(&net, &content, lies)?;
    // So that they give nothing before all liars have had their turn.
    for honest in HONEST {
        net.members[honest].signal(Signal::STOP)?;
    }
    net.members[FOLLOWER].launch(&peers(&addresses))?;
    for lie in lies {
        logs(&net.members[FOLLOWER], lie.reason())?;
    }
    assert!(!net.members[FOLLOWER].home().join("data/db/CURRENT").exists());
    for honest in HONEST {
        net.members[honest].signal(Signal::CONT)?;
    }
    net.members[FOLLOWER].answers()?;

    let log = net.members[FOLLOWER].logged()?;
    for (_, liar) in &liars[..4] {
        assert!(keeps_out(&log, &liar.peer_id()), "{} is not kept out: {log}", liar.peer_id());
    }
    began_with_a_snapshot(&mut net)
}

#[test]
fn many_more_lies_than_eight_do_not_keep_a_node_from_the_honest_snapshots() -> anyhow::Result<()> {
    let mut net = net()?;
    let content = learn(&net.members[0])?;
    // Ten that each cost an attempt of a node that counts all lies together; two that agree, as the
    // honest peers do; and one with whom honest chunks seem to be wrong.
    let lies = (0..10).map(Lie::Height).chain([Lie::Extra, Lie::Extra, Lie::Numbers]);
    let (liars, addresses) = liars(&net, &content, lies)?;
    net.members[FOLLOWER].launch(&peers(&addresses))?;
    net.members[FOLLOWER].answers()?;

    let log = net.members[FOLLOWER].logged()?;
    for (_, liar) in &liars[..10] {
        assert!(keeps_out(&log, &liar.peer_id()), "{} is not kept out: {log}", liar.peer_id());
    }
    let told = net.members[0].call("net_info", &json!([]))?;
    let told = told["peerId"].as_str().context("a peer id")?;
    assert!(!keeps_out(&log, told), "the honest one is kept out: {log}");
    began_with_a_snapshot(&mut net)
}

#[test]
fn a_node_that_is_asked_to_stop_while_it_fetches_ends_at_once_and_goes_on_later()
-> anyhow::Result<()> {
    let mut net = net()?;
    let content = learn(&net.members[0])?;
    for signal in [Signal::TERM, Signal::INT] {
        // One that has been asked answers nothing any more.
        let silent = liar(&net.members[0], &content, Lie::Silence)?;
        let follower = &mut net.members[FOLLOWER];
        let times = follower.logged().unwrap_or_default().matches("fetching it").count();
        follower.launch(&peers(&[silent.1.address()]))?;
        wait_until("the fetch", || {
            let log = follower.logged()?;
            Ok(log.matches("fetching it").count() > times)
        })?;
        let asked = Instant::now();
        follower.signal(signal)?;
        let status = follower.ended()?;
        assert_eq!(Some(0), status.code(), "{signal:?}: {}", follower.logged()?);
        assert!(asked.elapsed() < END_TIME_MAX, "{signal:?}: it took {:?}", asked.elapsed());
        assert!(!follower.home().join("endpoints.json").exists(), "{signal:?}: it began to serve");
    }
    // The same home, with somebody who gives what it offers.
    net.members[FOLLOWER].start()?;
    began_with_a_snapshot(&mut net)
}
