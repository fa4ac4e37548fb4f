//! Several validators, and a follower.

use std::collections::BTreeMap;

use consensus::CertificateError;
use tokio_util::sync::CancellationToken;
use types::Hash;

use crate::chain::{Plan, eventually, key, set};
use crate::town::Town;

/// The logs of an engine that signs, and of one that only follows.
const SIGNS: &str = "consensus.wal";
const FOLLOWS: &str = "consensus.follow.wal";
/// The head of a log: without an entry it says nothing of its height.
const HEAD_BYTES: u64 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lacks_what_a_compact_block_names_gets_the_block_whole_in_the_same_round() {
    let town = Town::new("lack", 4, 1).await;
    // All but one validator: without the whole block there is no quorum in a first round.
    let lacking = [1, 2, 3, 4];
    for at in lacking {
        town.plans[at].disk.faults().lacks = true;
    }
    town.grow_to(8).await;
    town.agree_up_to(8);
    let rounds = (1..=8).map(|height| town.plans[0].disk.certificate(height).round);
    // On a busy machine some may take another round.
    let at_once = u64::try_from(rounds.filter(|round| *round == 0).count()).expect("few");
    assert!(at_once > 0, "no block was decided in its first round");
    assert!(lacking.iter().all(|at| town.asked_for(*at) > 0));
    let resent = town.resent();
    assert!((at_once..=8).contains(&resent), "{resent} of 8, {at_once} in their first rounds");
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_validators_and_a_follower_agree_and_compact_blocks_are_enough_for_them() {
    let town = Town::new("agree", 4, 1).await;
    town.grow_to(8).await;
    town.agree_up_to(8);
    assert_eq!(town.resent(), 0);
    let disk = &town.plans[0].disk;
    let mut proposers: Vec<_> = (1..=8).map(|height| disk.proposer(height)).collect();
    proposers.sort();
    proposers.dedup();
    assert!(proposers.len() > 1, "turns go round");
    let peers = town.node(0).handle.control().peers().await.expect("peers");
    assert_eq!(peers.len(), 4);
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proposer_that_starts_before_the_others_proposes_when_they_can_hear_it() {
    let mut town = Town::new("first", 4, 0).await;
    let first = town.plans[0].disk.set_of(1).proposer(1, 0).address;
    let first = town.plans.iter().position(|plan| key(plan.seed).address() == first);
    let first = first.expect("one of the four");
    town.stop_each(0..4).await;
    town.set_goal(1);
    town.start(first).await;
    town.start_each((0..4).filter(|at| *at != first)).await;
    town.reaches(1).await;
    assert_eq!(town.plans[0].disk.certificate(1).round, 0);
    town.agree_up_to(1);
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_of_four_go_on_and_the_fourth_catches_up() {
    let mut town = Town::new("catch-up", 4, 0).await;
    town.grow_to(3).await;
    town.stop(1).await;
    town.grow_to(8).await;
    assert!(town.plans[1].disk.height() < 8);
    town.start(1).await;
    town.reaches(8).await;
    town.grow_to(10).await;
    town.agree_up_to(10);
    assert_eq!(town.refusals(), 0);
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_validator_that_finds_a_block_due_wakes_the_others() {
    let town = Town::new("wake", 4, 0).await;
    town.grow_to(2).await;
    town.plans[2].goal.set(5);
    town.reaches(5).await;
    town.agree_up_to(5);
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_can_make_the_others_start_before_the_minimum_interval_is_over() {
    let town = Town::new("early", 4, 0).await;
    town.grow_to(2).await;
    // The one whose turn it is proposes and votes at once.
    let turn = set(1..=4).proposer(3, 0).address;
    let is_hasty = |plan: &&Plan| key(plan.seed).address() == turn;
    let hasty = town.plans.iter().find(is_hasty).expect("a validator");
    let others = || town.plans.iter().filter(|plan| !is_hasty(plan));
    others().for_each(|plan| plan.goal.ripen(2));
    hasty.goal.set(3);
    assert!(hasty.disk.stays_at(2).await);
    others().for_each(|plan| plan.goal.ripen(3));
    town.reaches(3).await;
    town.agree_up_to(3);
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_another_genesis_is_turned_away() {
    let mut town = Town::new("genesis", 1, 2).await;
    town.stop(2).await;
    town.plans[2].genesis = Hash::new([1; 32]);
    town.start(2).await;
    town.set_goal(3);
    town.plans[0].disk.reaches(3).await;
    town.plans[1].disk.reaches(3).await;
    let stranger = &town.plans[2];
    assert!(stranger.disk.stays_at(0).await, "it was given blocks");
    let peers = town.node(2).handle.control().peers().await.expect("peers");
    assert!(peers.is_empty(), "{peers:?}");
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_block_is_voted_down_and_the_next_proposer_goes_on() {
    let town = Town::new("liar", 4, 0).await;
    let liar = &town.plans[3].disk;
    liar.faults().lies = true;
    town.grow_to(5).await;
    town.agree_up_to(5);
    let liar_address = key(4).address();
    assert!((1..=5).all(|height| liar.proposer(height) != liar_address));
    assert!(town.node(0).counters.invalid_proposals.get() > 0, "an honest node");
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_has_every_block_of_a_single_validator() {
    let town = Town::new("follow", 1, 1).await;
    town.plans[0].goal.set(6);
    town.reaches(6).await;
    town.agree_up_to(6);
    let disks = town.stop_all().await;
    assert_eq!(disks[1].height(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validators_come_and_go_and_every_block_has_its_own_set() {
    // The fifth comes with block 4; the fourth, which is down by then, goes with block 8.
    let sets = [(1, set(1..=4)), (4, set(1..=5)), (8, set([1, 2, 3, 5]))];
    let mut town = Town::with_sets("come-and-go", 5, 1, &BTreeMap::from(sets)).await;
    let [newcomer, dead] = [key(5).address(), key(4).address()];
    town.stop(5).await;
    town.grow_to(5).await;
    town.stop(3).await;
    town.grow_to(7).await;
    // A validator starts again just before the change.
    town.stop(0).await;
    town.start(0).await;
    town.grow_to(14).await;
    // A follower that was away from the beginning, and the one that was removed.
    town.start(5).await;
    town.start(3).await;
    town.grow_to(16).await;
    town.agree_up_to(16);

    let disk = &town.plans[0].disk;
    let signed = |height, who| {
        let certificate = disk.certificate(height);
        certificate.signatures.iter().any(|entry| entry.address == who)
    };
    assert!((1..4).all(|height| !signed(height, newcomer)));
    assert!((4..=16).any(|height| signed(height, newcomer)));
    assert!((4..=16).any(|height| disk.proposer(height) == newcomer));
    assert!((8..=16).all(|height| !signed(height, dead) && disk.proposer(height) != dead));
    assert_eq!(town.node(3).counters.votes.get(), 0, "the removed one follows");
    assert_eq!(town.refusals(), 0);

    // With the set of another height the certificate proves nothing.
    let height = (4..=16).find(|height| signed(*height, newcomer)).expect("it signs");
    let wrong = disk.verified(height, &disk.set_of(1));
    assert_eq!(wrong, Err(CertificateError::Stranger { address: newcomer }));
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_validator_that_lost_its_log_signs_again_when_what_it_signed_is_decided() {
    let mut town = Town::new("forgetful", 4, 0).await;
    town.grow_to(3).await;
    let backup = town.plans[0].disk.backup();
    town.grow_to(6).await;
    town.stop(0).await;
    town.plans[0].disk.restore(backup);
    std::fs::remove_file(town.files(0).join(SIGNS)).expect("a log");

    town.start(0).await;
    let node = town.node(0);
    let (control, counters) = (node.handle.control().clone(), node.counters.clone());
    town.reaches(6).await;
    assert_eq!(counters.votes.get(), 0, "it only followed");
    // Two others are enough only with its votes.
    town.stop(1).await;
    town.grow_to(9).await;
    assert_eq!(control.follows_until(), None);
    assert_eq!(counters.refusals.get(), 0);
    assert!(counters.votes.get() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_validator_without_a_record_signs_when_all_that_it_may_have_signed_is_decided() {
    let mut town = Town::new("blank", 4, 0).await;
    town.grow_to(5).await;
    town.stop(0).await;
    std::fs::remove_dir_all(town.files(0)).expect("its files");
    for _ in 0..2 {
        town.start(0).await;
        assert_follows_until(&town, Some(9));
        town.stop(0).await;
    }
    town.start(0).await;
    let counters = town.node(0).counters.clone();
    town.grow_to(9).await;
    assert_eq!(counters.votes.get(), 0, "it only followed");
    // Two others are enough only with its votes.
    town.stop(1).await;
    town.grow_to(11).await;
    assert_follows_until(&town, None);
    town.agree_up_to(9);
    assert!(counters.votes.get() > 0);
    assert_eq!(counters.refusals.get(), 0);
}

/// A town whose first validator has signed height 6, has forgotten it, and is the only one that runs.
async fn one_that_forgot(name: &str) -> Town {
    let mut town = Town::new(name, 4, 0).await;
    town.grow_to(5).await;
    let backup = town.plans[0].disk.backup();
    town.grow_to(6).await;
    town.stop_each(0..4).await;
    town.plans[0].disk.restore(backup);
    std::fs::remove_file(town.files(0).join(SIGNS)).expect("a log");
    town.start(0).await;
    town
}

/// Waits until an engine with a log of this name has begun this height, whose number is then in the
/// head of the log.
async fn begins(town: &Town, log: &str, height: u64) {
    let log = town.files(0).join(log);
    let head = || std::fs::read(&log).unwrap_or_default().get(4..12).map(<[u8]>::to_vec);
    let begun = Some(height.to_be_bytes().to_vec());
    eventually("the engine begins the height", || head() == begun).await;
}

fn assert_follows_until(town: &Town, height: Option<u64>) {
    assert_eq!(town.node(0).handle.control().follows_until(), height);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_validator_that_lost_its_log_still_follows_after_a_restart() {
    let mut town = one_that_forgot("forgets-again").await;
    for _ in 0..3 {
        assert_follows_until(&town, Some(6));
        begins(&town, FOLLOWS, 6).await;
        town.stop(0).await;
        town.start(0).await;
    }
    assert_eq!(town.node(0).counters.votes.get(), 0, "it only followed");
    // With what it has signed decided, it signs.
    town.start_each(1..4).await;
    town.grow_to(7).await;
    town.stop(1).await;
    town.grow_to(9).await;
    assert_follows_until(&town, None);
    town.agree_up_to(6);
    town.stop(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_the_key_does_not_stand_for_what_a_validator_has_forgotten() {
    let mut town = one_that_forgot("keyless").await;
    town.stop(0).await;
    town.plans[0].votes = false;
    town.start(0).await;
    begins(&town, FOLLOWS, 6).await;
    town.stop(0).await;
    town.plans[0].votes = true;
    town.start(0).await;
    assert_follows_until(&town, Some(6));
    town.stop(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_the_key_leaves_a_validator_what_it_remembers() {
    let mut town = Town::new("remembers", 4, 0).await;
    town.grow_to(5).await;
    town.stop_each(0..4).await;
    // Two of four have signed height 6 and could not decide it.
    town.set_goal(6);
    town.start_each(0..2).await;
    begins(&town, SIGNS, 6).await;
    let log = town.files(0).join(SIGNS);
    let is_empty = || std::fs::metadata(&log).is_ok_and(|file| file.len() <= HEAD_BYTES);
    eventually("it votes", || !is_empty()).await;
    town.stop(0).await;
    let remembered = std::fs::read(&log).expect("a log");
    town.plans[0].votes = false;
    town.start(0).await;
    begins(&town, FOLLOWS, 6).await;
    town.stop(0).await;
    assert_eq!(std::fs::read(&log).expect("a log"), remembered);
    town.plans[0].votes = true;
    town.start(0).await;
    assert_follows_until(&town, None);
    town.start_each(2..4).await;
    town.reaches(6).await;
    town.agree_up_to(6);
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_validator_that_may_not_sign_yet_follows_and_signs_as_soon_as_it_may() {
    let mut town = Town::new("held-back", 4, 0).await;
    town.grow_to(3).await;
    town.stop(0).await;
    town.plans[0].may_sign = CancellationToken::new();
    town.start(0).await;
    let counters = town.node(0).counters.clone();
    town.grow_to(6).await;
    assert_eq!(counters.votes.get(), 0);
    assert_follows_until(&town, None);
    // Without its votes the chain makes no blocks; with them it does again.
    town.stop(1).await;
    town.set_goal(8);
    assert!(town.plans[0].disk.stays_at(6).await, "it has signed");
    town.plans[0].may_sign.cancel();
    town.reaches(8).await;
    assert!(counters.votes.get() > 0);
    assert_eq!(counters.refusals.get(), 0);
    // It stays so.
    town.stop(0).await;
    town.start(0).await;
    town.grow_to(9).await;
}
