//! The validator set: who decides which height, and how votes change it (docs/protocol.md section
//! 5.11).
//!
//! ```text
//!   end of block h    tally of the votes by the set of h
//!                         │ a candidate with more than two thirds
//!                         ▼
//!   state after h     current = set of h + 1      next = set of h + 2
//!   header of h + 1   carries the root of that state, and is signed by the set of h + 1
//! ```
//!
//! So whoever knows the set of a height can prove the sets of the two that follow, and the engine
//! is told each set a whole block before it is needed.

use std::collections::{BTreeMap, BTreeSet};

use types::params::VALIDATORS_MAX;
use types::{Address, Event, KeyStanding, OpenVote, PublicKey, SetMember, ValidatorSets};

use crate::draft::Draft;
use crate::error::StorageError;
use crate::rules::Rules;
use crate::tables::{ConsensusKeys, ValidatorHistory, ValidatorVotes, Validators};
use crate::view::{self, Range, Read};

/// A vote with its place: who voted, on whom, and what.
pub type CastVote = ((Address, PublicKey), OpenVote);

/// The sets of the next two heights; none on a chain whose validators never change.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn sets(state: &dyn Read) -> Result<Option<ValidatorSets>, StorageError> {
    view::get::<Validators>(state, &())
}

/// The votes that count, by voter and candidate. Each of at most [`VALIDATORS_MAX`] validators has
/// at most [`types::params::VALIDATOR_VOTES_MAX`].
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn votes(state: &dyn Read) -> Result<Vec<CastVote>, StorageError> {
    view::scan::<ValidatorVotes>(state, Range { from: &[], to: None, limit: usize::MAX })
}

/// Writes the first set of a chain that can change it: it decides from block 1 on.
pub fn put_first(draft: &mut Draft, members: impl IntoIterator<Item = SetMember>) {
    let mut current: Vec<SetMember> = members.into_iter().collect();
    current.sort_by_key(address);
    draft.put::<ValidatorHistory>(&1, &current);
    draft.put::<Validators>(&(), &ValidatorSets { since: 1, current, next: None });
}

/// Why a set cannot be changed as asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChangeError {
    /// The candidate has that power already.
    Unchanged,
    /// Nobody would be left.
    Empty,
    /// There would be more than [`VALIDATORS_MAX`].
    TooMany,
}

/// The power of an address in a set; 0 for a stranger.
pub(crate) fn power_of(set: &[SetMember], who: &Address) -> u64 {
    let found = set.iter().find(|member| address(member) == *who);
    found.map_or(0, |member| member.power)
}

/// The key of an address in a set.
pub(crate) fn key_of(set: &[SetMember], who: &Address) -> Option<PublicKey> {
    set.iter().map(|member| member.public_key).find(|key| key.address() == *who)
}

/// The set with one validator added, changed or (power 0) removed.
pub(crate) fn change(
    set: &[SetMember],
    public_key: PublicKey,
    power: u64,
) -> Result<Vec<SetMember>, ChangeError> {
    let candidate = public_key.address();
    if power_of(set, &candidate) == power {
        return Err(ChangeError::Unchanged);
    }
    let mut changed: Vec<SetMember> =
        set.iter().filter(|member| address(member) != candidate).copied().collect();
    if power > 0 {
        changed.push(SetMember { public_key, power });
        changed.sort_by_key(address);
    }
    match changed.len() {
        0 => Err(ChangeError::Empty),
        1..=VALIDATORS_MAX => Ok(changed),
        _ => Err(ChangeError::TooMany),
    }
}

/// The set that is decided furthest ahead: that of two heights after the latest block.
pub(crate) fn latest(sets: &ValidatorSets) -> &[SetMember] {
    sets.next.as_ref().unwrap_or(&sets.current)
}

/// Block v7 drops the open votes that would give power to a key without any: nobody knows whether its
/// holder agrees.
pub(crate) fn drop_unaccepted(draft: &mut Draft) -> Result<(), StorageError> {
    let Some(sets) = sets(draft)? else { return Ok(()) };
    for ((voter, candidate), vote) in votes(draft)? {
        if vote.power > 0 && power_of(latest(&sets), &candidate.address()) == 0 {
            draft.delete::<ValidatorVotes>(&(voter, candidate));
        }
    }
    Ok(())
}

/// The keys that have power at one of the next two heights.
#[must_use]
pub fn keys(sets: &ValidatorSets) -> BTreeSet<PublicKey> {
    let both = sets.current.iter().chain(sets.next.iter().flatten());
    both.map(|member| member.public_key).collect()
}

/// Whether there was evidence against a key, so that it never has power again.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn is_punished(state: &dyn Read, key: &PublicKey) -> Result<bool, StorageError> {
    let standing = view::get::<ConsensusKeys>(state, key)?;
    Ok(standing.is_some_and(|standing| standing.punished_at.is_some()))
}

