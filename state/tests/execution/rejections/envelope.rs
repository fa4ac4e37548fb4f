//! Fork, nonce and balance come before anything that a kind checks.

use state::Forks;
use types::{Amount, Body, Code, Params};

use crate::world::{
    ALICE, BOB, FUNDS, STRANGER, World, blob_chunk, blob_init, chat, claim, request_body, transfer,
};

#[test]
fn a_nonce_is_stale_or_too_high_before_the_balance_counts() {
    let mut world = World::new();
    world.must(ALICE, &transfer(BOB, 1, 0));
    world.next_block();
    let costly = transfer(BOB, u64::MAX, u64::MAX);
    for (nonce, code, message) in [
        (0, "NONCE_STALE", "Nonce stale: tx=0, state=1"),
        (2, "NONCE_TOO_HIGH", "Nonce too high: tx=2, state=1"),
    ] {
        let refused = world.rejection(ALICE, nonce, &costly);
        assert_eq!((refused.code().as_str(), refused.message().as_str()), (code, message));
    }
    assert_eq!(world.code(ALICE, &costly), "INSUFFICIENT_BALANCE");
}

#[test]
fn the_fork_comes_before_the_nonce() {
    let world = World::with(Params::default(), Forks { v6: 9, ..Forks::default() });
    let refused = world.rejection(ALICE, 7, &chat("early"));
    let message = "Fork not active: type is CHAT_TURN in block 1, expected block 9 or later";
    assert_eq!((refused.code(), refused.message().as_str()), (Code::ForkNotActive, message));
}

#[test]
fn the_balance_comes_before_the_rules_of_the_kind() {
    let world = World::new();
    let run = types::Hash::ZERO;
    let mut unknown_run = crate::world::turn("hello");
    unknown_run.agent_run_id = Some(run);
    let wrong_id = request_body(ALICE, 5, 1_000, 3);
    let cases: [(&str, Body); 4] = [
        ("chat", Body::ChatTurn(unknown_run)),
        ("request", wrong_id),
        ("chunk", blob_chunk("missing", 0, b"x")),
        ("transfer", transfer(ALICE, 1, 0)),
    ];
    for (name, body) in cases {
        assert_eq!(world.code(STRANGER, &body), "INSUFFICIENT_BALANCE", "{name}");
    }
    // What costs nothing needs no balance.
    assert_eq!(world.code(STRANGER, &claim(STRANGER, run)), "RUN_NOT_FOUND");
}

#[test]
fn a_balance_suffices_to_the_last_micro() {
    let mut world = World::new();
    let refused = world.rejection(ALICE, 0, &transfer(BOB, FUNDS, 1));
    assert_eq!(refused.code().as_str(), "INSUFFICIENT_BALANCE");
    let data: Vec<_> = refused.extra().collect();
    assert_eq!(data, [("needed", "10000001"), ("available", "10000000")]);
    world.must(ALICE, &transfer(BOB, FUNDS, 0));
    world.next_block();
    assert_eq!(world.balance(ALICE), 0);
    assert_eq!(world.code(ALICE, &chat("broke")), "INSUFFICIENT_BALANCE");
    world.must(ALICE, &blob_init("free", b"x"));
}

#[test]
fn amount_and_fee_may_not_overflow() {
    let world = World::new();
    let refused = world.rejection(ALICE, 0, &transfer(BOB, u64::MAX, 1));
    assert_eq!(refused.code().as_str(), "INSUFFICIENT_BALANCE");
    assert_eq!(refused.got(), "more than 18446744073709551615");
}

#[test]
fn money_reserved_in_the_same_block_is_gone() {
    let mut world = World::new();
    world.request(ALICE, FUNDS - 50, 3);
    let refused = world.send(ALICE, &chat("too late")).unwrap_err();
    assert_eq!(refused.code().as_str(), "INSUFFICIENT_BALANCE");
    assert_eq!(refused.extra().last(), Some(("available", "50")));
    assert_eq!(world.supply().escrowed, Amount::new(FUNDS - 50));
}
