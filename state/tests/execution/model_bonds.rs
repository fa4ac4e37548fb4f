//! What the model knows of money at stake from v7 on: how runs are protected, what miners have bonded,
//! what is locked of that, and what was taken out and is not paid yet. Written from the protocol.

use std::collections::BTreeMap;

use types::tx::{AgentRequest, Protection};
use types::{Address, Hash};

/// How a run is protected; by default not at all.
#[derive(Clone, Default)]
pub struct ModelProtection {
    /// The only miners that may claim it; anybody if there are none.
    pub miners: Vec<Address>,
    pub claim_bond: i128,
    pub tokens_max: Option<u64>,
    pub refuse_ms: u64,
}

impl ModelProtection {
    pub fn of(request: &AgentRequest) -> Self {
        let Protection { miners, claim_bond, max_tokens_per_step, refuse_ms } =
            request.protection.get().unwrap();
        Self {
            miners: miners.iter().flatten().map(|miner| miner.address).collect(),
            claim_bond: claim_bond.map_or(0, |bond| i128::from(bond.get())),
            tokens_max: *max_tokens_per_step,
            refuse_ms: refuse_ms.unwrap_or_default(),
        }
    }

    pub fn obstacle(&self, miner: Address, free: i128) -> Option<&'static str> {
        if !self.miners.is_empty() && !self.miners.contains(&miner) {
            return Some("MINER_NOT_ALLOWED");
        }
        (self.claim_bond > free).then_some("BOND_TOO_SMALL")
    }
}

/// What the end of the block does to a bond.
struct Release {
    run: Hash,
    miner: Address,
    unlocked: i128,
    burned: i128,
}

/// The stakes of all miners.
#[derive(Default)]
pub struct ModelBonds {
    /// By miner: all of the bond, and what is locked of it.
    pub bonds: BTreeMap<Address, (i128, i128)>,
    /// What was taken out: by the time from which it is due, and by the miner.
    pub waiting: BTreeMap<(u64, Address), i128>,
    /// By submitter: rewards that were held, and those of them that it refused.
    pub figures: BTreeMap<Address, (u64, u64)>,
    releases: Vec<Release>,
}

impl ModelBonds {
    pub fn of(&self, miner: Address) -> (i128, i128) {
        self.bonds.get(&miner).copied().unwrap_or_default()
    }

    pub fn free(&self, miner: Address) -> i128 {
        let (bonded, locked) = self.of(miner);
        bonded - locked
    }

    pub fn bonded(&self) -> i128 {
        self.bonds.values().map(|(bonded, _)| bonded).sum()
    }

    pub fn add(&mut self, miner: Address, amount: i128) {
        self.bonds.entry(miner).or_default().0 += amount;
    }

    pub fn lock(&mut self, miner: Address, amount: i128) {
        self.bonds.entry(miner).or_default().1 += amount;
    }

    pub fn take_out(&mut self, miner: Address, amount: i128, due: u64) {
        self.add(miner, -amount);
        *self.waiting.entry((due, miner)).or_default() += amount;
    }

    /// What was locked for a run is free again at the end of the block, but for what is burned of it.
    pub fn release(&mut self, run: Hash, miner: Address, locked: i128, burned: i128) {
        if locked > 0 {
            let burned = burned.min(locked);
            self.releases.push(Release { run, miner, unlocked: locked - burned, burned });
        }
    }

    /// The first payments that are due before `now`, with their words.
    pub fn pay(&mut self, now: u64, most: usize) -> Vec<(Address, i128, String)> {
        let mut due: Vec<_> = self.waiting.keys().filter(|(due, _)| *due < now).copied().collect();
        due.sort_by_key(|(due, miner)| (*due, miner.to_string()));
        due.truncate(most);
        let pay = |key: (u64, Address)| {
            let amount = self.waiting.remove(&key).unwrap();
            (key.1, amount, format!("{} gets {amount}", key.1))
        };
        due.into_iter().map(pay).collect()
    }

    /// The end of a block: what was burned of bonds, and what happened to them as words.
    pub fn end_block(&mut self) -> (i128, Vec<String>) {
        let mut sum = 0;
        let mut words = Vec::new();
        for Release { run, miner, unlocked, burned } in std::mem::take(&mut self.releases) {
            let bond = self.bonds.get_mut(&miner).unwrap();
            bond.0 -= burned;
            bond.1 -= unlocked + burned;
            sum += burned;
            words.push(format!("{run} unlocks {unlocked}, burns {burned}"));
        }
        (sum, words)
    }
}
