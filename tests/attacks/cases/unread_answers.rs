//! Peers ask a node for large transactions of its pool, sixteen times each, and read no answer. The
//! node holds what they do not read, and must not hold all of it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use testkit::actor::{blob_chunk, people};
use testkit::harness::{Plan, Rogue, Town, User};
use testkit::net::Network;
use testkit::process::rss_kb;
use testkit::suite::say;
use types::Hash;

const DEAF: usize = 30;
/// Questions of each, as many as a connection has streams.
const QUESTIONS: usize = 16;
/// Transactions of so many bytes each wait in the pool: more than an answer has.
const LARGE: u64 = 24;
const LARGE_BYTES: usize = 48 * 1024;
/// How long the answers are left unread, once they are asked for.
const TIME: Duration = Duration::from_secs(6);
/// What a node may take for them, in MiB. All of them would be 480.
const MEMORY_MAX: u64 = 150;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let node = town.node(0)?;
    let [large, user] = people()?;
    let mut question = vec![0; 8];
    question.push(1);
    for nonce in 1..=LARGE {
        // They wait for one before them.
        let body = blob_chunk(&format!("blob-{nonce}"), 0, &[7; LARGE_BYTES]);
        let hash = node.send(&large.at(nonce).draft(&body))?;
        question.extend_from_slice(Hash::parse(&hash).ok().context("a hash")?.as_bytes());
    }
    let user = User::start(node.rpc, user.key);
    let address = [node.p2p_address(Network::Gossip)];
    let deaf = (0..DEAF).map(|_| Rogue::start(Plan::gossip(node, "pool")?.deaf(), &address));
    let deaf = deaf.collect::<anyhow::Result<Vec<_>>>()?;
    deaf.iter().try_for_each(Rogue::connects)?;
    let pid = node.pid().context("a node that runs")?;
    let before = rss_kb(pid)?;
    for _ in 0..QUESTIONS {
        for rogue in &deaf {
            let _asked = rogue.ask(question.clone());
        }
    }
    let (since, mut peak) = (Instant::now(), before);
    while since.elapsed() < TIME {
        peak = peak.max(rss_kb(pid)?);
        // The pause between two looks.
        std::thread::sleep(Duration::from_millis(20));
    }
    let seen = user.tell("answers that nobody reads")?;
    let grown = peak.saturating_sub(before) / 1024;
    say(&format!("   {DEAF} peers with {QUESTIONS} questions each: {grown} MiB more than before"));
    seen.is_served()?;
    ensure!(grown < MEMORY_MAX, "the node took {grown} MiB for answers that nobody reads");
    Ok(())
}
