//! What is rejected of appeals, and of results that are as long as results may be.

use anyhow::Context as _;
use serde_json::{Value, json};
use state::Forks;
use testkit::actor::Actor;
use testkit::market::bodies::{self, MANIFEST, judge_of, reveal};
use testkit::node::{DevOptions, wait_for};
use types::params::Models;
use types::tx::{AgentCall, CallAppeal, WorkLimits};
use types::{Amount, Body, Code, Hash, Params};

use super::case::{Case, case_of_text};
use super::fork::chain_with_params;
use super::scene::Scene;
use super::v7::V7;

const CHAIN: &str = "with-appeals";
/// The default of `minBond`.
const MIN_BOND: u64 = 10_000_000;
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
    /// Keeps the chain's folder.
    _folder: tempfile::TempDir,
}

impl Appeals {
    /// An agent, and four miners that offer to execute it.
    fn start(appeal_ms: u64) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let params = Params {
            appeal_ms,
            reveal_ms: 600_000,
            min_block_interval_ms: 50,
            slashable_models: Models::All,
            ..Params::default()
        };
        chain_with_params(folder.path(), CHAIN, Forks { v8: Some(0), ..V7 }, params)?;
        let data_dir = Some(folder.path().to_owned());
        let scene = Scene::of(DevOptions { data_dir, ..DevOptions::from_environment() })?.priced();
        let (owner, requester) = (scene.actor(0), scene.actor(1));
        let miners = [2, 3, 4, 5].map(|index| scene.actor(index));
        let mut appeals = Self { scene, owner, requester, miners, _folder: folder };
        let agent = bodies::register(&appeals.owner, bodies::judge(MANIFEST, ""));
        let mut texts = vec![appeals.owner.sign_on(CHAIN, &agent)];
        for miner in &mut appeals.miners {
            let offer = Body::MinerOffer(bodies::offer(MANIFEST, 9));
            texts.extend([miner.sign(&bodies::bond(MIN_BOND)), miner.sign_on(CHAIN, &offer)]);
        }
        appeals.scene.include(&texts)?;
        Ok(appeals)
    }

    fn read(&mut self, call_id: Hash) -> anyhow::Result<Value> {
        self.scene.call("ombra_getCall", &json!([call_id]))
    }

    /// Asks one member, who commits; answers the call and the number of the miner that was drawn.
    fn ask(&mut self, is_appealable: bool, result: &[u8]) -> anyhow::Result<(Hash, usize)> {
        let asked = bodies::call(CHAIN, &self.requester, judge_of(&self.owner));
        let limits = WorkLimits { result_bytes: RESULT_BYTES_MAX.into(), ..asked.limits };
        let asked = AgentCall {
            committee_size: 1,
            limits,
            max_fee: Amount::new(1_000_000),
            appealable: is_appealable.then_some(true),
            ..asked
        };
        let call_id = asked.call_id;
        let text = self.requester.sign_on(CHAIN, &Body::AgentCall(asked));
        self.scene.include(&[text])?;
        let drawn = wait_for("the election", || {
            let call = self.read(call_id)?;
            Ok(call["rounds"][0]["members"][0]["address"].as_str().map(str::to_owned))
        })?;
        let is_drawn = |miner: &Actor| miner.address().to_string() == drawn;
        let member = self.miners.iter().position(is_drawn).context("a miner that offered")?;
        let by = &mut self.miners[member];
        let commit = bodies::commit(by, &reveal(call_id, result)).context("an outcome")?;
        let text = by.sign_on(CHAIN, &Body::CallCommit(commit));
        self.scene.include(&[text])?;
        Ok((call_id, member))
    }

    /// The same, and the member reveals, which decides.
    fn decided(&mut self) -> anyhow::Result<(Hash, usize)> {
        let (call_id, member) = self.ask(true, b"yes")?;
        self.reveals(call_id, member, b"yes")?;
        Ok((call_id, member))
    }

    fn reveals(&mut self, call_id: Hash, member: usize, result: &[u8]) -> anyhow::Result<()> {
        let shown = Body::CallReveal(reveal(call_id, result));
        let text = self.miners[member].sign_on(CHAIN, &shown);
        self.scene.include(&[text])?;
        wait_for("the decision", || Ok((self.read(call_id)?["status"] == "success").then_some(())))
    }

    /// Each is rejected, and nothing changes.
    fn rejects(&mut self, cases: &[Case]) -> anyhow::Result<()> {
        self.scene.refuse_in_every_way(cases)
    }
}

