//! Several validators, and a follower.

use std::collections::BTreeMap;
use std::sync::Arc;

use consensus::{CertificateError, Network, ValidatorSet, peer_id, verify_certificate};
use tempfile::TempDir;
use types::Hash;

use crate::chain::{CHAIN, Disk, Goal, Node, Plan, free_address, key, node_key, set};

/// A body of several parts.
const FILLING: usize = 300_000;

struct Town {
    directory: TempDir,
    plans: Vec<Plan>,
    nodes: Vec<Option<Node>>,
}

impl Town {
    /// Validators and one follower, each with a goal of its own.
    async fn new(name: &str, validator_count: u8, follower_count: u8) -> Self {
        let sets = BTreeMap::from([(1, set(1..=validator_count))]);
        Self::with_sets(name, validator_count, follower_count, &sets).await
    }

    /// Nodes with a validator key and followers; who decides is said by height.
    async fn with_sets(
        name: &str,
        validator_count: u8,
        follower_count: u8,
        sets: &BTreeMap<u64, ValidatorSet>,
    ) -> Self {
        let seeds: Vec<u8> = (1..=validator_count + follower_count).collect();
        let addresses: Vec<String> = seeds.iter().map(|_| free_address()).collect();
        let peers: Vec<String> = seeds
            .iter()
            .zip(&addresses)
            .map(|(seed, address)| {
                format!("{address}/p2p/{}", peer_id(&node_key(*seed)).expect("a key"))
            })
            .collect();
        let plans = seeds
            .iter()
            .enumerate()
            .map(|(at, seed)| {
                let others = peers.iter().enumerate().filter(|(other, _)| *other != at);
                Plan {
                    name: format!("{name}-{seed}"),
                    seed: *seed,
                    votes: *seed <= validator_count,
                    network: Network::Peers {
                        listen: addresses[at].clone(),
                        peers: others.map(|(_, peer)| peer.clone()).collect(),
                        open: false,
                    },
                    genesis: Hash::ZERO,
                    disk: Disk::with_sets(sets.clone(), key(*seed).address(), FILLING),
                    goal: Goal::new(0),
                }
            })
            .collect();
        let directory = tempfile::tempdir().expect("a directory");
        let mut town = Self { directory, plans, nodes: Vec::new() };
        for at in 0..seeds.len() {
            town.nodes.push(None);
            town.start(at).await;
        }
        town
    }

    async fn start(&mut self, at: usize) {
        self.nodes[at] = Some(Node::start(&self.plans[at], self.directory.path()).await);
    }

    async fn stop(&mut self, at: usize) {
        self.nodes[at].take().expect("a running node").stop().await;
    }

    async fn stop_all(mut self) -> Vec<Arc<Disk>> {
        for node in self.nodes.iter_mut().filter_map(Option::take) {
            node.stop().await;
        }
        self.plans.iter().map(|plan| Arc::clone(&plan.disk)).collect()
    }

    fn set_goal(&self, height: u64) {
        for plan in &self.plans {
            plan.goal.set(height);
        }
    }

    /// Waits until all running nodes have the height.
    async fn reaches(&self, height: u64) {
        for (plan, node) in self.plans.iter().zip(&self.nodes) {
            if node.is_some() {
                plan.disk.reaches(height).await;
            }
        }
    }

    /// Checks that all nodes that have a block have the same one, and that it is certified.
    fn agree_up_to(&self, height: u64) {
        for height in 1..=height {
            let mut blocks = self.plans.iter().map(|plan| plan.disk.block(height));
            let (hash, _) = blocks.next().expect("a node");
            for (other, decided) in blocks {
                assert_eq!(hash, other, "height {height}");
                let checked = verify_certificate(
                    CHAIN,
                    &self.plans[0].disk.set_of(height),
                    height,
                    &hash,
                    &decided.certificate,
                );
                checked.expect("a valid certificate");
            }
        }
    }

    /// How many bodies the nodes sent whole because others asked for them.
    fn resent(&self) -> u64 {
        self.nodes.iter().flatten().map(|node| node.counters.bodies_resent.get()).sum()
    }

