//! What peers are told of the pool, and what the pool makes of what they bring.

use p2p::ports::Pool as _;

use super::*;
use crate::ingest::testing::{Started, World, soon, transfer};
use crate::sync::Phase;

fn pool_of(world: &World, ingest: IngestHandle) -> GossipPool {
    let (chain, pool) = (Arc::clone(&world.chain), Arc::clone(&world.pool));
    GossipPool::new(chain, pool, ingest, Arc::clone(&world.sync))
}

/// What comes of texts that a peer brings.
async fn brought(pool: &GossipPool, txs: &[&SignedTx]) -> Vec<Outcome> {
    let txs = txs.iter().copied().cloned().collect();
    soon(pool.submit(txs)).await
}

fn signed(world: &World, text: &str) -> SignedTx {
    SignedTx::from(&world.checked(text))
}

#[tokio::test]
async fn what_peers_bring_is_new_once_and_known_from_then_on() {
    let (world, handle, service) = World::with_service();
    let started = Started::new(service);
    let pool = pool_of(&world, handle);

    let [first, queued] = [transfer(0, 0, 1), transfer(0, 2, 1)].map(|it| signed(&world, &it));
    let bad = signed(&world, &transfer(1, 0, 1));
    let bad = SignedTx::new(bad.payload(), first.signature());
    let no_text = SignedTx::new("no transaction", first.signature());
    let refused = Outcome::Refused;
    assert_eq!(
        vec![Outcome::New, refused(Code::BadSignature), refused(Code::Malformed), Outcome::New],
        brought(&pool, &[&first, &bad, &no_text, &queued]).await
    );
    assert_eq!(
        vec![Outcome::Known, refused(Code::BadSignature), Outcome::Known],
        brought(&pool, &[&queued, &bad, &first]).await
    );

    world.commit();
    let other = signed(&world, &transfer(0, 0, 2));
    assert_eq!(
        vec![Outcome::Known, refused(Code::NonceStale), Outcome::Known],
        brought(&pool, &[&first, &other, &queued]).await,
        "a block holds the first"
    );
    // Twice in one batch.
    let twice = signed(&world, &transfer(2, 0, 1));
    assert_eq!(vec![Outcome::New, Outcome::Known], brought(&pool, &[&twice, &twice]).await);
    started.end().await;
}

#[tokio::test]
async fn what_the_pool_holds_does_not_go_through_the_service_again() {
    let (world, handle, service) = World::with_service();
    let text = transfer(0, 0, 1);
    world.admit(&text);
    let (pool, known) = (pool_of(&world, handle), signed(&world, &text));
    // The service does not run.
    assert_eq!(vec![Outcome::Known; 2], brought(&pool, &[&known, &known]).await);
    drop(service);
    let new = signed(&world, &transfer(1, 0, 1));
    assert_eq!(vec![Outcome::Known, Outcome::Unable], brought(&pool, &[&known, &new]).await);
}

#[tokio::test]
async fn what_a_node_that_catches_up_cannot_look_at_is_nobodys_fault() {
    let (world, handle, _service) = World::with_service();
    world.sync.enter(Phase::CatchingUp);
    let tx = signed(&world, &transfer(0, 0, 1));
    let bad = SignedTx::new("no transaction", tx.signature());
    assert_eq!(vec![Outcome::Unable; 2], brought(&pool_of(&world, handle), &[&tx, &bad]).await);
}

fn entry(sender: u8, number: u8) -> (Address, Hash) {
    (Address::new([sender; 20]), Hash::new([number; 32]))
}

#[test]
fn a_list_goes_on_after_whole_senders_and_ends_once() {
    let entries = [entry(1, 1), entry(2, 2), entry(2, 3), entry(2, 4), entry(3, 5)];
    let hash = |number| Hash::new([number; 32]);
    let address = |number| Some(Address::new([number; 20]));
    let cases = [
        (None, 2, vec![1, 2, 3, 4], address(2)),
        (None, 1, vec![1], address(1)),
        (address(1), 1, vec![2, 3, 4], address(2)),
        (address(2), 2, vec![5], None),
        (address(2), 1, vec![5], None),
        (address(3), 1, vec![], None),
        (None, 9, vec![1, 2, 3, 4, 5], None),
    ];
    for (after, wanted, expected, next) in cases {
        let hashes = expected.into_iter().map(hash).collect();
        assert_eq!(Listing { hashes, next }, list(&entries, after, wanted), "{after:?}");
    }
}