/// The end of block `height`: punished keys lose their power, votes lapse, changes that have their votes
/// are made, and the sets move on by one height. Answers the changes, and that a changed set decides
/// from now on.
pub(crate) fn end_block(
    draft: &mut Draft,
    rules: &Rules,
    height: u64,
    timestamp: u64,
) -> Result<Vec<Event>, StorageError> {
    const LAST: StorageError = StorageError::Inconsistent { what: "the height overflows" };
    let Some(before) = sets(draft)? else { return Ok(Vec::new()) };
    let cast = votes(draft)?;
    let punished = draft.take_punished();
    if cast.is_empty() && before.next.is_none() && punished.is_empty() {
        return Ok(Vec::new());
    }
    let (next_height, effective) =
        (height.checked_add(1).ok_or(LAST)?, height.checked_add(2).ok_or(LAST)?);
    let counts = |((_, candidate), vote): &&CastVote| {
        vote.expires_at >= timestamp && !punished.contains(candidate)
    };
    let counted: Vec<CastVote> = cast.iter().filter(counts).copied().collect();
    let mut changed: Option<Vec<SetMember>> = None;
    let mut events = Vec::new();
    let losses = punished.iter().map(|key| (*key, 0));
    for (public_key, power) in losses.chain(passed(&before.current, &counted)) {
        // No vote for a punished key is taken, so this only says it once more.
        if power > 0 && is_punished(draft, &public_key)? {
            continue;
        }
        let set = changed.as_deref().unwrap_or_else(|| latest(&before));
        // A change that is not possible now stays open until it is, or lapses. A punished key that is
        // not in the set leaves anyway; that others stay was checked.
        let Ok(set) = change(set, public_key, power) else { continue };
        changed = Some(set);
        events.push(Event::ValidatorChanged { public_key, power, height: effective });
    }
    if let Some(set) = &changed {
        draft.put::<ValidatorHistory>(&effective, set);
    }
    let is_activated = before.next.is_some();
    let has_moved = is_activated || changed.is_some();
    if is_activated && rules.is_v7() {
        note_alone(draft, &before.current, height)?;
    }
    let after = match before.next {
        Some(current) => ValidatorSets { since: next_height, current, next: changed },
        None => ValidatorSets { next: changed, ..before },
    };
    let powers = powers(&after.current);
    let is_decided = |candidate: &PublicKey| {
        events.iter().any(|event| {
            matches!(event, Event::ValidatorChanged { public_key, .. } if public_key == candidate)
        })
    };
    for ((voter, candidate), vote) in &cast {
        let has_lapsed = vote.expires_at < timestamp
            || !powers.contains_key(voter)
            || punished.contains(candidate);
        if has_lapsed || is_decided(candidate) {
            draft.delete::<ValidatorVotes>(&(*voter, *candidate));
        }
    }
    if has_moved {
        draft.put::<Validators>(&(), &after);
    }
    if is_activated {
        events.push(Event::ValidatorSetActivated { height: next_height });
    }
    Ok(events)
}

/// Notes until when a validator decided alone, if the set of this height has no other.
fn note_alone(draft: &mut Draft, set: &[SetMember], height: u64) -> Result<(), StorageError> {
    let [SetMember { public_key, .. }] = set else { return Ok(()) };
    let standing = draft.get::<ConsensusKeys>(public_key)?.unwrap_or_default();
    let standing = KeyStanding { alone_until: Some(height), ..standing };
    draft.put::<ConsensusKeys>(public_key, &standing);
    Ok(())
}

/// The changes that more than two thirds of the power of `set` voted for, by candidate.
fn passed(set: &[SetMember], votes: &[CastVote]) -> BTreeMap<PublicKey, u64> {
    let powers = powers(set);
    let mut tally: BTreeMap<(PublicKey, u64), u128> = BTreeMap::new();
    for ((voter, candidate), vote) in votes {
        let sum = tally.entry((*candidate, vote.power)).or_default();
        let power = powers.get(voter).copied().unwrap_or_default();
        *sum = sum.saturating_add(u128::from(power));
    }
    let total = set.iter().map(|member| u128::from(member.power)).fold(0, u128::saturating_add);
    let quorum =
        tally.into_iter().filter(|(_, power)| power.saturating_mul(3) > total.saturating_mul(2));
    quorum.map(|(change, _)| change).collect()
}

/// The powers of a set by address: an address is a hash, and there may be many votes.
fn powers(set: &[SetMember]) -> BTreeMap<Address, u64> {
    set.iter().map(|member| (address(member), member.power)).collect()
}

/// The address of a member of a set.
#[must_use]
pub fn address(member: &SetMember) -> Address {
    member.public_key.address()
}
