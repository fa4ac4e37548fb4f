//! The engine's `Context`: one zero-sized type naming all others.
//!
//! A value is only a block hash: proposals, votes and the engine's log stay small, and bodies
//! live in the ledger.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use borsh::{BorshDeserialize, BorshSerialize};
use malachitebft_core_types as engine;
use malachitebft_core_types::{NilOrVal, Round, SignedExtension, VoteType};
use types::Hash;

use super::scheme::{PublicKey, Scheme};
use super::timeouts::HeightTimeouts;
use crate::parts::Part;
use crate::{ValidatorSet, validators};
use types::sign_bytes::{ProposalFields, VoteFields, VoteKind};

/// Names the types that the engine works with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ctx;

/// A validator's address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub(crate) struct Address([u8; 20]);

/// A block height; the first block has height 1.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    BorshSerialize,
    BorshDeserialize,
)]
pub(crate) struct Height(pub(crate) u64);

/// A block hash: what is voted on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub(crate) struct Value([u8; 32]);

/// A prevote or precommit.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Vote {
    kind: VoteType,
    height: Height,
    round: Round,
    value: NilOrVal<Value>,
    address: Address,
}

/// A proposal of a block, by hash.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Proposal {
    height: Height,
    round: Round,
    value: Value,
    pol_round: Round,
    address: Address,
}

/// A validator of the set, as the engine wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Validator {
    address: Address,
    public_key: PublicKey,
    power: u64,
}

/// The set of a height. Cheap to clone: the engine clones it often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Validators(Arc<Members>);

#[derive(Debug, PartialEq, Eq)]
struct Members {
    set: ValidatorSet,
    /// In the order of `set`.
    validators: Vec<Validator>,
}

impl Address {
    pub(crate) fn get(self) -> types::Address {
        types::Address::new(self.0)
    }
}

impl From<types::Address> for Address {
    fn from(address: types::Address) -> Self {
        Self(*address.as_bytes())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.get(), f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.get(), f)
    }
}

impl engine::Address for Address {}

impl fmt::Display for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl engine::Height for Height {
    const ZERO: Self = Self(0);
    const INITIAL: Self = Self(1);

    fn increment_by(&self, n: u64) -> Self {
        Self(self.0.saturating_add(n))
    }

    fn decrement_by(&self, n: u64) -> Option<Self> {
        self.0.checked_sub(n).map(Self)
    }

    fn as_u64(&self) -> u64 {
        self.0
    }
}

impl Value {
    pub(crate) fn hash(self) -> Hash {
        Hash::new(self.0)
    }
}

impl From<Hash> for Value {
    fn from(hash: Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.hash(), f)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.hash(), f)
    }
}

impl engine::Value for Value {
    type Id = Self;

    fn id(&self) -> Self {
        *self
    }
}

impl Vote {
    /// What is signed of it.
    pub(crate) fn fields(&self) -> VoteFields {
        let Self { kind, height, round, value, address } = self;
        VoteFields {
            kind: match kind {
                VoteType::Prevote => VoteKind::Prevote,
                VoteType::Precommit => VoteKind::Precommit,
            },
            height: height.0,
            round: round.as_i64(),
            value: match value {
                NilOrVal::Nil => None,
                NilOrVal::Val(value) => Some(value.hash()),
            },
            validator: address.get(),
        }
    }

    /// Whether height and round are ones that a vote can have.
    pub(crate) fn is_plausible(&self) -> bool {
        self.height.0 > 0 && self.round.is_defined()
    }
}

impl engine::Vote<Ctx> for Vote {
    fn height(&self) -> Height {
        self.height
    }

    fn round(&self) -> Round {
        self.round
    }

    fn value(&self) -> &NilOrVal<Value> {
        &self.value
    }

    fn take_value(self) -> NilOrVal<Value> {
        self.value
    }

    fn vote_type(&self) -> VoteType {
        self.kind
    }

    fn validator_address(&self) -> &Address {
        &self.address
    }

    fn extension(&self) -> Option<&SignedExtension<Ctx>> {
        None
    }

    fn take_extension(&mut self) -> Option<SignedExtension<Ctx>> {
        None
    }

    fn extend(self, _: SignedExtension<Ctx>) -> Self {
        self
    }
}

