//! Limits that hold whatever comes.

use proptest::prelude::*;
use txpool::{BlockLimits, Config};
use types::CheckedTx;

use crate::support::ledger::execute;
use crate::support::world::NOW;
use crate::support::{Wallet, World};

const WALLETS: u8 = 5;
const COUNT_MAX: usize = 14;
const SENDER_MAX: usize = 6;
const BYTES_MAX: usize = 8_000;

#[derive(Clone, Debug)]
enum Action {
    /// Some transactions of a wallet, each with a nonce so far from the next.
    Submit { wallet: u8, offsets: Vec<u64> },
    /// A blob's chunk with the next nonce: a large transaction.
    Large { wallet: u8, bytes: u64 },
    /// A block with so much room.
    Block { count: usize, bytes: usize },
}

fn action() -> impl Strategy<Value = Action> {
    let offsets = prop::collection::vec(0..8_u64, 1..8);
    prop_oneof![
        6 => (0..WALLETS, offsets).prop_map(|(wallet, offsets)| Action::Submit { wallet, offsets }),
        1 => (0..WALLETS, 1..4_000_u64).prop_map(|(wallet, bytes)| Action::Large { wallet, bytes }),
        2 => (0..10_usize, 0..6_000_usize).prop_map(|(count, bytes)| Action::Block { count, bytes }),
    ]
}

fn act(world: &World, wallets: &[Wallet], action: &Action, clock: &mut u64) {
    match action {
        Action::Submit { wallet, offsets } => {
            let wallet = &wallets[usize::from(*wallet)];
            let next = world.account(wallet).nonce;
            let txs: Vec<CheckedTx> = offsets
                .iter()
                .map(|offset| {
                    *clock += 1;
                    wallet.at(next + offset).time(*clock).turn(None)
                })
                .collect();
            let answers = world.pool.submit(&txs, NOW);
            assert_eq!(txs.len(), answers.len());
        }
        Action::Large { wallet, bytes } => {
            let wallet = &wallets[usize::from(*wallet)];
            let next = world.account(wallet).nonce;
            *clock += 1;
            let id = clock.to_string();
            let txs =
                [wallet.at(next).blob(&id, *bytes), wallet.at(next + 1).chunk(&id, 0, *bytes)];
            assert_eq!(2, world.pool.submit(&txs, NOW).len());
        }
        Action::Block { count, bytes } => {
            let limits = BlockLimits { bytes: *bytes, count: *count };
            let included = world.pool.candidates(limits);
            assert!(included.len() <= *count);
            assert!(included.iter().map(|tx| tx.encoded_bytes()).sum::<usize>() <= *bytes);
            // No share leaves out a nonce, and turns and blobs build on nobody else's.
            world.commit(&included);
        }
    }
}

/// What holds at any time.
fn check(world: &World, wallets: &[Wallet]) {
    let total = world.pool.status().total;
    assert!(total.total().count <= COUNT_MAX && total.total().bytes <= BYTES_MAX, "{total:?}");
    let mut sum = (0, 0);
    for wallet in wallets {
        let content = world.pool.content_from(wallet.address());
        assert!(content.pending.len() + content.queued.len() <= SENDER_MAX);
        let next = world.account(wallet).nonce;
        assert!(content.queued.iter().all(|tx| tx.nonce() > next));
        sum = (sum.0 + content.pending.len(), sum.1 + content.queued.len());
    }
    assert_eq!((total.pending.count, total.queued.count), sum);
    assert_eq!(world.order().len(), world.pool.pending_count());
    let mut block = world.chain.begin();
    for hash in world.order() {
        execute(&mut block, &world.pool.lookup(hash).unwrap()).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn limits_hold_whatever_comes(actions in prop::collection::vec(action(), 1..40)) {
        let wallets: Vec<Wallet> = (1..=WALLETS).map(Wallet::new).collect();
        let balances: Vec<_> = wallets.iter().map(|wallet| (wallet, 1_000_000)).collect();
        let config = Config {
            count_max: COUNT_MAX,
            bytes_max: BYTES_MAX,
            sender_count_max: SENDER_MAX,
            nonce_window: 6,
            ..Config::default()
        };
        let world = World::new(config, &balances);
        let mut clock = 0;
        for action in &actions {
            act(&world, &wallets, action, &mut clock);
            check(&world, &wallets);
        }
    }
}
