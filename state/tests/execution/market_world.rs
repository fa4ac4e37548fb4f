//! A world with an agent, miners who offer to execute it, and calls.

use fixtures::{EXECUTOR, MANIFEST, SALT, SELECTOR, prices};
use state::tables::{
    AgentTexts, AgentVersions, Agents, AgentsByOwner, Bonds, CallMembers, Calls, FeeRow, Fees,
    SettledMembers,
};
use types::call::{Answer, Call, CallMember, CallStatus, Outcome};
use types::ids::{Committer, compute_commitment};
use types::params::Models;
use types::tx::{AgentCall, CallCommit, CallReveal, WorkLimits};
use types::{Agent, AgentVersion, Amount, Body, Bond, Event, Hash, Params, TxLocation};

use crate::bodies::{bond, claim_bond};
use crate::world::{ALICE, PROPOSER, V8, Who, World, claim, transfer};

pub use fixtures::appeal;

pub const AGENT: Hash = Hash::new([0xa9; 32]);
pub const OWNER: Who = Who(90);
/// Calls read the record of the version only.
const METADATA: &str = "{}";
pub const BOND: u64 = 300_000;
/// What a member costs at the limits, and what one that says [`says`] gets.
pub const BUDGET: u64 = 1_000 + 100;
pub const WAGE: u64 = 1_000 + 10;
pub const ROYALTY: u64 = 500;
pub const DISSENT: u64 = 50_000;
/// What is left of an appealable call's escrow beyond what it needs.
const SPARE: u64 = 123;

/// The world, and the miners in it.
pub struct Market {
    pub world: World,
    pub miners: Vec<Who>,
}

pub fn params() -> Params {
    Params {
        min_bond: Amount::new(100_000),
        dissent_penalty: Amount::new(DISSENT),
        absence_penalty: Amount::new(1_000),
        unrevealed_penalty: Amount::new(10_000),
        outside_penalty: Amount::new(200),
        slashable_models: Models::All,
        claim_ttl_ms: 3_600_000,
        ..Params::default()
    }
}

fn version() -> AgentVersion {
    AgentVersion {
        agent_id: AGENT,
        version: "1.0.0".to_owned(),
        previous: None,
        owner: OWNER.address(),
        executors: vec![EXECUTOR.to_string()],
        manifests: vec![MANIFEST],
        selectors: vec![SELECTOR],
        tools: Vec::new(),
        royalty: Amount::new(ROYALTY),
        is_deterministic: true,
        nesting: 1,
        metadata_hash: Hash::digest(METADATA.as_bytes()),
        metadata_bytes: METADATA.len().try_into().unwrap(),
        registered_at: 0,
        tx: TxLocation { height: 1, position: 0 },
    }
}

fn agent(is_retired: bool) -> Agent {
    Agent {
        agent_id: AGENT,
        owner: OWNER.address(),
        name: "agent".to_owned(),
        latest: "1.0.0".to_owned(),
        versions: 1,
        is_retired,
        registered_at: 0,
        changed_at: 0,
    }
}

impl Market {
    /// So many miners with equal bonds, on a chain of a sole validator.
    pub fn of(miners: u8) -> Self {
        Self::with(params(), &[(PROPOSER, 1)], miners)
    }

    pub fn with(params: Params, validators: &[(Who, u64)], miners: u8) -> Self {
        let mut world = World::with_forks(params, V8, validators);
        world.write(|draft| {
            draft.put::<Agents>(&AGENT, &agent(false));
            let key = (AGENT, "1.0.0".to_owned());
            draft.put::<AgentVersions>(&key, &version());
            draft.put::<AgentTexts>(&key, &METADATA.to_owned());
            draft.put::<AgentsByOwner>(&(OWNER.address(), AGENT), &());
        });
        let miners: Vec<Who> = (20..20 + miners).map(Who).collect();
        for miner in &miners {
            world.must(ALICE, &transfer(*miner, BOND + 50_000, 0));
            world.must(*miner, &bond(BOND));
            world.must(*miner, &offer(2));
        }
        world.next_block();
        Self { world, miners }
    }

    /// Most of the miner's bond is locked for a run.
    pub fn lock_most(&mut self, miner: Who) {
        let id = self.world.request_protected(claim_bond(BOND - 5_000));
        self.world.must(miner, &claim(miner, id));
    }

    /// The agent takes no more calls.
    pub fn retire(&mut self) {
        self.world.write(|draft| draft.put::<Agents>(&AGENT, &agent(true)));
    }

    /// The base fee of the open block is this.
    pub fn raise_base_fee(&mut self, base_fee: u64) {
        self.world.write(|draft| draft.put::<Fees>(&(), &FeeRow { base_fee }));
    }

    /// What `who` would send to call the agent.
    pub fn body(&self, who: Who, committee_size: u64) -> AgentCall {
        let max_fee = Amount::new(ROYALTY + committee_size * (BUDGET + 200) + SPARE);
        AgentCall { committee_size, max_fee, ..call_body(who, self.world.account(who).nonce) }
    }

    /// Alice calls.
    pub fn called(&mut self, body: AgentCall) -> Hash {
        let call_id = body.call_id;
        self.world.must(ALICE, &Body::AgentCall(body));
        call_id
    }

    /// Alice calls, and the members are drawn.
    pub fn elected(&mut self, body: AgentCall) -> Hash {
        let call_id = self.called(body);
        self.world.next_block();
        call_id
    }