impl Proposal {
    /// What is signed of it.
    pub(crate) fn fields(&self) -> ProposalFields {
        let Self { height, round, value, pol_round, address } = self;
        ProposalFields {
            height: height.0,
            round: round.as_i64(),
            valid_round: pol_round.as_i64(),
            value: value.hash(),
            validator: address.get(),
        }
    }

    /// Whether height and rounds are ones that a proposal can have.
    pub(crate) fn is_plausible(&self) -> bool {
        self.height.0 > 0 && self.round.is_defined() && self.pol_round < self.round
    }
}

impl engine::Proposal<Ctx> for Proposal {
    fn height(&self) -> Height {
        self.height
    }

    fn round(&self) -> Round {
        self.round
    }

    fn value(&self) -> &Value {
        &self.value
    }

    fn take_value(self) -> Value {
        self.value
    }

    fn pol_round(&self) -> Round {
        self.pol_round
    }

    fn validator_address(&self) -> &Address {
        &self.address
    }
}

impl engine::ProposalPart<Ctx> for Part {
    fn is_first(&self) -> bool {
        Self::is_first(self)
    }

    /// Unknown from one part alone; the head says how many follow.
    fn is_last(&self) -> bool {
        false
    }
}

impl engine::Timeouts<Ctx> for HeightTimeouts {
    fn duration_for(&self, timeout: engine::Timeout) -> Duration {
        Self::duration_for(self, timeout)
    }
}

impl engine::Validator<Ctx> for Validator {
    fn address(&self) -> &Address {
        &self.address
    }

    fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    fn voting_power(&self) -> u64 {
        self.power
    }
}

impl Validators {
    /// The set as the rest of the crate knows it.
    pub(crate) fn set(&self) -> &ValidatorSet {
        &self.0.set
    }
}

impl From<&ValidatorSet> for Validators {
    fn from(set: &ValidatorSet) -> Self {
        let validators = set
            .validators()
            .iter()
            .map(|validators::Validator { address, public_key, power }| Validator {
                address: (*address).into(),
                public_key: (*public_key).into(),
                power: *power,
            })
            .collect();
        Self(Arc::new(Members { set: set.clone(), validators }))
    }
}

impl engine::ValidatorSet<Ctx> for Validators {
    fn count(&self) -> usize {
        self.0.validators.len()
    }

    fn total_voting_power(&self) -> u64 {
        self.0.set.total_power()
    }

    fn get_by_address(&self, address: &Address) -> Option<&Validator> {
        let index = self.0.validators.binary_search_by_key(address, |v| v.address).ok()?;
        self.0.validators.get(index)
    }

    fn get_by_index(&self, index: usize) -> Option<&Validator> {
        self.0.validators.get(index)
    }
}

impl engine::Context for Ctx {
    type Address = Address;
    type Height = Height;
    type ProposalPart = Part;
    type Proposal = Proposal;
    type Validator = Validator;
    type ValidatorSet = Validators;
    type Timeouts = HeightTimeouts;
    type Value = Value;
    type Vote = Vote;
    type Extension = Vec<u8>;
    type SigningScheme = Scheme;

    fn select_proposer<'a>(
        &self,
        validator_set: &'a Validators,
        height: Height,
        round: Round,
    ) -> &'a Validator {
        let turn = validator_set.set().proposer(height.0, round.as_u32().unwrap_or(0));
        engine::ValidatorSet::get_by_address(validator_set, &turn.address.into())
            .expect("the proposer is chosen from the set")
    }

    fn new_proposal(
        &self,
        height: Height,
        round: Round,
        value: Value,
        pol_round: Round,
        address: Address,
    ) -> Proposal {
        Proposal { height, round, value, pol_round, address }
    }

    fn new_prevote(
        &self,
        height: Height,
        round: Round,
        value: NilOrVal<Value>,
        address: Address,
    ) -> Vote {
        Vote { kind: VoteType::Prevote, height, round, value, address }
    }

    fn new_precommit(
        &self,
        height: Height,
        round: Round,
        value: NilOrVal<Value>,
        address: Address,
    ) -> Vote {
        Vote { kind: VoteType::Precommit, height, round, value, address }
    }
}
