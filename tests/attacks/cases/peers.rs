//! What several attacks by peers need.

use std::time::{Duration, Instant};

use anyhow::ensure;
use fixtures::parsed;
use testkit::actor::{Actor, transfer};
use testkit::harness::{Rogue, packed};
use types::Keypair;

/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Well-signed transfers of accounts that have nothing, one of each; other numbers have others.
pub(super) fn poor_txs(number: u64, count: u64) -> Vec<(types::Hash, Vec<u8>)> {
    let tx = |at: u64| {
        let seed = types::Hash::digest_parts(&[&number.to_be_bytes(), &at.to_be_bytes()]);
        let actor = Actor::new(Keypair::from_seed(seed.as_bytes()));
        let tx = parsed(&actor.draft(&transfer(actor.address(), 1)));
        (tx.hash(), packed(&tx, &tx.signature()))
    };
    (0..count).map(tx).collect()
}

/// So many messages of `each` of these transactions, no two of them the same.
pub(super) fn packs(txs: &[(types::Hash, Vec<u8>)], count: usize, each: usize) -> Vec<Vec<u8>> {
    let pack = |number: usize| {
        // Steps of two primes, so that no message has the transactions of another.
        let places = (0..each).map(|at| (number * 37 + at * 61) % txs.len().max(1));
        places.filter_map(|place| txs.get(place)).flat_map(|(_, bytes)| bytes.clone()).collect()
    };
    (0..count).map(pack).collect()
}

/// Has a rogue ask one thing of the one node that it is connected with; none if it is refused.
pub(super) fn answer(rogue: &Rogue, question: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
    let before = rogue.answers();
    ensure!(rogue.ask(question.to_vec()) > 0, "it is not connected: {}", rogue.trouble());
    let deadline = Instant::now() + ANSWER_TIME;
    while rogue.answers() == before {
        if Instant::now() > deadline {
            return Ok(None);
        }
        // The pause of the loop that waits with a deadline.
        std::thread::sleep(Duration::from_millis(5));
    }
    let answered = rogue.answers().0 > before.0;
    let last = rogue.answer_bytes().pop().filter(|bytes| answered && !bytes.is_empty());
    Ok(last)
}

/// The question how far a node is, from one that has nothing.
pub(super) const STATUS: [u8; 17] = [0; 17];

/// The question for the first blocks of a chain, as many as an answer may have.
pub(super) fn first_blocks() -> Vec<u8> {
    [&[1][..], &1_u64.to_le_bytes(), &512_u32.to_le_bytes()].concat()
}

/// Waits until something holds, for so long at most; answers how long it took.
pub(super) fn within(
    what: &str,
    time: Duration,
    mut holds: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<Duration> {
    let started = Instant::now();
    while !holds()? {
        ensure!(started.elapsed() < time, "{what} took longer than {time:?}");
        // The pause of the loop that waits with a deadline.
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(started.elapsed())
}
