//! A pool with little room: who is refused, who makes room, and that it recovers. The tests of `txpool` say
//! whose queue makes room first.

use serde_json::json;
use testkit::actor::{Actor, transfer};
use testkit::node::{DevOptions, wait_until};
use types::tx::Transfer;
use types::{Amount, Code};

use super::case::{Case, begins, case};
use super::fork::{V7, quick};
use super::scene::{Scene, all_taken, assert_provoked};

pub(super) const CODES: &[Code] = &[Code::PoolFull, Code::SenderLimit];
/// What no submission is answered with, but a question for what was accepted.
pub(super) const DROPS: &[Code] = &[Code::Evicted];

/// Transactions in the pool, and of one sender.
const COUNT_MAX: u64 = 8;
const SENDER_COUNT_MAX: u64 = 4;
const RETRY_AFTER_MS: u64 = 700;

fn start() -> anyhow::Result<Scene> {
    let settings = vec![
        ("OMBRA__TXPOOL__COUNT_MAX", COUNT_MAX.to_string()),
        ("OMBRA__TXPOOL__SENDER_COUNT_MAX", SENDER_COUNT_MAX.to_string()),
        ("OMBRA__TXPOOL__RETRY_AFTER_MS", RETRY_AFTER_MS.to_string()),
    ];
    Scene::of(DevOptions { settings, ..DevOptions::from_environment() })
}

/// Transfers to itself with these nonces.
fn transfers(actor: &Actor, nonces: impl IntoIterator<Item = u64>) -> Vec<String> {
    let body = transfer(actor.address(), 1);
    nonces.into_iter().map(|nonce| actor.at(nonce).draft(&body)).collect()
}

/// Sends as many transfers as a sender may have. They are taken, and wait for ever for the one before them.
fn fill(scene: &mut Scene, actor: &Actor) -> anyhow::Result<()> {
    let sent = scene.send_together(&transfers(actor, 1..=SENDER_COUNT_MAX))?;
    all_taken(sent);
    Ok(())
}

fn sender_limit(actor: &Actor) -> Case {
    let late = actor.at(SENDER_COUNT_MAX + 1);
    let got = format!("{} with {SENDER_COUNT_MAX} transactions in the pool", actor.address());
    let expected = format!("a sender with fewer than {SENDER_COUNT_MAX}");
    case(Code::SenderLimit, &late, &transfer(actor.address(), 1))
        .says("from", got, expected)
        .with("limit", SENDER_COUNT_MAX)
        .with_number("retryAfterMs", RETRY_AFTER_MS)
}

fn pool_full(actor: &Actor) -> Case {
    let late = actor.at(SENDER_COUNT_MAX + 1);
    let expected = begins(&format!("at most {COUNT_MAX} transactions and "));
    case(Code::PoolFull, &late, &transfer(actor.address(), 1))
        .says("pool", begins(&format!("{COUNT_MAX} transactions of ")), expected)
        .with_number("retryAfterMs", RETRY_AFTER_MS)
}

#[test]
fn a_sender_or_a_pool_at_its_limit_is_told_and_nothing_changes() -> anyhow::Result<()> {
    let mut scene = start()?;
    let (alice, bob) = (scene.actor(0), scene.actor(1));
    let (limit, full) = (sender_limit(&alice), pool_full(&alice));
    assert_provoked(CODES, &[limit.clone(), full.clone()]);
    fill(&mut scene, &alice)?;
    scene.refuse_in_every_way(&[limit])?;
    fill(&mut scene, &bob)?;
    // There is no room for anybody, so the sender's own limit is not looked at.
    scene.refuse_alone(&full)?;
    scene.node.stop()
}

#[test]
fn a_full_pool_refuses_and_takes_the_same_once_blocks_have_made_room() -> anyhow::Result<()> {
    let mut scene = start()?;
    let actors = [0, 1, 2].map(|index| scene.actor(index));
    let texts: Vec<String> = actors.iter().flat_map(|actor| transfers(actor, 0..4)).collect();

    // An array is taken in at once, so that no block makes room in between.
    let (first, rest) = texts.split_at(8);
    let mut outcomes = scene.send_together(&texts)?;
    let refused = outcomes.split_off(first.len());
    let taken = all_taken(outcomes);
    assert_eq!(rest.len(), refused.len());
    for outcome in refused {
        let error = outcome.expect_err("the pool has no room");
        assert_eq!(json!([-32050, "POOL_FULL"]), json!([error["code"], error["data"]["code"]]));
        assert_eq!(RETRY_AFTER_MS, error["data"]["retryAfterMs"]);
    }

    scene.wait_until_included(&taken)?;
    wait_until("the pool to empty", || {
        let pool = scene.call("txpool_status", &json!([]))?;
        Ok(pool["pending"] == 0 && pool["queued"] == 0)
    })?;
    scene.include(rest)?;
    scene.node.stop()
}

#[test]
fn from_v7_on_who_offers_more_takes_the_place_of_the_latest_who_offers_least() -> anyhow::Result<()>
{
    let settings = vec![("OMBRA__TXPOOL__COUNT_MAX", COUNT_MAX.to_string())];
    let mut scene = Scene::of_chain("pool-by-tips", V7, quick(), settings)?;
    let [alice, bob, carol] = [0, 1, 2].map(|index| scene.actor(index));
    let mut texts = transfers(&alice, 0..4);
    texts.extend(transfers(&bob, 0..4));
    let paying = Transfer::new(alice.address(), Amount::new(1), Amount::new(100));
    texts.push(carol.draft(&paying.into()));
    // An array is taken in at once, so that no block makes room in between.
    let mut hashes = all_taken(scene.send_together(&texts)?);
    let evicted = hashes.remove(7);
    scene.wait_until_included(&hashes)?;
    let tx = scene.call("ombra_waitForTransaction", &json!([evicted]))?;
    assert_eq!(json!(["dropped", "EVICTED"]), json!([tx["status"], tx["dropped"]["code"]]));
    let message = tx["dropped"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("evicted by transactions that offer more"), "{message}");
    // Its nonce can be used again.
    let again = Transfer::new(alice.address(), Amount::new(1), Amount::new(2));
    scene.include(&[bob.at(3).draft(&again.into())])?;
    scene.node.stop()
}
