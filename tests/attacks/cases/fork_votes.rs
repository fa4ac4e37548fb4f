//! Votes for forks by whoever has an account, and by one validator of four, of every form that comes to
//! mind. Nothing may be fixed, and what is kept of them must not grow.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::actor::Actor;
use testkit::harness::{Town, User};
use testkit::parallel::Worker;
use testkit::suite::say;
use testkit::workload::keys;

use super::blobs::Attacker;

/// How long the attack lasts.
const TIME: Duration = Duration::from_secs(12);
/// Votes of one attacker in one array.
const BATCH: u64 = 3;
/// An attacker's pause between two arrays: the votes are the matter, not a flood.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let mut all = keys(9)?;
    let user = User::start(town.node(0)?.rpc, all.pop().context("a key")?);
    // One validator is among them.
    all.push(town.node(3)?.validator_key()?);
    let height = town.node(0)?.height()?;
    let mut attackers = Vec::new();
    for (number, key) in all.into_iter().enumerate() {
        let mut attacker = Attacker::new(key, town.node(number % 4)?.rpc)?;
        attackers.push(Worker::start(move |over| {
            let mut sent = 0;
            while !over.load(Ordering::Relaxed) {
                sent += vote(&mut attacker, height)?;
                // The attack is a rate.
                std::thread::sleep(PAUSE);
            }
            Ok(sent)
        }));
    }
    let seen = user.work_for(TIME)?;
    let sent: u64 = Worker::stop_all(attackers)?.into_iter().sum();
    ensure!(sent > 0, "no vote was accepted");
    town.goes_on(&[0, 1, 2, 3], 2)?;
    for node in town.net.running() {
        let forks = node.call("ombra_forks", &json!([]))?;
        let fork = &forks["forks"][0];
        ensure!(fork.get("fixed").is_none(), "{} has fixed a height: {forks}", node.name);
        let votes = fork["votes"].as_array().into_iter().flatten();
        let voters = votes.map(|vote| vote["voters"].as_array().map_or(0, Vec::len)).sum::<usize>();
        ensure!(voters <= 1, "{} counts votes of strangers: {forks}", node.name);
    }
    say(&format!("   {sent} votes were included or waited; nothing is fixed, at most one is kept"));
    seen.tell("while strangers vote");
    seen.is_served()
}

/// Sends some votes in one array; answers how many were accepted.
fn vote(attacker: &mut Attacker, height: u64) -> anyhow::Result<u64> {
    let (actor, next) = (&attacker.actor, attacker.actor.nonce);
    let texts: Vec<String> = (next..next + BATCH).map(|nonce| sign(actor, nonce, height)).collect();
    let accepted = u64::try_from(attacker.send(&texts)?)?;
    attacker.actor.nonce += accepted;
    Ok(accepted)
}

/// A vote of the form that this nonce stands for.
fn sign(actor: &Actor, nonce: u64, height: u64) -> String {
    let (from, public_key) = (actor.address(), actor.key.public_key());
    let near = height + 1;
    let members = match nonce % 10 {
        0 => format!(r#""forkVote":"v7","forkHeight":{}"#, height + 50_000),
        1 => format!(r#""forkVote":"v7","forkHeight":{near}"#),
        2 => r#""forkVote":"v7","forkHeight":9007199254740991"#.to_owned(),
        3 => format!(r#""forkVote":"v7","forkHeight":"{}""#, height + 50_000),
        4 => r#""forkVote":null,"forkHeight":[{}]"#.to_owned(),
        5 => format!(r#""forkVote":"v{nonce}","forkHeight":{}"#, height + 50_000),
        6 => r#""forkVote":"v7","forkHeight":0"#.to_owned(),
        7 => format!(r#""forkVote":"{}","forkHeight":1"#, "v7".repeat(4_000)),
        8 => r#""forkVote":{"forkVote":"v7","forkHeight":1},"forkHeight":1e9"#.to_owned(),
        _ => format!(r#""forkHeight":{},"forkVote":"v7""#, height + 60_000 + nonce),
    };
    let payload = format!(
        r#"{{"type":"TRANSFER","from":"{from}","to":"{from}","amount":"0","fee":"0","nonce":{nonce},"timestamp":1700000000000,{members},"publicKey":"{public_key}"}}"#
    );
    actor.seal(&payload)
}
