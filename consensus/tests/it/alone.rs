//! A chain of one validator.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use consensus::{ConsensusFault, Network, StartError};
use tempfile::TempDir;
use types::Hash;

use crate::chain::{Disk, Goal, Node, Plan, at_once, key, set};

struct Home {
    directory: TempDir,
    plan: Plan,
}

impl Home {
    fn new(name: &str) -> Self {
        let disk = Disk::new(BTreeMap::from([(1, set([1]))]), key(1).address(), 100);
        let plan = Plan {
            name: name.to_owned(),
            seed: 1,
            votes: true,
            network: Network::Alone,
            genesis: Hash::ZERO,
            disk,
            goal: Goal::new(0),
            may_sign: at_once(),
        };
        Self { directory: tempfile::tempdir().expect("a directory"), plan }
    }

    async fn start(&self) -> Node {
        Node::start(&self.plan, self.path()).await
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Lets blocks come up to `height` and waits for the last.
    async fn grow_to(&self, height: u64) {
        self.plan.goal.set(height);
        self.plan.disk.reaches(height).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_come_when_they_are_due_and_only_then() {
    let home = Home::new("alone-due");
    let node = home.start().await;
    home.grow_to(3).await;
    home.grow_to(5).await;
    assert_eq!(home.plan.disk.height(), 5);
    node.stop().await;
    assert_eq!(home.plan.disk.height(), 5, "nobody asked for more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_block_has_a_certificate_that_anyone_can_check() {
    let home = Home::new("alone-certificate");
    let node = home.start().await;
    home.grow_to(3).await;
    node.stop().await;
    for height in 1..=3 {
        let certificate = home.plan.disk.verified(height, &set([1])).expect("a valid certificate");
        assert_eq!(certificate.signatures.len(), 1);
        assert!(home.plan.disk.verified(height, &set([2])).is_err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_goes_on_where_the_chain_was() {
    let home = Home::new("alone-restart");
    for round in 1..=3 {
        let node = home.start().await;
        home.grow_to(2 * round).await;
        let counters = node.handle.counters().clone();
        node.stop().await;
        assert_eq!((counters.commits.get(), counters.refusals.get()), (2, 0));
    }
    assert_eq!(home.plan.disk.height(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proposal_from_before_a_crash_is_finished_without_being_asked() {
    let home = Home::new("alone-unfinished");
    home.plan.disk.faults().broken_from = Some(3);
    let node = home.start().await;
    home.plan.goal.set(3);
    assert!(matches!(node.fault().await, ConsensusFault::Ledger { height: 3, .. }));
    assert_eq!(home.plan.disk.height(), 2);

    home.plan.disk.faults().broken_from = None;
    home.plan.goal.set(0);
    let node = home.start().await;
    home.plan.disk.reaches(3).await;
    assert_eq!(node.handle.counters().refusals.get(), 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_backup_does_not_make_the_key_sign_twice() {
    let home = Home::new("alone-backup");
    let node = home.start().await;
    home.grow_to(2).await;
    let backup = home.plan.disk.backup();
    home.grow_to(4).await;
    node.stop().await;

    home.plan.disk.restore(backup);
    let refused = Node::refused(&home.plan, home.path()).await;
    assert!(matches!(refused, StartError::Amnesia { signed: 4, tip: 2, .. }), "{refused}");
    assert!(refused.forbids_restart());
    assert_eq!(home.plan.disk.height(), 2);
}

/// Drops everything that runs, wherever it is, except for writes that have begun.
#[test]
fn sudden_ends_lose_nothing_and_never_contradict() {
    let home = Home::new("alone-sudden");
    home.plan.goal.set(u64::MAX);
    for end in 1..=12 {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let before = home.plan.disk.height();
        let node = runtime.block_on(async {
            let node = home.start().await;
            home.plan.disk.reaches(before + end % 3 + 1).await;
            node
        });
        assert_eq!(node.handle.counters().refusals.get(), 0);
        runtime.shutdown_timeout(Duration::from_secs(60));
        drop(node);
    }
    let blocks = home.plan.disk.height();
    assert!(blocks >= 24, "{blocks}");
    for height in 1..=blocks {
        home.plan.disk.verified(height, &set([1])).expect("a valid certificate");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_due_block_takes_milliseconds() {
    let home = Home::new("alone-latency");
    let node = home.start().await;
    home.grow_to(1).await;
    let blocks = 20;
    let began = tokio::time::Instant::now();
    for height in 2..2 + blocks {
        home.grow_to(u64::from(height)).await;
    }
    let each = began.elapsed() / blocks;
    println!("{each:?} from due to committed");
    assert!(each < Duration::from_secs(1), "{each:?}");
    node.stop().await;
}
