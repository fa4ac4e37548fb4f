//! The validators of a height, and whose turn it is.

use std::fmt;

use types::{Address, PublicKey};

pub use types::params::{POWER_MAX, VALIDATORS_MAX};

/// One validator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validator {
    /// Derived from the key.
    pub address: Address,
    /// The key that votes are signed with.
    pub public_key: PublicKey,
    /// Voting power, 1 to [`POWER_MAX`].
    pub power: u64,
}

/// A non-empty set of validators, sorted by address.
#[derive(Clone, PartialEq, Eq)]
pub struct ValidatorSet {
    validators: Vec<Validator>,
    total_power: u64,
    /// Greatest common divisor of the powers.
    unit: u64,
    /// Step of the proposer sequence, coprime to `total_power / unit`.
    stride: u64,
}

/// Why validators are not a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidatorSetError {
    /// Nobody would decide.
    #[error("a validator set has at least one validator")]
    Empty,
    /// More than [`VALIDATORS_MAX`].
    #[error("{got} validators, at most {VALIDATORS_MAX} are possible")]
    TooMany {
        /// How many there are.
        got: usize,
    },
    /// Zero or more than [`POWER_MAX`].
    #[error("validator {address} has power {power}, it must be 1 to {POWER_MAX}")]
    Power {
        /// Whose.
        address: Address,
        /// What was given.
        power: u64,
    },
    /// The same key twice.
    #[error("validator {address} is listed twice")]
    Duplicate {
        /// Whose.
        address: Address,
    },
}

impl ValidatorSet {
    /// Makes a set of keys and powers, in any order.
    ///
    /// # Errors
    /// [`ValidatorSetError`] for an empty or too large set, a power out of bounds, a key twice.
    pub fn new(
        members: impl IntoIterator<Item = (PublicKey, u64)>,
    ) -> Result<Self, ValidatorSetError> {
        let mut validators: Vec<Validator> = members
            .into_iter()
            .map(|(public_key, power)| Validator {
                address: public_key.address(),
                public_key,
                power,
            })
            .collect();
        validators.sort_by_key(|validator| validator.address);
        if validators.is_empty() {
            return Err(ValidatorSetError::Empty);
        }
        if validators.len() > VALIDATORS_MAX {
            return Err(ValidatorSetError::TooMany { got: validators.len() });
        }
        if let Some(bad) = validators.iter().find(|v| v.power == 0 || v.power > POWER_MAX) {
            return Err(ValidatorSetError::Power { address: bad.address, power: bad.power });
        }
        for pair in validators.windows(2) {
            if let [first, second] = pair
                && first.address == second.address
            {
                return Err(ValidatorSetError::Duplicate { address: first.address });
            }
        }
        let total_power = validators.iter().map(|validator| validator.power).sum();
        let unit = validators.iter().fold(0, |divisor, v| gcd(divisor, v.power));
        let stride = golden_stride(total_power / unit);
        Ok(Self { validators, total_power, unit, stride })
    }

    /// The validators, sorted by address.
    #[must_use]
    pub fn validators(&self) -> &[Validator] {
        &self.validators
    }

    /// The validator with this address.
    #[must_use]
    pub fn by_address(&self, address: &Address) -> Option<&Validator> {
        let index = self.validators.binary_search_by_key(address, |v| v.address).ok()?;
        self.validators.get(index)
    }

    /// Sum of all powers.
    #[must_use]
    pub const fn total_power(&self) -> u64 {
        self.total_power
    }

    /// Whether `power` is more than two thirds of the total: enough to decide.
    #[must_use]
    pub fn is_quorum(&self, power: u64) -> bool {
        u128::from(power) * 3 > u128::from(self.total_power) * 2
    }

    /// Whether the others decide without this one, who may be a stranger.
    #[must_use]
    pub fn is_quorum_without(&self, address: &Address) -> bool {
        let own = self.by_address(address).map_or(0, |validator| validator.power);
        self.is_quorum(self.total_power.saturating_sub(own))
    }

    /// Whether this validator is the whole set.
    #[must_use]
    pub fn is_only(&self, address: &Address) -> bool {
        matches!(self.validators.as_slice(), [only] if only.address == *address)
    }