    /// How many outlines were not enough for a node.
    fn asked_for(&self, at: usize) -> u64 {
        let node = self.nodes[at].as_ref().expect("a running node");
        node.counters.incomplete_outlines.get()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outline_is_enough_for_those_who_know_what_it_names() {
    let town = Town::new("outline", 4, 1).await;
    town.set_goal(8);
    town.reaches(8).await;
    town.agree_up_to(8);
    assert_eq!(town.resent(), 0);
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lacks_what_an_outline_names_gets_the_block_whole_in_the_same_round() {
    let town = Town::new("lack", 4, 1).await;
    // All but one validator: without the whole block there is no quorum in a first round.
    let lacking = [1, 2, 3, 4];
    for at in lacking {
        town.plans[at].disk.lack();
    }
    town.set_goal(8);
    town.reaches(8).await;
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
async fn four_validators_and_a_follower_agree() {
    let town = Town::new("agree", 4, 1).await;
    town.set_goal(8);
    town.reaches(8).await;
    town.agree_up_to(8);
    let disk = &town.plans[0].disk;
    let mut proposers: Vec<_> = (1..=8).map(|height| disk.proposer(height)).collect();
    proposers.sort();
    proposers.dedup();
    assert!(proposers.len() > 1, "turns go round");
    let peers =
        town.nodes[0].as_ref().expect("a node").handle.control().peers().await.expect("peers");
    assert_eq!(peers.len(), 4);
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_of_four_go_on_and_the_fourth_catches_up() {
    let mut town = Town::new("catch-up", 4, 0).await;
    town.set_goal(3);
    town.reaches(3).await;
    town.stop(1).await;
    town.set_goal(8);
    town.reaches(8).await;
    assert!(town.plans[1].disk.height() < 8);
    town.start(1).await;
    town.reaches(8).await;
    town.set_goal(10);
    town.reaches(10).await;
    town.agree_up_to(10);
    let nodes = town.nodes.iter().flatten();
    assert_eq!(nodes.map(|node| node.handle.counters().refusals.get()).sum::<u64>(), 0);
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_validator_that_finds_a_block_due_wakes_the_others() {
    let town = Town::new("wake", 4, 0).await;
    town.set_goal(2);
    town.reaches(2).await;
    town.plans[2].goal.set(5);
    town.reaches(5).await;
    town.agree_up_to(5);
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_can_make_the_others_start_before_the_minimum_interval_is_over() {
    let town = Town::new("early", 4, 0).await;
    town.set_goal(2);
    town.reaches(2).await;
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
    let node = town.nodes[2].as_ref().expect("a node");
    let peers = node.handle.control().peers().await.expect("peers");
    assert!(peers.is_empty(), "{peers:?}");
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_block_is_voted_down_and_the_next_proposer_goes_on() {
    let town = Town::new("liar", 4, 0).await;
    let liar = &town.plans[3].disk;
    liar.lie();
    town.set_goal(5);
    town.reaches(5).await;
    town.agree_up_to(5);
    let liar_address = key(4).address();
    assert!((1..=5).all(|height| liar.proposer(height) != liar_address));
    let honest = town.nodes[0].as_ref().expect("a node");
    assert!(honest.handle.counters().invalid_proposals.get() > 0);
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
    town.set_goal(5);
    town.reaches(5).await;
    town.stop(3).await;
    town.set_goal(7);
    town.reaches(7).await;
    // A validator starts again just before the change.
    town.stop(0).await;
    town.start(0).await;
    town.set_goal(14);
    town.reaches(14).await;
    // A follower that was away from the beginning, and the one that was removed.
    town.start(5).await;
    town.start(3).await;
    town.set_goal(16);
    town.reaches(16).await;
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
    let removed = town.nodes[3].as_ref().expect("a node").handle.counters();
    assert_eq!(removed.votes.get(), 0, "it follows");
    let nodes = town.nodes.iter().flatten();
    assert_eq!(nodes.map(|node| node.handle.counters().refusals.get()).sum::<u64>(), 0);

    // With the set of another height the certificate proves nothing.
    let height = (4..=16).find(|height| signed(*height, newcomer)).expect("it signs");
    let (hash, decided) = disk.block(height);
    let wrong = verify_certificate(CHAIN, &disk.set_of(1), height, &hash, &decided.certificate);
    assert_eq!(wrong, Err(CertificateError::Stranger { address: newcomer }));
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_validator_that_lost_its_log_signs_again_when_what_it_signed_is_decided() {
    let mut town = Town::new("forgetful", 4, 0).await;
    town.set_goal(3);
    town.reaches(3).await;
    let backup = town.plans[0].disk.backup();
    town.set_goal(6);
    town.reaches(6).await;
    town.stop(0).await;
    town.plans[0].disk.restore(backup);
    let log = town.directory.path().join(&town.plans[0].name).join("consensus.wal");
    std::fs::remove_file(log).expect("a log");

    town.start(0).await;
    let node = town.nodes[0].as_ref().expect("a running node");
    let (control, counters) = (node.handle.control().clone(), node.counters.clone());
    town.reaches(6).await;
    assert_eq!(counters.votes.get(), 0, "it only followed");
    // Two others are enough only with its votes.
    town.stop(1).await;
    town.set_goal(9);
    town.reaches(9).await;
    assert_eq!(control.follows_until(), None);
    assert_eq!(counters.refusals.get(), 0);
    assert!(counters.votes.get() > 0);
}
