//! A node that begins has to believe others: which chain is the chain?
//!
//! The validator's key signs two histories from the same genesis, as keys may that were sold when
//! they were worth nothing any more. All certificates of both are good.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::net::{Member, Net};
use testkit::node::{program, wait_until};
use testkit::process::Signal;

use super::liar::{Liar, Lie};
use crate::fake_peer::gossip_address;
use crate::support::{chain, printed};

const VALIDATOR: usize = 0;
const FOLLOWER: usize = 1;
const NEWCOMER: usize = 3;
/// A height that both histories have.
const HEIGHT: u64 = 20;
const BLOCKS: u64 = 150;
const PEERS: &str = "OMBRA__P2P__GOSSIP__PEERS";
/// So short that the keys of a chain are worth nothing any more when a node joins it.
const PERIOD: (&str, &str) = ("OMBRA__SYNC__TRUST_PERIOD_MS", "1000");
/// For how long a node must not take the word of one: longer than it waits for peers and asks them.
const WHILE: Duration = Duration::from_secs(8);

/// A chain of a validator and a follower, and a peer that has another history of it.
struct Histories {
    net: Net,
    liar: Liar,
}

impl Histories {
    fn make() -> anyhow::Result<Self> {
        let mut net = Net::make_as(&chain(1, 3, &["minBlockIntervalMs=2", "heartbeatMs=2"]))?;
        net.members[VALIDATOR].start()?;
        net.members[VALIDATOR].reaches(BLOCKS)?;
        let liar = Liar::start(&net.members[VALIDATOR], Lie::Nothing)?;
        let first = net.members[VALIDATOR].block_hash(HEIGHT)?;
        // The second history begins where the first did.
        net.members[VALIDATOR].kill()?;
        std::fs::remove_dir_all(net.members[VALIDATOR].home().join("data"))?;
        // It must not learn the first one from the liar.
        net.members[VALIDATOR].start_with(&[named(&[])])?;
        let validator = gossip_address(&net.members[VALIDATOR])?;
        net.members[FOLLOWER].start_with(&[named(&[validator])])?;
        net.members[FOLLOWER].reaches(HEIGHT)?;
        ensure!(first != net.members[VALIDATOR].block_hash(HEIGHT)?, "it is the same history");
        Ok(Self { net, liar })
    }

    fn newcomer(&mut self) -> &mut Member {
        &mut self.net.members[NEWCOMER]
    }

    /// The settings that name these peers, the liar first.
    fn peers(&self, honest: &[usize]) -> anyhow::Result<(&'static str, String)> {
        let mut peers = vec![self.liar.peer.address()];
        for at in honest {
            peers.push(gossip_address(&self.net.members[*at])?);
        }
        Ok(named(&peers))
    }
}

/// The setting that a node knows no others than these.
fn named(peers: &[String]) -> (&'static str, String) {
    (PEERS, json!(peers).to_string())
}

