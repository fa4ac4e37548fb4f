//! Several nodes, each with a goal of its own, that are started, stopped and compared.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use consensus::{Network, ValidatorSet, peer_id};
use tempfile::TempDir;
use types::Hash;

use crate::chain::{Disk, Goal, Node, Plan, at_once, eventually, free_address, key, node_key, set};

/// A body of several parts.
const FILLING: usize = 300_000;

/// Several nodes that know each other.
pub(crate) struct Town {
    pub(crate) directory: TempDir,
    pub(crate) plans: Vec<Plan>,
    pub(crate) nodes: Vec<Option<Node>>,
}

impl Town {
    /// Validators and one follower, each with a goal of its own.
    pub(crate) async fn new(name: &str, validator_count: u8, follower_count: u8) -> Self {
        let sets = BTreeMap::from([(1, set(1..=validator_count))]);
        Self::with_sets(name, validator_count, follower_count, &sets).await
    }

    /// Nodes with a validator key and followers; who decides is said by height.
    pub(crate) async fn with_sets(
        name: &str,
        validator_count: u8,
        follower_count: u8,
        sets: &BTreeMap<u64, ValidatorSet>,
    ) -> Self {
        let mut town = Self::planned(name, validator_count, follower_count, sets);
        town.start_all().await;
        town
    }

    /// The same without starting them.
    pub(crate) fn planned(
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
                    disk: Disk::new(sets.clone(), key(*seed).address(), FILLING),
                    goal: Goal::new(0),
                    may_sign: at_once(),
                }
            })
            .collect();
        let directory = tempfile::tempdir().expect("a directory");
        let nodes = seeds.iter().map(|_| None).collect();
        Self { directory, plans, nodes }
    }

    pub(crate) async fn start_all(&mut self) {
        self.start_each(0..self.plans.len()).await;
    }

    pub(crate) async fn start_each(&mut self, nodes: impl IntoIterator<Item = usize>) {
        for at in nodes {
            self.start(at).await;
        }
    }

    pub(crate) async fn start(&mut self, at: usize) {
        self.nodes[at] = Some(Node::start(&self.plans[at], self.directory.path()).await);
    }

    pub(crate) async fn stop(&mut self, at: usize) {
        self.nodes[at].take().expect("a running node").stop().await;
    }

    pub(crate) async fn stop_each(&mut self, nodes: impl IntoIterator<Item = usize>) {
        for at in nodes {
            self.stop(at).await;
        }
    }

    pub(crate) fn node(&self, at: usize) -> &Node {
        self.nodes[at].as_ref().expect("a running node")
    }

    /// Waits until a node has started its network again because others did not hear it.
    pub(crate) async fn restarts_its_network(&self, at: usize) {
        let restarts = &self.node(at).counters.network_restarts;
        eventually("it starts its network again", || restarts.get() > 0).await;
    }

    pub(crate) async fn stop_all(mut self) -> Vec<Arc<Disk>> {
        for node in self.nodes.iter_mut().filter_map(Option::take) {
            node.stop().await;
        }
        self.plans.iter().map(|plan| Arc::clone(&plan.disk)).collect()
    }

    /// Where a node's engine keeps its files.
    pub(crate) fn files(&self, at: usize) -> PathBuf {
        self.directory.path().join(&self.plans[at].name)
    }

    pub(crate) fn set_goal(&self, height: u64) {
        for plan in &self.plans {
            plan.goal.set(height);
        }
    }

    /// Sets the goal of all nodes and waits until all that run have reached it.
    pub(crate) async fn grow_to(&self, height: u64) {
        self.set_goal(height);
        self.reaches(height).await;
    }

    /// Waits until all running nodes have the height.
    pub(crate) async fn reaches(&self, height: u64) {
        for (plan, node) in self.plans.iter().zip(&self.nodes) {
            if node.is_some() {
                plan.disk.reaches(height).await;
            }
        }
    }

    /// Checks that all nodes that have a block have the same one, and that it is certified.
    pub(crate) fn agree_up_to(&self, height: u64) {
        let first = &self.plans[0].disk;
        for height in 1..=height {
            for disk in self.plans.iter().map(|plan| &plan.disk) {
                assert_eq!(first.block(height).0, disk.block(height).0, "height {height}");
                disk.verified(height, &first.set_of(height)).expect("a valid certificate");
            }
        }
    }

    /// How many bodies the nodes sent whole because others asked for them.
    pub(crate) fn resent(&self) -> u64 {
        self.nodes.iter().flatten().map(|node| node.counters.bodies_resent.get()).sum()
    }

    /// How many compact blocks were not enough for a node.
    pub(crate) fn asked_for(&self, at: usize) -> u64 {
        self.node(at).counters.incomplete_compact_blocks.get()
    }

    /// How often running nodes refused to sign.
    pub(crate) fn refusals(&self) -> u64 {
        self.nodes.iter().flatten().map(|node| node.counters.refusals.get()).sum()
    }
}