    /// Whose turn it is. A pure function of the set, the height and the round.
    ///
    /// With `W` the total power divided by the powers' common divisor, turn `height + round`
    /// falls on share `(turn * stride) mod W` of the shares laid out in address order, `stride`
    /// being coprime to `W` and near `0.618 W`. So in any `W` successive turns every validator
    /// proposes exactly as often as its power says, and turns of one are spread, not in a row.
    ///
    /// # Panics
    /// Never: a set is not empty.
    #[must_use]
    pub fn proposer(&self, height: u64, round: u32) -> &Validator {
        let shares = u128::from(self.total_power / self.unit);
        let turn = u128::from(height) + u128::from(round);
        let share = (turn % shares) * u128::from(self.stride) % shares;
        let mut end = 0_u128;
        for validator in &self.validators {
            end += u128::from(validator.power / self.unit);
            if share < end {
                return validator;
            }
        }
        self.validators.first().expect("a set is not empty and the shares sum to W")
    }
}

impl fmt::Debug for ValidatorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.validators.iter().map(|v| (v.address, v.power))).finish()
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The smallest number from 0.618 `shares` upward that is coprime to it.
fn golden_stride(shares: u64) -> u64 {
    let start = (shares / 1000 * 618 + shares % 1000 * 618 / 1000).max(1);
    (start..=shares).find(|stride| gcd(*stride, shares) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing;

    fn set(powers: &[u64]) -> ValidatorSet {
        ValidatorSet::new(powers.iter().zip(1_u8..).map(|(power, seed)| (key(seed), *power)))
            .expect("a set")
    }

    fn key(seed: u8) -> PublicKey {
        testing::key(seed).public_key()
    }

    #[test]
    fn members_out_of_bounds_are_refused() {
        let address = key(1).address();
        let refused = |members: &[(PublicKey, u64)]| {
            ValidatorSet::new(members.iter().copied()).expect_err("out of bounds")
        };
        assert_eq!(refused(&[]), ValidatorSetError::Empty);
        for power in [0, POWER_MAX + 1] {
            assert_eq!(refused(&[(key(1), power)]), ValidatorSetError::Power { address, power });
        }
        let twice = [(key(1), 1), (key(2), 1), (key(1), 2)];
        assert_eq!(refused(&twice), ValidatorSetError::Duplicate { address });
        let many: Vec<_> = (0..65).map(|seed| (key(seed), 1)).collect();
        assert_eq!(refused(&many), ValidatorSetError::TooMany { got: 65 });
    }

    #[test]
    fn a_quorum_is_more_than_two_thirds() {
        let four = set(&[1, 1, 1, 1]);
        assert_eq!([2, 3, 4].map(|power| four.is_quorum(power)), [false, true, true]);
        let three = set(&[1, 1, 1]);
        assert_eq!([2, 3].map(|power| three.is_quorum(power)), [false, true]);
        let without = |set: &ValidatorSet, seed| set.is_quorum_without(&key(seed).address());
        assert_eq!([without(&four, 1), without(&three, 1)], [true, false]);
        assert_eq!([without(&set(&[80, 20]), 1), without(&set(&[80, 20]), 2)], [false, true]);
        assert!(without(&three, 9), "they decide without a stranger");
        let large = set(&[POWER_MAX; 64]);
        assert!(large.is_quorum(large.total_power()) && !large.is_quorum(42 * POWER_MAX));
    }

    #[test]
    fn turns_are_shared_by_power_exactly() {
        for powers in [&[1][..], &[7, 7, 7, 7], &[1, 2, 3], &[10, 1], &[5, 20, 35, 40]] {
            let set = set(powers);
            let turns = set.total_power() / set.unit;
            let mut count: BTreeMap<Address, u64> = BTreeMap::new();
            for height in 11..11 + turns {
                *count.entry(set.proposer(height, 0).address).or_default() += 1;
            }
            for validator in set.validators() {
                assert_eq!(count[&validator.address], validator.power / set.unit, "{powers:?}");
            }
        }
    }

    #[test]
    fn equals_take_turns_and_the_next_round_is_anothers() {
        let set = set(&[3, 3, 3, 3]);
        for height in 1..50 {
            let proposers: Vec<_> = (0..4).map(|r| set.proposer(height, r).address).collect();
            for (at, proposer) in proposers.iter().enumerate() {
                assert!(!proposers[at + 1..].contains(proposer));
            }
        }
        // The sum of both, which is 2 beyond a multiple of 4, is not cut off.
        assert_eq!(set.proposer(u64::MAX, u32::MAX), set.proposer(2, 0));
    }
}
