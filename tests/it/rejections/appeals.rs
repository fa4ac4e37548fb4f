//! What is rejected of appeals, and of results that are as long as results may be.

use anyhow::Context as _;
use fixtures::{EXECUTOR, MANIFEST, PER_CALL, appeal, commit, judge, judge_of, offer, reveal};
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::node::{wait_for, wait_until};
use types::params::Models;
use types::tx::{AgentCall, WorkLimits};
use types::{Amount, Body, Code, Hash, Params};

use super::case::{Case, MARKET, market_case};
use super::fork::quick;
use super::scene::Scene;
use crate::support::market;

/// So many miners have to offer before a call with one member can be appealable: one for the first round and
/// three for the second.
const MINERS: usize = 4;
/// The longest result that the chain takes.
const RESULT_BYTES_MAX: u16 = 16_384;

struct Appeals {
    scene: Scene,
    owner: Actor,
    requester: Actor,
    miners: [Actor; MINERS],
}

impl Appeals {
    /// An agent, and four miners that offer to execute it.
    fn start(appeal_ms: u64) -> anyhow::Result<Self> {
        let slashable_models = Models::All;
        let params = Params { appeal_ms, reveal_ms: 600_000, slashable_models, ..quick() };
        let mut scene = Scene::of_market(params)?;
        let (mut owner, requester) = (scene.actor(0), scene.actor(1));
        let mut miners = [2, 3, 4, 5].map(|index| scene.actor(index));
        let agent = (&mut owner, judge(MANIFEST, ""));
        scene.include(&market(MARKET, agent, &mut miners))?;
        Ok(Self { scene, owner, requester, miners })
    }

    /// A miner sends something, which is in a block then.
    fn miner_sends(&mut self, miner: usize, body: &Body) -> anyhow::Result<()> {
        let text = self.miners[miner].sign_on(MARKET, body);
        self.scene.include(&[text]).map(drop)
    }

    fn read(&mut self, call_id: Hash) -> anyhow::Result<Value> {
        self.scene.call("ombra_getCall", &json!([call_id]))
    }

    /// Asks one member, who commits; answers the call and the number of the miner that was drawn.
    fn ask(&mut self, is_appealable: bool, result: &[u8]) -> anyhow::Result<(Hash, usize)> {
        let asked = self.requester.call(MARKET, judge_of(self.owner.address()));
        let limits = WorkLimits { result_bytes: RESULT_BYTES_MAX.into(), ..asked.limits };
        let asked = AgentCall {
            committee_size: 1,
            limits,
            max_fee: Amount::new(1_000_000),
            appealable: is_appealable.then_some(true),
            ..asked
        };
        let call_id = asked.call_id;
        let text = self.requester.sign_on(MARKET, &Body::AgentCall(asked));
        self.scene.include(&[text])?;
        let drawn = wait_for("the election", || {
            let call = self.read(call_id)?;
            Ok(call["rounds"][0]["members"][0]["address"].as_str().map(str::to_owned))
        })?;
        let is_drawn = |miner: &Actor| miner.address().to_string() == drawn;
        let member = self.miners.iter().position(is_drawn).context("a miner that offered")?;
        let commit = commit(self.miners[member].address(), &reveal(call_id, result));
        self.miner_sends(member, &commit.into())?;
        Ok((call_id, member))
    }

    /// The same, and the member reveals, which decides.
    fn decided(&mut self) -> anyhow::Result<(Hash, usize)> {
        let (call_id, member) = self.ask(true, b"yes")?;
        self.reveals(call_id, member, b"yes")?;
        Ok((call_id, member))
    }

    fn reveals(&mut self, call_id: Hash, member: usize, result: &[u8]) -> anyhow::Result<()> {
        self.miner_sends(member, &reveal(call_id, result).into())?;
        wait_until("the decision", || Ok(self.read(call_id)?["status"] == "success"))
    }
}

/// The appeal of `who` is rejected: the call is `got`, and should be `expected`.
fn closed(who: &Actor, call_id: Hash, got: impl ToString, expected: &str) -> Case {
    market_case(Code::AppealClosed, who, &appeal(call_id))
        .says("callId", got.to_string(), expected)
        .with("callId", call_id)
}

/// What can be appealed.
pub(super) const OPEN: &str = "an appealable call that a group has decided and nobody has appealed";

#[test]
fn a_member_does_not_appeal_nor_does_anybody_without_miners_for_a_second_round()
-> anyhow::Result<()> {
    // Nobody has to be quick.
    let mut appeals = Appeals::start(600_000)?;
    let (call_id, member) = appeals.decided()?;
    let by = &appeals.miners[member];
    let of_member = closed(by, call_id, by.address(), "nobody that was a member");
    appeals.scene.refuse_in_every_way(&[of_member])?;

    let leaving = (member + 1) % MINERS;
    let offer = |capacity| offer(EXECUTOR, capacity, [PER_CALL, 0, 0, 0]).into();
    appeals.miner_sends(leaving, &offer(0))?;
    let too_few = closed(&appeals.requester, call_id, 2, "at least 3 eligible miners");
    appeals.scene.refuse_in_every_way(&[too_few])?;

    // With the third miner back the same appeal is taken, and there is no other beside it.
    appeals.miner_sends(leaving, &offer(9))?;
    let text = appeals.requester.sign_on(MARKET, &appeal(call_id));
    appeals.scene.include(&[text])?;
    wait_until("the second round", || Ok(appeals.read(call_id)?["status"] == "committing"))?;
    appeals.scene.refuse_in_every_way(&[closed(&appeals.owner, call_id, "committing", OPEN)])?;
    appeals.scene.node.stop()
}

#[test]
fn an_appeal_after_the_window_comes_too_late() -> anyhow::Result<()> {
    let mut appeals = Appeals::start(10_000)?;
    let (call_id, _) = appeals.decided()?;
    let settled = wait_for("the settlement", || {
        let call = appeals.read(call_id)?;
        Ok((call["settled"] == true).then_some(call))
    })?;
    let too_late = closed(&appeals.requester, call_id, "success", OPEN);
    appeals.scene.refuse_in_every_way(&[too_late])?;
    assert_eq!(settled, appeals.read(call_id)?);
    appeals.scene.node.stop()
}

#[test]
fn a_result_of_16384_bytes_is_an_answer_and_one_byte_more_is_none() -> anyhow::Result<()> {
    let mut appeals = Appeals::start(600_000)?;
    let longest = vec![b'y'; RESULT_BYTES_MAX.into()];
    let (call_id, member) = appeals.ask(false, &longest)?;
    let longer = [longest.as_slice(), b"y"].concat();
    let body = reveal(call_id, &longer).into();
    let case = market_case(Code::InvalidField, &appeals.miners[member], &body);
    let case = case.says("result", "16385 bytes", "at most 16384 bytes");
    appeals.scene.refuse_in_every_way(&[case])?;
    appeals.reveals(call_id, member, &longest)?;
    let call = appeals.read(call_id)?;
    let shown = call["answer"]["result"].as_str().context("the answer is shown")?;
    assert_eq!(format!("0x{}", "79".repeat(longest.len())), shown);
    appeals.scene.node.stop()
}
