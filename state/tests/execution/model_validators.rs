//! What the model knows of the validators: who they are, and how votes and evidence change that.

use std::collections::{BTreeMap, BTreeSet};

use types::tx::{Evidence, ValidatorVote};
use types::{Address, PublicKey, Signature};

use crate::world::Who;

/// Who decides, and the votes on that.
#[derive(Default)]
pub struct ModelValidators {
    pub current: BTreeMap<PublicKey, u64>,
    pub next: Option<BTreeMap<PublicKey, u64>>,
    /// By candidate and voter: power and expiry.
    pub votes: BTreeMap<(PublicKey, Address), (u64, u64)>,
    /// The keys that never have power again.
    pub punished: BTreeSet<PublicKey>,
    /// Those of them that this block punishes.
    pub losses: BTreeSet<PublicKey>,
    /// Up to which height a key decided alone.
    alone: BTreeMap<PublicKey, u64>,
}

impl ModelValidators {
    pub fn new(first: &[(Who, u64)]) -> Self {
        let current = first.iter().map(|(who, power)| (who.public_key(), *power)).collect();
        Self { current, ..Self::default() }
    }

    fn latest(&self) -> &BTreeMap<PublicKey, u64> {
        self.next.as_ref().unwrap_or(&self.current)
    }

    /// Votes for keys without power that have not agreed, when v7 begins.
    pub fn drop_unaccepted(&mut self) {
        let members = self.latest().clone();
        self.votes.retain(|(key, _), (power, _)| *power == 0 || members.contains_key(key));
    }

    /// What is wrong with evidence in block `height`, on a chain with v7 from block `from` on.
    pub fn exoneration(
        &self,
        evidence: &Evidence,
        (from, height): (u64, u64),
        most: u64,
    ) -> Option<&'static str> {
        let Evidence { validator_key: key, height: at, second_signature, .. } = evidence;
        let is_alone = self.current.len() == 1 || self.alone.get(key).is_some_and(|to| at <= to);
        let mut others = self.latest().keys().filter(|other| *other != key);
        let is_last = others.all(|other| self.punished.contains(other));
        let is_member = self.current.contains_key(key) || self.latest().contains_key(key);
        let is_in_time = *at >= from && *at + most >= height;
        let is_proved = evidence.first_value != evidence.second_value
            && *second_signature != Signature::new([0; 64]);
        if self.punished.contains(key) || !is_member || !is_in_time || !is_proved {
            return Some("EVIDENCE_INVALID");
        }
        (is_alone || is_last).then_some("VALIDATOR_SET_LIMIT")
    }

    pub fn obstacle(
        &self,
        who: Address,
        vote: &ValidatorVote,
        is_v7: bool,
    ) -> Option<&'static str> {
        let mut after = self.latest().clone();
        let before = after.remove(&vote.candidate_key).unwrap_or_default();
        let has_agreed = vote.consent.get().unwrap().acceptance.is_some();
        let rules = [
            ("NOT_VALIDATOR", self.current.keys().any(|key| key.address() == who)),
            ("VALIDATOR_UNCHANGED", before != vote.power),
            ("VALIDATOR_SET_LIMIT", vote.power > 0 || !after.is_empty()),
            ("ACCEPTANCE_INVALID", !is_v7 || !self.punished.contains(&vote.candidate_key)),
            ("ACCEPTANCE_INVALID", !is_v7 || vote.power == 0 || before > 0 || has_agreed),
        ];
        rules.into_iter().find(|(_, holds)| !holds).map(|(code, _)| code)
    }

    /// The changes that a block at `now` decides, as words.
    pub fn end_block(&mut self, now: u64, v7: Option<u64>) -> Vec<String> {
        self.votes.retain(|_, (_, expires_at)| *expires_at >= now);
        let mut changed = self.latest().clone();
        let mut words = Vec::new();
        for key in std::mem::take(&mut self.losses) {
            self.votes.retain(|(candidate, _), _| *candidate != key);
            if changed.remove(&key).is_some() {
                words.push(format!("{key}=0"));
            }
        }
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
        if let (Some(height), Some(_), 1) = (v7, &self.next, self.current.len()) {
            self.alone.extend(self.current.keys().map(|key| (*key, height)));
        }
        self.current = self.latest().clone();
        self.next = is_new.then_some(changed);
        let current = &self.current;
        self.votes.retain(|(_, voter), _| current.keys().any(|key| key.address() == *voter));
        words
    }
}