/// The appeal of `who` is rejected: the call is `got`, and should be `expected`.
fn closed(who: &Actor, call_id: Hash, got: impl ToString, expected: &str) -> Case {
    let body = Body::CallAppeal(CallAppeal { call_id });
    case_of_text(Code::AppealClosed, who.address(), who.draft_on(CHAIN, &body))
        .says("callId", got.to_string(), expected)
        .with("callId", call_id)
}

const OPEN: &str = "an appealable call that a group has decided and nobody has appealed";

#[test]
fn a_member_does_not_appeal_nor_does_anybody_without_miners_for_a_second_round()
-> anyhow::Result<()> {
    // Nobody has to be quick.
    let mut appeals = Appeals::start(600_000)?;
    let (call_id, member) = appeals.decided()?;
    let by = appeals.miners[member].clone();
    appeals.rejects(&[closed(&by, call_id, by.address(), "nobody that was a member")])?;

    let leaving = (member + 1) % MINERS;
    let withdrawn = Body::MinerOffer(bodies::offer(MANIFEST, 0));
    let text = appeals.miners[leaving].sign_on(CHAIN, &withdrawn);
    appeals.scene.include(&[text])?;
    let requester = appeals.requester.clone();
    appeals.rejects(&[closed(&requester, call_id, 2, "at least 3 eligible miners")])?;

    // With the third miner back the same appeal is taken, and there is no other beside it.
    let text =
        appeals.miners[leaving].sign_on(CHAIN, &Body::MinerOffer(bodies::offer(MANIFEST, 9)));
    appeals.scene.include(&[text])?;
    let appeal = Body::CallAppeal(CallAppeal { call_id });
    let text = appeals.requester.sign_on(CHAIN, &appeal);
    appeals.scene.include(&[text])?;
    wait_for("the second round", || {
        Ok((appeals.read(call_id)?["status"] == "committing").then_some(()))
    })?;
    let owner = appeals.owner.clone();
    appeals.rejects(&[closed(&owner, call_id, "committing", OPEN)])?;
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
    let requester = appeals.requester.clone();
    appeals.rejects(&[closed(&requester, call_id, "success", OPEN)])?;
    assert_eq!(settled, appeals.read(call_id)?);
    appeals.scene.node.stop()
}

#[test]
fn a_result_of_16384_bytes_is_an_answer_and_one_byte_more_is_none() -> anyhow::Result<()> {
    let mut appeals = Appeals::start(600_000)?;
    let longest = vec![b'y'; RESULT_BYTES_MAX.into()];
    let (call_id, member) = appeals.ask(false, &longest)?;
    let by = appeals.miners[member].clone();
    let longer = [longest.as_slice(), b"y"].concat();
    let body = Body::CallReveal(reveal(call_id, &longer));
    let case = case_of_text(Code::InvalidField, by.address(), by.draft_on(CHAIN, &body)).says(
        "result",
        "16385 bytes",
        "at most 16384 bytes",
    );
    appeals.rejects(&[case])?;
    appeals.reveals(call_id, member, &longest)?;
    let call = appeals.read(call_id)?;
    let shown = call["answer"]["result"].as_str().context("the answer is shown")?;
    assert_eq!(format!("0x{}", "79".repeat(longest.len())), shown);
    appeals.scene.node.stop()
}
