//! Forks that are to come, the rules that votes can change, and what places in blocks cost.

use std::collections::{BTreeMap, BTreeSet};

use consensus::ValidatorSet;
use rpc::ports::{
    self, ForkState, ForkVoter, ForkVotes, IncludedTx, NextRules, NextValue, ParamState,
    ParamVoter, ParamVotes, PortFault, PunishedKey, Slice, Stake,
};
use state::forks::{self, FixedFork};
use state::params::{CHANGEABLE, Changeable};
use state::rule_votes::{self, Subject};
use state::tables::{self, ForkRows, ParamRow, ParamRows, RuleVote};
use state::view::{self, Range};
use state::{Rules, StorageError, fees};
use store::{ForkCount, PunishedPage, Snapshot};
use types::{Address, Amount, BlockEvents, BlockFees, Fork, Forks, PublicKey, TxLocation};

use super::{Reads, fault};

const ALL: Range<'static> = Range { from: &[], to: None, limit: usize::MAX };

/// How many transactions are read at most to tell what a vote paid.
const OWN_TXS_READ: usize = 8;

/// Votes on one subject.
type Votes = Vec<(Address, RuleVote)>;

impl ports::ForkCounts for Reads {
    fn forks(&self) -> Result<ForkVotes, PortFault> {
        let ForkCount { tally, missing } = self.chain.forks();
        let set = self.chain.validators().next;
        let snapshot = self.snapshot();
        let doing = || fault("reading votes for forks");
        let rows: BTreeMap<String, FixedFork> =
            view::scan::<ForkRows>(&snapshot, ALL).map_err(doing())?.into_iter().collect();
        let mut cast = votes(&snapshot).map_err(doing())?;
        let mut names: BTreeSet<String> = forks::COUNTED.map(str::to_owned).into();
        names.extend(tally.fixed().keys().chain(rows.keys()).cloned());
        names.extend(cast.keys().filter_map(|subject| match subject {
            Subject::Fork(name) => Some(name.clone()),
            Subject::Param(_) => None,
        }));
        let states = names.into_iter().map(|fork| {
            let counted = tally.votes().iter().filter(|(_, vote)| vote.fork == fork);
            let counted = counted.map(|(voter, vote)| (*voter, (vote.height, vote.at)));
            let of_state = cast.remove(&Subject::Fork(fork.clone())).unwrap_or_default();
            let of_state =
                of_state.into_iter().map(|(voter, vote)| (voter, (vote.height, vote.at)));
            let votes: BTreeMap<Address, (u64, u64)> = counted.chain(of_state).collect();
            let votes = votes.into_iter().map(|(address, (height, block_index))| ForkVoter {
                address,
                power: power(&set, &address),
                height,
                block_index,
            });
            let fixed = rows.get(&fork).or_else(|| tally.fixed().get(&fork));
            ForkState {
                is_known: forks::is_known(&fork),
                fixed: fixed.map(|fixed| (fixed.height, fixed.since)),
                votes: votes.collect(),
                fork,
            }
        });
        Ok(ForkVotes {
            forks: states.collect(),
            total_power: total_power(&set),
            missing: missing.map(|blocks| (*blocks.start(), *blocks.end())),
        })
    }
}

impl ports::Rules for Reads {
    fn stake(&self, address: &Address, limit: usize) -> Result<Stake, PortFault> {
        let snapshot = self.snapshot();
        let read = || -> Result<Stake, StorageError> {
            let bond = snapshot.get::<tables::Bonds>(address)?.unwrap_or_default();
            let submitter = snapshot.get::<tables::FiguresOfSubmitters>(address)?;
            let unbonding = snapshot.unbonding(address, limit)?;
            Ok(Stake { bond, unbonding, submitter: submitter.unwrap_or_default() })
        };
        read().map_err(fault("reading a bond"))
    }

    fn next_rules(&self) -> Result<NextRules, PortFault> {
        let (height, rules) =
            self.rules(&self.snapshot()).map_err(fault("reading the rules of the next block"))?;
        let base_fee = rules.price.map(|price| price.base_fee);
        Ok(NextRules {
            height,
            v7_from: rules.forks.v7,
            v8_from: rules.forks.v8,
            params: rules.params,
            base_fee,
        })
    }

