//! What clients were told: the transactions that they saw confirmed, and the requests that failed.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use crate::breakpoint::lock;

/// A transaction that a client saw included.
#[derive(Clone, Debug)]
pub struct Confirmed {
    pub hash: String,
    pub height: u64,
}

#[derive(Debug, Default)]
struct Entries {
    confirmed: Vec<Confirmed>,
    /// Requests that failed although the node was not meant to be away.
    failures: Vec<String>,
    /// Failures of nodes that were meant to be away.
    excused: usize,
    away: BTreeSet<usize>,
}

/// What all clients of a load were told.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Entries>);

impl Ledger {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        lock(&self.0)
    }

    pub fn confirm(&self, hash: String, height: u64) {
        self.entries().confirmed.push(Confirmed { hash, height });
    }

    /// Says that requests to this node may fail from now on.
    pub fn excuse(&self, node: usize) {
        self.entries().away.insert(node);
    }

    /// Says that requests to this node may no longer fail.
    pub fn expect(&self, node: usize) {
        self.entries().away.remove(&node);
    }

    pub fn is_away(&self, node: usize) -> bool {
        self.entries().away.contains(&node)
    }

    /// Notes a request that failed; `was_away` if the node was meant to be away when it began.
    pub fn fail(&self, node: usize, was_away: bool, why: String) {
        let mut entries = self.entries();
        if was_away || entries.away.contains(&node) {
            entries.excused += 1;
        } else {
            entries.failures.push(format!("node {node}: {why}"));
        }
    }

    pub fn confirmed(&self) -> Vec<Confirmed> {
        self.entries().confirmed.clone()
    }

    pub fn confirmed_count(&self) -> usize {
        self.entries().confirmed.len()
    }

    pub fn failures(&self) -> Vec<String> {
        self.entries().failures.clone()
    }

    pub fn excused(&self) -> usize {
        self.entries().excused
    }
}