    /// A call of three members, who are drawn.
    pub fn elected_three(&mut self) -> Hash {
        let body = self.body(ALICE, 3);
        let max_fee = body.max_fee;
        let call = self.elected(body);
        assert_eq!(self.call(call).max_fee, max_fee);
        call
    }

    /// An appealable call of three members.
    pub fn appealable(&mut self) -> Hash {
        let body = AgentCall { appealable: Some(true), ..self.body(ALICE, 3) };
        self.elected(body)
    }

    pub fn call(&self, id: Hash) -> Call {
        self.world.state().get::<Calls>(&id).unwrap().unwrap()
    }

    pub fn status(&self, id: Hash) -> CallStatus {
        self.call(id).status
    }

    /// The members of a round, in the order of the draw; of a settled call, too.
    pub fn members(&self, id: Hash, round: u8) -> Vec<Who> {
        let mut members: Vec<(u8, Who)> = self
            .miners
            .iter()
            .filter_map(|who| Some((self.member(id, *who)?, *who)))
            .filter(|(member, _)| member.round == round)
            .map(|(member, who)| (member.seat, who))
            .collect();
        members.sort_unstable();
        members.into_iter().map(|(_, who)| who).collect()
    }

    pub fn member(&self, id: Hash, who: Who) -> Option<CallMember> {
        let (state, key) = (self.world.state(), (id, who.address()));
        let open = state.get::<CallMembers>(&key).unwrap();
        open.or_else(|| state.get::<SettledMembers>(&key).unwrap())
    }

    pub fn bond(&self, who: Who) -> Bond {
        self.world.state().get::<Bonds>(&who.address()).unwrap().unwrap_or_default()
    }

    pub fn commit(&mut self, id: Hash, who: Who, answer: Answer) {
        let round = self.member(id, who).unwrap().round;
        self.world.must(who, &commit(id, round, who, answer));
    }

    /// All members of the first round commit to a result.
    pub fn all_commit(&mut self, id: Hash, result: &[u8]) {
        for who in self.members(id, 0) {
            self.commit(id, who, says(result));
        }
    }

    pub fn reveal(&mut self, id: Hash, who: Who, result: &[u8]) {
        let round = self.member(id, who).unwrap().round;
        self.world.must(who, &reveal(id, round, result));
    }

    /// All members of a round commit to a result, in one block, and reveal it in the next one.
    pub fn answer(&mut self, id: Hash, results: &[(Who, &[u8])]) -> Vec<Event> {
        for (who, result) in results {
            self.commit(id, *who, says(result));
        }
        self.world.next_block();
        for (who, result) in results {
            self.reveal(id, *who, result);
        }
        self.world.next_block().events.end
    }

    /// All members of the last round say the same.
    pub fn all_answer(&mut self, id: Hash, result: &[u8]) -> Vec<Event> {
        let round = u8::try_from(self.call(id).rounds.len() - 1).unwrap();
        let results: Vec<(Who, &[u8])> =
            self.members(id, round).into_iter().map(|who| (who, result)).collect();
        self.answer(id, &results)
    }

    /// Makes blocks until a call is settled.
    pub fn settle(&mut self, id: Hash) -> Call {
        for _ in 0..40 {
            if self.call(id).is_settled() {
                return self.call(id);
            }
            self.world.next_block_after(10_000);
        }
        panic!("{:?}", self.call(id));
    }
}

/// A call of the agent by three members, whose escrow is still to be stated.
pub fn call_body(who: Who, nonce: u64) -> AgentCall {
    AgentCall {
        prices: prices([1_000, 1_000_000, 0, 0]),
        limits: WorkLimits { input_tokens: 100, output_tokens: 100, fuel: 0, result_bytes: 8 },
        max_fee: Amount::ZERO,
        timeout_ms: 10_000,
        ..fixtures::call("test", who.address(), nonce, AGENT)
    }
}

pub fn offer(capacity: u64) -> Body {
    fixtures::offer(EXECUTOR, capacity, [1_000, 1_000, 0, 0]).into()
}

/// The same for nothing but a price for the call.
pub fn free_offer(capacity: u64) -> Body {
    fixtures::offer(EXECUTOR, capacity, [1_000, 0, 0, 0]).into()
}

/// The success with this result.
pub fn says(result: &[u8]) -> Answer {
    shown(Hash::ZERO, 0, result).answer().unwrap()
}

pub fn commit(call_id: Hash, round: u8, who: Who, answer: Answer) -> Body {
    let by = Committer { call_id, round: round.into(), member: who.address() };
    let commitment = compute_commitment(&by, &SALT, &answer);
    Body::CallCommit(CallCommit { call_id, round: round.into(), commitment })
}

/// What shows that a member said [`says`].
pub fn shown(call_id: Hash, round: u8, result: &[u8]) -> CallReveal {
    let (round, input_tokens, output_tokens) = (round.into(), 10, 5);
    CallReveal { round, input_tokens, output_tokens, ..fixtures::reveal(call_id, result) }
}

pub fn reveal(call_id: Hash, round: u8, result: &[u8]) -> Body {
    shown(call_id, round, result).into()
}

/// The agent says no.
pub fn fails() -> Answer {
    Answer { outcome: Outcome::Failure, ..says(b"") }
}

/// Shows that the agent said no.
pub fn reveal_failure(call_id: Hash) -> Body {
    let reason = Some("it does not like the payload".to_owned());
    CallReveal { outcome: "failure".to_owned(), reason, ..shown(call_id, 0, b"") }.into()
}
