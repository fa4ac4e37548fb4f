//! Peers that keep a pull waiting, or list what they do not give.

use async_trait::async_trait;

use super::*;
use crate::ports::Listing;
use crate::wire::LIST_MAX;

/// A pool that knows everything, or nothing.
struct Double {
    knows_all: bool,
}

#[async_trait]
impl Pool for Double {
    async fn submit(&self, txs: Vec<SignedTx>) -> Vec<Outcome> {
        vec![Outcome::Unable; txs.len()]
    }

    async fn unknown(&self, hashes: Vec<Hash>) -> Vec<Hash> {
        if self.knows_all { Vec::new() } else { hashes }
    }

    async fn list(&self, _: Option<Address>, _: usize) -> Listing {
        Listing::default()
    }

    async fn fetch(&self, _: Vec<Hash>) -> Vec<SignedTx> {
        Vec::new()
    }

    fn height(&self) -> u64 {
        1
    }
}

/// The page of a list that has more after it.
fn page(number: u8) -> Vec<u8> {
    let hash = |at: usize| Hash::digest_parts(&[&[number], &at.to_be_bytes()]);
    let next = Some(Address::new([number; 20]));
    wire::write_listing(1, &Listing { hashes: (0..LIST_MAX).map(hash).collect(), next })
}

/// Pulls everything from a peer that lists one full page after the other, each after such a pause, and
/// gives no transaction. Answers whether it counts as slow, how many pages it listed, and how often it
/// was asked for transactions.
fn pulled(knows_all: bool, pause: Duration, time_max: Duration) -> (bool, usize, usize) {
    let (commands, mut asked) = mpsc::channel(16);
    let now = Instant::now();
    let tools = Tools {
        pool: Arc::new(Double { knows_all }),
        recent: Arc::new(Recent::new(now)),
        refused: Arc::new(Recent::new(now)),
        commands,
        counters: Counters::default(),
    };
    let (total, tally) = (Worth::default(), Tally::default());
    let peer = PeerId::random();
    let pull = Pull { tools, peer, patience: PATIENCE, time_max, total, tally };
    let answers = async move {
        let (mut pages, mut fetches) = (0_u8, 0);
        while let Some(command) = asked.recv().await {
            let Command::Ask { question, answer, .. } = command else { continue };
            let Ok(Question { wish, .. }) = Question::read(&question) else { continue };
            let bytes = if matches!(wish, Wish::List { .. }) {
                pages += 1;
                // How slow the peer is.
                tokio::time::sleep(pause).await;
                page(pages)
            } else {
                fetches += 1;
                Vec::new()
            };
            drop(answer.send(Some(bytes)));
        }
        (usize::from(pages), fetches)
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let (ended, (pages, fetches)) = runtime.enable_all().build().unwrap().block_on(async {
        futures::future::join(pull.run(Extent::Whole, None, PAGES_FIRST), answers).await
    });
    (ended.was_slow, pages, fetches)
}

#[test]
fn who_lists_what_it_does_not_give_is_left_after_a_few_thousand() {
    let (was_slow, pages, fetches) = pulled(false, Duration::ZERO, PULL_TIME_MAX);
    assert!(was_slow && pages == 1, "{was_slow} after {pages} pages");
    assert_eq!(WITHHELD_MAX / PACK_MAX + 1, fetches);
}

#[test]
fn a_pull_ends_in_time_however_much_there_is_to_list() {
    let (was_slow, pages, _) = pulled(true, Duration::ZERO, PULL_TIME_MAX);
    assert_eq!((false, PAGES_FIRST), (was_slow, pages));
    let pause = Duration::from_millis(30);
    let (was_slow, pages, _) = pulled(true, pause, 10 * pause);
    assert!(was_slow && pages <= 11, "{was_slow} after {pages} pages");
}

#[test]
fn who_drips_uses_the_patience_up_and_who_sends_much_does_not() {
    let drip = patience_after(PATIENCE, Duration::from_secs(9), 300);
    assert!(drip < Duration::from_millis(1_100), "{drip:?}");
    let mut left = PATIENCE;
    for _ in 0..100 {
        // A line of a megabit per second.
        left = patience_after(left, Duration::from_secs(1), 128 * 1024);
    }
    assert!(left > PATIENCE / 2, "{left:?}");
}

#[test]
fn a_slow_peer_rests_longer_each_time_and_is_forgiven_when_it_was_fast() {
    let (now, peer, mut slow) = (Instant::now(), PeerId::random(), Slow::default());
    slow.note(peer, true, now);
    assert!(slow.rests(&peer, now + REST - Duration::from_millis(1)));
    assert!(!slow.rests(&peer, now + REST));
    slow.note(peer, true, now);
    assert!(slow.rests(&peer, now + REST));
    slow.note(peer, false, now);
    assert!(!slow.rests(&peer, now));
    for _ in 0..2 * SLOW_MAX {
        slow.note(PeerId::random(), true, now);
    }
    assert_eq!(SLOW_MAX, slow.0.len());
}