/// The settings that trust a block.
fn trusting(height: u64, hash: &str) -> [(&'static str, String); 2] {
    [
        ("OMBRA__SYNC__TRUSTED__HEIGHT", height.to_string()),
        ("OMBRA__SYNC__TRUSTED__HASH", hash.to_owned()),
    ]
}

/// Waits until a node that has no block says that it waits for a second peer.
fn waits_for_a_second(newcomer: &Member) -> anyhow::Result<()> {
    wait_until("the newcomer to say what it waits for", || {
        ensure!(newcomer.height()? == 0, "it has taken the word of one");
        let detail = newcomer.check("lag")?["detail"].to_string();
        Ok(detail.contains("two of the named peers"))
    })
}

#[test]
fn a_newcomer_takes_the_chain_that_two_named_peers_have_and_not_the_one_of_the_first()
-> anyhow::Result<()> {
    let mut histories = Histories::make()?;
    let peers = histories.peers(&[VALIDATOR, FOLLOWER])?;
    // The liar is the first that answers.
    for at in [VALIDATOR, FOLLOWER] {
        histories.net.members[at].signal(Signal::STOP)?;
    }
    histories.newcomer().start_with(&[peers])?;
    let newcomer = &histories.net.members[NEWCOMER];
    waits_for_a_second(newcomer)?;
    for at in [VALIDATOR, FOLLOWER] {
        histories.net.members[at].signal(Signal::CONT)?;
    }
    newcomer.reaches(HEIGHT)?;
    let validator = &histories.net.members[VALIDATOR];
    assert_eq!(validator.block_hash(HEIGHT)?, newcomer.block_hash(HEIGHT)?);
    // It follows the chain from then on.
    newcomer.reaches(validator.height()? + 50)?;
    let height = newcomer.height()?;
    validator.reaches(height)?;
    assert_eq!(validator.block_hash(height)?, newcomer.block_hash(height)?);
    let log = newcomer.logged()?;
    let told = log.lines().filter(|line| line.contains("no block is trusted (`sync.trusted`)"));
    assert_eq!(1, told.count(), "{log}");
    let ready = newcomer.readiness()?;
    let trust = &ready["trust"];
    assert_eq!(json!(["chain", 1_209_600_000]), json!([trust["anchor"], trust["periodMs"]]));
    assert!(trust["ageMs"].as_u64().is_some_and(|age| age < 60_000), "{ready}");
    Ok(())
}

#[test]
fn a_newcomer_of_which_one_of_two_peers_is_away_waits_for_it() -> anyhow::Result<()> {
    let mut histories = Histories::make()?;
    let away = format!("/ip4/127.0.0.1/tcp/{}", histories.net.members[2].rpc.port() + 3);
    let validator = gossip_address(&histories.net.members[VALIDATOR])?;
    histories.newcomer().start_with(&[named(&[validator.clone(), away])])?;
    let newcomer = &histories.net.members[NEWCOMER];
    waits_for_a_second(newcomer)?;
    assert_eq!(json!("genesis"), newcomer.readiness()?["trust"]["anchor"]);
    histories.net.members[2].start_with(&[named(&[validator])])?;
    histories.net.members[NEWCOMER].reaches(HEIGHT)
}

#[test]
fn one_of_two_named_peers_that_claims_to_have_nothing_is_no_voice() -> anyhow::Result<()> {
    let mut net = Net::make_as(&chain(1, 3, &["minBlockIntervalMs=2", "heartbeatMs=50"]))?;
    net.members[VALIDATOR].start_with(&[named(&[])])?;
    net.members[VALIDATOR].reaches(HEIGHT)?;
    let liar = Liar::start(&net.members[VALIDATOR], Lie::Ignorance)?;
    let validator = gossip_address(&net.members[VALIDATOR])?;
    net.members[FOLLOWER].start_with(&[named(std::slice::from_ref(&validator))])?;
    let mut peers = vec![liar.peer.address(), validator];
    let settings = |peers: &[String]| [named(peers), (PERIOD.0, PERIOD.1.to_owned())];
    net.members[NEWCOMER].start_with(&settings(&peers))?;
    waits_for_a_second(&net.members[NEWCOMER])?;
    let begun = Instant::now();
    while begun.elapsed() < WHILE {
        waits_for_a_second(&net.members[NEWCOMER])?;
    }
    // Of three it is outvoted.
    net.members[NEWCOMER].stop()?;
    peers.push(gossip_address(&net.members[FOLLOWER])?);
    net.members[NEWCOMER].start_with(&settings(&peers))?;
    net.members[NEWCOMER].reaches(HEIGHT)?;
    let height = net.members[VALIDATOR].height()?;
    net.members[NEWCOMER].reaches(height + 10)
}

#[test]
fn validators_that_need_each_other_begin_although_a_third_named_peer_is_away() -> anyhow::Result<()>
{
    let mut net = Net::make(2, 1)?;
    let period = [(PERIOD.0, PERIOD.1.to_owned())];
    for at in [0, 1] {
        net.members[at].start_with(&period)?;
    }
    // Again when the chain is older than the period, and has blocks.
    for at in [0, 1] {
        net.members[at].reaches(2)?;
        net.members[at].kill()?;
    }
    wait_until("the last block to be old", || {
        let begun = net.members[0].home().join("config.toml").metadata()?.modified()?;
        Ok(begun.elapsed()? > Duration::from_secs(5))
    })?;
    for at in [0, 1] {
        net.members[at].start_with(&period)?;
    }
    let height = net.members[0].height()?;
    net.members[0].reaches(height + 2)
}

#[test]
fn a_chain_without_the_trusted_block_is_refused_and_nothing_after_it_is_written()
-> anyhow::Result<()> {
    let mut histories = Histories::make()?;
    let honest = histories.net.members[VALIDATOR].block_hash(HEIGHT)?;
    let mut settings = trusting(HEIGHT, &honest).to_vec();
    // One named peer is enough for a chain, but not against the trusted block.
    settings.push(histories.peers(&[])?);
    let newcomer = histories.newcomer();
    newcomer.launch(&settings)?;
    assert_eq!(Some(5), newcomer.ended()?.code());
    let log = newcomer.logged()?;
    assert!(log.contains(&format!("block {HEIGHT} is ")) && log.contains(&honest), "{log}");
    // It has the liar's blocks before that height, and no other.
    newcomer.start_with(&[named(&[])])?;
    assert_eq!(HEIGHT - 1, newcomer.height()?);
    newcomer.kill()?;
    std::fs::remove_dir_all(newcomer.home().join("data"))?;

    // With honest peers it gets there.
    let mut settings = trusting(HEIGHT, &honest).to_vec();
    settings.push(histories.peers(&[VALIDATOR, FOLLOWER])?);
    histories.newcomer().start_with(&settings)?;
    let newcomer = histories.newcomer();
    newcomer.reaches(HEIGHT + 10).with_context(|| newcomer.logged().unwrap_or_default())?;
    assert_eq!(honest, histories.newcomer().block_hash(HEIGHT)?);
    // A database that contradicts the setting is not used at all.
    histories.newcomer().kill()?;
    let other = "0".repeat(64);
    histories.newcomer().launch(&trusting(HEIGHT, &other))?;
    assert_eq!(Some(5), histories.newcomer().ended()?.code());
    Ok(())
}

#[test]
fn a_node_that_was_away_for_longer_than_the_trust_period_asks_two_again() -> anyhow::Result<()> {
    let mut histories = Histories::make()?;
    let mut settings = vec![histories.peers(&[VALIDATOR, FOLLOWER])?];
    histories.newcomer().start_with(&settings)?;
    histories.newcomer().reaches(HEIGHT)?;
    histories.newcomer().kill()?;
    let height = histories.net.members[VALIDATOR].height()?;
    histories.net.members[VALIDATOR].reaches(height + 600)?;
    settings.push((PERIOD.0, PERIOD.1.to_owned()));
    histories.newcomer().start_with(&settings)?;
    histories.newcomer().reaches(height + 600)?;
    let log = histories.newcomer().logged()?;
    let told = log.lines().filter(|line| line.contains("no block is trusted (`sync.trusted`)"));
    assert_eq!(2, told.count(), "at each start: {log}");
    Ok(())
}

#[test]
fn the_pair_to_trust_comes_from_a_node_that_one_trusts() -> anyhow::Result<()> {
    let mut net = Net::make(1, 0)?;
    net.members[0].start()?;
    net.members[0].reaches(1)?;
    let rpc = format!("http://{}", net.members[0].rpc);
    let ask = |more: &[&str]| -> anyhow::Result<String> {
        printed(program().args(["query", "trusted", "--rpc", &rpc]).args(more).output()?)
    };
    let pair: Value = serde_json::from_str(&ask(&["--json"])?)?;
    let height = pair["height"].as_u64().context("a height")?;
    assert_eq!(json!(net.members[0].block_hash(height)?), pair["hash"]);
    let text = ask(&[])?;
    assert!(text.starts_with("sync.trusted = { height = "), "{text}");
    Ok(())
}