    fn params(&self) -> Result<ParamVotes, PortFault> {
        let set = self.chain.validators().next;
        let snapshot = self.snapshot();
        let doing = || fault("reading votes for parameters");
        let (height, rules) = self.rules(&snapshot).map_err(doing())?;
        let mut cast = votes(&snapshot).map_err(doing())?;
        let rows: BTreeMap<String, ParamRow> =
            view::scan::<ParamRows>(&snapshot, ALL).map_err(doing())?.into_iter().collect();
        // Those of v7 are told before it is fixed, so that people see what it brings.
        let is_told = |param: &&Changeable| {
            param.fork == Fork::V7 || rules.forks.height_of(param.fork) != Forks::NEVER
        };
        let states = CHANGEABLE.iter().filter(is_told).map(|param| {
            let votes = cast.remove(&Subject::Param(param.name.to_owned())).unwrap_or_default();
            let votes = votes.into_iter().map(|(address, vote)| ParamVoter {
                address,
                power: power(&set, &address),
                value: vote.value,
                height: vote.height,
                block_index: vote.at,
            });
            let next = rows.get(param.name).and_then(|row| row.next);
            let next = next.filter(|next| next.height > height);
            ParamState {
                name: param.name,
                value: param.get(&rules.params),
                min: param.min,
                max: param.max,
                next: next.map(|next| NextValue { value: next.value, height: next.height }),
                votes: votes.collect(),
            }
        });
        Ok(ParamVotes { params: states.collect(), total_power: total_power(&set) })
    }

    fn inclusion_fee(&self, bytes: u64, base_fee: u64) -> Amount {
        fees::inclusion_fee(bytes, base_fee)
    }

    fn paid(&self, included: &IncludedTx) -> Result<Option<Amount>, PortFault> {
        let TxLocation { height, .. } = included.location;
        let snapshot = self.snapshot();
        let read = || -> Result<Option<Amount>, StorageError> {
            let Some(BlockFees { base_fee, .. }) = self.fees_of(&snapshot, height)? else {
                return Ok(None);
            };
            let has_voted = if fees::is_vote(&included.tx) {
                has_voted_before(&snapshot, included)?
            } else {
                Some(false)
            };
            let per_kib = if fees::is_at_floor(&included.tx) {
                snapshot.fee_floor(height)?
            } else {
                Some(base_fee)
            };
            let Some((has_voted, per_kib)) = has_voted.zip(per_kib) else { return Ok(None) };
            let charged = fees::charged_bytes(&included.tx, || has_voted);
            Ok(Some(fees::inclusion_fee(charged, per_kib)))
        };
        read().map_err(fault("reading what a transaction paid"))
    }
}

impl ports::Keys for Reads {
    fn punished(
        &self,
        after: Option<PublicKey>,
        limit: usize,
    ) -> Result<Slice<PunishedKey, PublicKey>, PortFault> {
        let page = self.snapshot().punished_keys(after.as_ref(), limit);
        let PunishedPage { keys, next } = page.map_err(fault("listing punished keys"))?;
        let item = |(key, punished_at)| PunishedKey { key, punished_at };
        Ok(Slice { items: keys.into_iter().map(item).collect(), next })
    }
}

impl Reads {
    /// The height of the next block and its rules.
    pub(super) fn rules(&self, snapshot: &Snapshot<'_>) -> Result<(u64, Rules), StorageError> {
        let height = snapshot.tip()?.height.saturating_add(1);
        Ok((height, Rules::at(&self.chain.spec().rules, snapshot, height)?))
    }

    /// What the places in a block cost; none before v7.
    pub(super) fn fees_of(
        &self,
        snapshot: &Snapshot<'_>,
        height: u64,
    ) -> Result<Option<BlockFees>, StorageError> {
        if let Some(recent) = self.chain.recent(height) {
            return Ok(recent.events.as_ref().and_then(BlockEvents::fees));
        }
        snapshot.fees(height)
    }
}

/// Whether the sender of a vote had voted before it in the same block, which makes the vote cost
/// something. None if the block holds more than [`OWN_TXS_READ`] transactions before it that concern the
/// sender: this is asked by strangers, and must not read a whole block.
fn has_voted_before(
    snapshot: &Snapshot<'_>,
    vote: &IncludedTx,
) -> Result<Option<bool>, StorageError> {
    let (sender, location) = (vote.tx.from(), vote.location);
    let mut places = snapshot.account_places(&sender, Some(location), OWN_TXS_READ + 1)?;
    places.retain(|place| place.height == location.height);
    if places.len() > OWN_TXS_READ {
        return Ok(None);
    }
    let before = snapshot.transactions(&places)?;
    Ok(Some(before.iter().any(|tx| tx.from() == sender && fees::is_vote(tx))))
}

/// The votes that stand in the state, by subject, in order of voters.
fn votes(snapshot: &Snapshot<'_>) -> Result<BTreeMap<Subject, Votes>, StorageError> {
    let mut by_subject: BTreeMap<Subject, Votes> = BTreeMap::new();
    for ((voter, text), vote) in rule_votes::votes(snapshot)? {
        // The row that says in which block a validator voted last has no subject.
        let Some(subject) = Subject::parse(&text) else { continue };
        by_subject.entry(subject).or_default().push((voter, vote));
    }
    Ok(by_subject)
}

fn power(set: &ValidatorSet, address: &Address) -> u64 {
    set.by_address(address).map_or(0, |validator| validator.power)
}

fn total_power(set: &ValidatorSet) -> u128 {
    let powers = set.validators().iter().map(|validator| u128::from(validator.power));
    powers.fold(0, u128::saturating_add)
}
