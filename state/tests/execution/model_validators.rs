//! What the model knows of the validators: who they are, and how votes change that.

use std::collections::BTreeMap;

use types::tx::ValidatorVote;
use types::{Address, PublicKey};

use crate::world::Who;

/// Who decides, and the votes on that.
#[derive(Default)]
pub struct ModelValidators {
    pub current: BTreeMap<PublicKey, u64>,
    pub next: Option<BTreeMap<PublicKey, u64>>,
    /// By candidate and voter: power and expiry.
    pub votes: BTreeMap<(PublicKey, Address), (u64, u64)>,
}

impl ModelValidators {
    pub fn new(first: &[(Who, u64)]) -> Self {
        let current = first.iter().map(|(who, power)| (who.public_key(), *power)).collect();
        Self { current, ..Self::default() }
    }

    fn latest(&self) -> &BTreeMap<PublicKey, u64> {
        self.next.as_ref().unwrap_or(&self.current)
    }

    pub fn obstacle(&self, who: Address, vote: &ValidatorVote) -> Option<&'static str> {
        let mut after = self.latest().clone();
        let before = after.remove(&vote.candidate_key).unwrap_or_default();
        let rules = [
            ("NOT_VALIDATOR", self.current.keys().any(|key| key.address() == who)),
            ("VALIDATOR_UNCHANGED", before != vote.power),
            ("VALIDATOR_SET_LIMIT", vote.power > 0 || !after.is_empty()),
        ];
        rules.into_iter().find(|(_, holds)| !holds).map(|(code, _)| code)
    }

    /// The changes that a block at `now` decides, as words.
    pub fn end_block(&mut self, now: u64) -> Vec<String> {
        self.votes.retain(|_, (_, expires_at)| *expires_at >= now);
        let mut changed = self.latest().clone();
        let mut words = Vec::new();
        let candidates: Vec<PublicKey> = self.votes.keys().map(|(key, _)| *key).collect();
        for key in candidates {
            for power in [0, 10, 1 << 48] {
                let is_for = |voter: &PublicKey| {
                    let vote = self.votes.get(&(key, voter.address()));
                    vote.is_some_and(|vote| vote.0 == power)
                };
                let sum = |all: bool| -> u128 {
                    let members = self.current.iter().filter(|(voter, _)| all || is_for(voter));
                    members.map(|(_, power)| u128::from(*power)).sum()
                };
                let mut after = changed.clone();
                after.remove(&key);
                let is_possible = power > 0 || !after.is_empty();
                let is_new = changed.get(&key).copied().unwrap_or_default() != power;
                if sum(false) * 3 > sum(true) * 2 && is_possible && is_new {
                    if power > 0 {
                        after.insert(key, power);
                    }
                    changed = after;
                    words.push(format!("{key}={power}"));
                    self.votes.retain(|(candidate, _), _| *candidate != key);
                }
            }
        }
        let is_new = !words.is_empty();
        self.current = self.latest().clone();
        self.next = is_new.then_some(changed);
        let current = &self.current;
        self.votes.retain(|(_, voter), _| current.keys().any(|key| key.address() == *voter));
        words
    }
}
