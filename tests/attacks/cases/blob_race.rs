//! Blobs are dropped by their deadline while their last chunks are asked about, and others of their
//! chunks wait in the pool: between the write of such a block and the pool's following it, what the
//! pool knows of the blob and what the database has must not be of two heights. The first release
//! took the difference for a broken database and stopped.
//!
//! The moment is short on an idle machine. So others ask what the last chunk of a large blob would do:
//! in the first release, each such question kept the pool from following a block for 50 ms.

use std::iter::repeat_n;
use std::slice::from_ref;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use testkit::actor::people;
use testkit::harness::{FAST, Town, User};
use testkit::net::Member;
use testkit::parallel::{at_once, beside};
use testkit::suite::say;
use types::Keypair;

use super::blobs::{Attacker, Questions, announce, ask, chunk, simulation, store_large};

/// How often it is tried.
const ROUNDS: u64 = 3;
/// How long a blob may be unfinished: long enough to store a large one meanwhile, chunk by chunk.
const TTL: Duration = Duration::from_secs(8);
/// When the attackers start to ask, and when the waiting chunks are sent.
const ASKING: Duration = Duration::from_millis(7_000);
const SENDING: Duration = Duration::from_millis(7_800);
/// When the last blob of a round has been dropped.
const OVER: Duration = Duration::from_millis(10_500);
/// Blobs of a round, and chunks of each.
const BLOBS: u64 = 10;
const CHUNKS: u64 = 3;
/// Those who ask about the large blob.
const HOLDERS: usize = 8;
/// Each of the others asks about so many of the blobs.
const LASTS: usize = 3;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let ttl = format!("blobTtlMs={}", TTL.as_millis());
    // A block has room for one chunk, so that others wait.
    let params = [FAST, &["maxBlockBytes=786432", &ttl]].concat();
    let town = Town::make_with(1, 0, &params)?.started()?;
    let [user, owner, holder] = people()?.map(|it| it.key);
    let user = User::start(town.node(0)?.rpc, user);
    let mut questions = 0;
    for number in 0..ROUNDS {
        questions += round(town.node(0)?, number, &owner, &holder)?;
    }
    let seen = user.stop()?;
    say(&format!("   {} blobs were dropped under {questions} questions", ROUNDS * BLOBS));
    seen.tell("blobs dropped under their last chunks");
    town.goes_on(&[0], 3)?;
    seen.is_served()
}

/// Announces blobs with a chunk each, stores a large one, and asks about the last chunks of all of them
/// while further chunks wait for blobs that are dropped.
fn round(node: &Member, number: u64, owner: &Keypair, holder: &Keypair) -> anyhow::Result<u64> {
    let ids: Vec<String> = (0..BLOBS).map(|at| format!("race-{number}-{at}")).collect();
    let mut owner = Attacker::at(owner, node)?;
    let begun = Instant::now();
    for id in &ids {
        let texts = [announce(id, CHUNKS)?, chunk(id, 0, CHUNKS)];
        let texts = texts.map(|it| owner.actor.sign(&it));
        owner.send(&texts)?;
    }
    let large = store_large(&mut Attacker::at(holder, node)?, node, &format!("large-{number}"))?;
    until(begun + ASKING);
    let lasts: Vec<String> = ids
        .iter()
        .map(|id| simulation(&owner.actor.draft(&chunk(id, CHUNKS - 1, CHUNKS))))
        .collect();
    let asked = AtomicU64::new(0);
    let about: Vec<&[String]> =
        repeat_n(from_ref(&large), HOLDERS).chain(lasts.chunks(LASTS)).collect();
    let ask = |_, texts: &&[String]| {
        let questions = Questions { texts, pause: Duration::ZERO, end: begun + OVER };
        ask(Attacker::at(holder, node)?, questions, &asked)
    };
    let send = || {
        until(begun + SENDING);
        for id in &ids {
            let waiting = owner.actor.sign(&chunk(id, 1, CHUNKS));
            owner.send(&[waiting])?;
        }
        anyhow::Ok(())
    };
    beside(send, |_| at_once(&about, ask))?;
    Ok(asked.into_inner())
}

/// The attack is timed by the chain's clock.
fn until(moment: Instant) {
    // The blobs are due at a time of their own.
    std::thread::sleep(moment.saturating_duration_since(Instant::now()));
}
