//! The agent market as its people use it: an agent that is published, miners that offer to run it, calls to
//! it, what their members say, and the draw of the members, which everybody can compute again.

mod scene;

use fixtures::{judge, judge_of, offer, prices, register_judge};
use serde_json::Value;
use state::market::election::{Candidate, Lot, elect};
use types::agent::ExecutorId;
use types::call::Outcome;
use types::ids::Committer;
use types::tx::{AgentCall, CallReveal, WorkLimits};
use types::{Address, Amount, Body, Hash, Usage};

use crate::actor::Actor;

pub use fixtures::{PER_CALL, VERSION};
pub use scene::{Cast, Round, Scene};

/// The most tokens that a member may read.
pub const INPUT_TOKENS_MAX: u64 = 100;
/// What one member can cost: the price of work at the limits.
pub const BUDGET: u64 = PER_CALL + INPUT_TOKENS_MAX;
/// What the agent's owner gets for a success.
pub const ROYALTY: u64 = 50;
/// What a reveal burns by the default parameters.
pub const REVEAL_FEE: u64 = 200;
/// Tokens that whoever does the work reads.
const INPUT_TOKENS: u64 = 9;
/// What a member gets for an honest answer.
pub const WAGE: u64 = PER_CALL + INPUT_TOKENS;
/// After so many blocks of one proposer members are drawn nevertheless.
const PATIENCE_BLOCKS: u64 = 11;

/// An agent on a chain, and the model that it needs.
#[derive(Clone, Debug)]
pub struct Market {
    pub chain_id: String,
    pub agent_id: Hash,
    pub manifest: Hash,
}

impl Market {
    #[must_use]
    pub fn new(chain_id: &str, owner: &Actor, manifest: Hash) -> Self {
        Self { chain_id: chain_id.to_owned(), agent_id: judge_of(owner.address()), manifest }
    }

    #[must_use]
    pub const fn executor(&self) -> ExecutorId {
        ExecutorId::Model { manifest: self.manifest }
    }

    /// What publishes the agent.
    #[must_use]
    pub fn publish(&self, owner: &mut Actor) -> String {
        let metadata = judge(self.manifest, &format!(",\"royalty\":\"{ROYALTY}\""));
        owner.sign_on(&self.chain_id, &register_judge(owner.address(), metadata))
    }

    /// What makes somebody a miner of the agent: a bond, and an offer to work at so many calls at once.
    #[must_use]
    pub fn join(&self, miner: &mut Actor, bond: u64, capacity: u64) -> [String; 2] {
        let offer = offer(self.executor(), capacity, [PER_CALL, 0, 0, 0]);
        [miner.sign(&fixtures::bond(bond)), miner.sign_on(&self.chain_id, &offer.into())]
    }

    /// What a requester would ask of so many members with its next nonce, for the least fee.
    #[must_use]
    pub fn asked(&self, requester: &Actor, committee_size: u64) -> AgentCall {
        let limits = WorkLimits {
            input_tokens: INPUT_TOKENS_MAX,
            output_tokens: 10,
            fuel: 0,
            result_bytes: 32,
        };
        AgentCall {
            committee_size,
            prices: prices([PER_CALL, 1_000_000, 0, 0]),
            limits,
            max_fee: Amount::new(ROYALTY + committee_size * (BUDGET + REVEAL_FEE)),
            timeout_ms: 10_000,
            ..requester.call(&self.chain_id, self.agent_id)
        }
    }
}

/// What a member says of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Saying {
    pub outcome: Outcome,
    pub result: Vec<u8>,
    pub usage: Usage,
    pub receipt_hash: Hash,
}

impl Saying {
    /// What everybody says who has done the work.
    #[must_use]
    pub fn honest(call_id: Hash) -> Self {
        Self {
            outcome: Outcome::Success,
            result: b"yes".to_vec(),
            usage: Usage { input_tokens: INPUT_TOKENS, output_tokens: 3, fuel: 0 },
            receipt_hash: Hash::digest(format!("scores of {call_id}").as_bytes()),
        }
    }

    /// The same work with another result.
    #[must_use]
    pub fn lie(call_id: Hash) -> Self {
        Self { result: b"no".to_vec(), ..Self::honest(call_id) }
    }

    /// What somebody says who guesses the answer, and cannot guess what the work leaves behind.
    #[must_use]
    pub fn guess(call_id: Hash, member: Address) -> Self {
        let receipt_hash = Hash::digest(format!("a guess of {member}").as_bytes());
        Self { receipt_hash, ..Self::honest(call_id) }
    }

    /// What everybody says of a call that the agent cannot answer: as much work as it may take.
    #[must_use]
    pub fn failure(call: &AgentCall) -> Self {
        let WorkLimits { input_tokens, output_tokens, fuel, result_bytes: _ } = call.limits;
        Self {
            outcome: Outcome::Failure,
            result: Vec::new(),
            usage: Usage { input_tokens, output_tokens, fuel },
            ..Self::honest(call.call_id)
        }
    }

    /// What somebody says who has not got what the work needs.
    #[must_use]
    pub fn unable(call_id: Hash) -> Self {
        Self { outcome: Outcome::Unable, result: Vec::new(), ..Self::honest(call_id) }
    }

    /// The commitment of a member.
    #[must_use]
    pub fn commit(&self, by: &Committer) -> Body {
        fixtures::commit(by.member, &self.plain_reveal(by)).into()
    }

    /// The reveal that opens it.
    #[must_use]
    pub fn reveal(&self, by: &Committer) -> Body {
        Body::CallReveal(self.plain_reveal(by))
    }

    /// Its fields.
    #[must_use]
    pub fn plain_reveal(&self, by: &Committer) -> CallReveal {
        let Usage { input_tokens, output_tokens, fuel } = self.usage;
        CallReveal {
            round: by.round,
            salt: salt(by),
            outcome: self.outcome.as_str().to_owned(),
            input_tokens,
            output_tokens,
            fuel,
            receipt_hash: self.receipt_hash,
            ..fixtures::reveal(by.call_id, &self.result)
        }
    }
}

/// Nobody else would find it in a chain of strangers; here everybody may know it.
fn salt(by: &Committer) -> Hash {
    Hash::digest(format!("{}|{}|{}", by.call_id, by.round, by.member).as_bytes())
}

/// What of a block decides a draw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    pub height: u64,
    pub proposer: String,
    pub randomness: Hash,
}

impl Head {
    /// Reads it from a block as nodes show it.
    #[must_use]
    pub fn read(block: &Value) -> Option<Self> {
        Some(Self {
            height: block["index"].as_u64()?,
            proposer: block["proposer"].as_str()?.to_owned(),
            randomness: Hash::parse(block["randomness"].as_str()?).ok()?,
        })
    }

    /// Whether this block, which comes after `previous`, draws the members of a call in the block
    /// `asked_in`, if no block before it did.
    #[must_use]
    pub fn draws(&self, previous: &Self, asked_in: u64, validators: usize) -> bool {
        let is_late = self.height.saturating_sub(asked_in) >= PATIENCE_BLOCKS;
        let is_others = validators == 1 || self.proposer != previous.proposer;
        self.height > asked_in && (is_others || is_late)
    }

    /// The members of a round that this block draws. The candidates stand in the order of addresses, and
    /// none of them is full.
    #[must_use]
    pub fn draw(
        &self,
        (call_id, round): (Hash, u8),
        candidates: &[Candidate],
        seats: usize,
    ) -> Vec<Address> {
        let lot = Lot { call_id, round, randomness: self.randomness };
        elect(&lot, candidates, seats).members().map(|member| member.miner).collect()
    }
}
