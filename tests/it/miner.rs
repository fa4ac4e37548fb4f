//! `ombra miner` works for its fee: a real node, a real miner, a model that follows a rule.

use anyhow::Context as _;
use serde_json::{Value, json};
use testkit::miners::{MinerHome, text};
use testkit::model::{ANSWER_TOKENS, ModelServer};
use testkit::node::{Node, wait_until};
use testkit::workload::key;

use crate::support::{dev, printed};

/// A node, and a miner of account 1 with its model.
struct Scene {
    node: Node,
    home: MinerHome,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> anyhow::Result<Self> {
        Self::on(&[], "")
    }

    /// On a chain with these options, with further settings of the miner.
    fn on(options: &[&str], settings: &str) -> anyhow::Result<Self> {
        let node = Node::start(dev(options))?;
        let folder = tempfile::tempdir()?;
        let model = ModelServer::start("math_eval", &json!({ "expression": "17*23" }))?;
        let settings = model.settings() + settings;
        let home = MinerHome::new(folder.path(), 1, node.rpc, &settings)?;
        Ok(Self { node, home, _folder: folder })
    }

    fn url(&self) -> String {
        format!("http://{}", self.node.rpc)
    }

    /// Asks for a run that may use the tool, with more options; answers its settled record.
    fn ask(&self, question: &str, more: &[&str]) -> anyhow::Result<Value> {
        self.settled(&[&[question, "--tools", "math_eval"], more].concat())
    }

    /// The settled record of `ombra run` with these arguments.
    fn settled(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let url = self.url();
        let usual =
            ["--max-fee", "10000", "--dev", "0", "--rpc", &url, "--json", "--timeout", "60"];
        let asked = printed(self.node.ombra(&[&["run"], arguments, &usual].concat())?);
        let asked = asked.map_err(|fault| self.home.explain(&fault))?;
        Ok(serde_json::from_str(&asked)?)
    }

    /// What the chain says that an account has at stake.
    fn stake(&self, account: usize) -> anyhow::Result<Value> {
        self.node.call("ombra_getBond", &json!([key(account)?.address()]))
    }
}

/// How a run ended, and with which answer.
fn end(run: &Value) -> (&str, &str) {
    (text(run, "status"), text(run, "finalAnswerInline"))
}

#[test]
fn a_miner_claims_a_run_calls_its_tool_answers_and_is_paid() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let miner = scene.home.start()?;
    let run = scene.ask("How much is 17 times 23?", &[])?;
    assert_eq!(("completed", "391"), end(&run));
    // Two steps: the call, and the answer.
    let reward = (2 * ANSWER_TOKENS).to_string();
    assert_eq!(json!([reward, "200"]), json!([run["minerReward"], run["networkFee"]]));
    // The chain does not have fork v7: nothing was written that only that knows.
    assert!(run.get("protection").is_none() && run["bill"].get("heldUntil").is_none(), "{run}");
    // The requester may know of the end before the miner has written it down.
    wait_until("the miner to know that the run is over", || {
        Ok(scene.home.logged()?.contains(" over run="))
    })?;
    miner.stop()?;

    let earned = scene.home.told(&["earnings"])?;
    assert_eq!(json!(2 * ANSWER_TOKENS), earned["earned_micro"]);
    assert_eq!(json!(1), earned["completed"]);

    let id = text(&run, "agentRunId");
    let why = scene.home.tell(&["why", id])?;
    assert!(why.contains("CLAIM") && why.contains("ended as completed"), "{why}");
    let receipt = scene.home.tell(&["receipt", id])?;
    scene.home.verify(&receipt)?;
    // One letter of what a tool gave back.
    let spoilt = receipt.replace("\"391\"", "\"392\"");
    assert_ne!(receipt, spoilt);
    let refused = scene.home.verify(&spoilt).expect_err("a spoilt receipt was believed");
    assert!(refused.to_string().contains("resultHash"), "{refused:#}");
    Ok(())
}

#[test]
fn what_can_be_calculated_is_calculated_without_naming_a_tool() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let _miner = scene.home.start()?;
    let asked = |more: &[&str]| scene.settled(&[&["What is 17 * 23?"], more].concat());
    let run = asked(&[])?;
    assert_eq!("391", text(&run, "finalAnswerInline"));
    assert_eq!(json!(["date_diff", "date_parse", "math_eval"]), run["toolsWhitelist"]);
    let call = &run["steps"][0]["toolCalls"][0];
    assert_eq!(json!(["math_eval", true]), json!([call["name"], call["ok"]]));

    // Who wants none has none, and neither has an answer of a form.
    let run = asked(&["--no-tools"])?;
    assert_eq!(json!([[], "Hello."]), json!([run["toolsWhitelist"], run["finalAnswerInline"]]));
    let run = asked(&["--method", "inferString"])?;
    assert_eq!(json!([]), run["toolsWhitelist"]);
    Ok(())
}

#[test]
fn a_miner_without_the_tools_of_every_question_answers_it_all_the_same() -> anyhow::Result<()> {
    let scene = Scene::on(&[], "\n[tools]\nallow = [\"now\"]\n")?;
    let _miner = scene.home.start()?;
    let run = scene.settled(&["What is 17 * 23?"])?;
    assert_eq!(("completed", "Hello."), end(&run));
    assert_eq!(json!(1), run["stepCount"]);
    Ok(())
}

#[test]
fn a_miner_bonds_for_a_protected_run_and_is_paid_when_the_reward_is_due() -> anyhow::Result<()> {
    let scene = Scene::on(&["--v7", "0"], "")?;
    let miner = scene.home.start()?;
    assert_eq!("0", scene.stake(1)?["bonded"]);
    let run = scene.ask("How much is 17 times 23?", &["--refuse-ms", "3000"])?;
    assert_eq!(("completed", "391"), end(&run));
    let protection = json!({ "miners": [], "claimBond": "100000", "refuseMs": 3_000 });
    assert_eq!(protection, run["protection"]);
    // What is held, and until when, is on the bill.
    assert!(run["bill"]["heldUntil"].is_u64(), "{run}");
    assert_eq!("100000", run["bill"]["lockedBond"]);
    assert_eq!("100000", scene.stake(1)?["bonded"]);

    let id = text(&run, "agentRunId");
    wait_until("the reward to be paid", || {
        let record = scene.node.call("ombra_getAgentRun", &json!([id]))?;
        Ok(record.get("heldUntil").is_none())
    })?;
    assert_eq!("0", scene.stake(1)?["locked"]);
    let earned = scene.home.told(&["earnings"])?;
    assert_eq!(json!(2 * ANSWER_TOKENS), earned["earned_micro"]);
    assert!(earned.get("held_micro").is_none(), "{earned}");
    wait_until("the miner to tell its bond", || {
        let status = scene.home.told(&["status"])?;
        let stake = &status["node"]["stake"];
        let is_told = stake["bonded_micro"] == json!(100_000) && stake["locked_micro"] == json!(0);
        Ok(is_told)
    })?;
    miner.stop()
}

#[test]
fn a_requester_refuses_a_reward_and_says_why() -> anyhow::Result<()> {
    let scene = Scene::on(&["--v7", "0"], "")?;
    let miner = scene.home.start()?;
    let run = scene.ask("How much is 17 times 23?", &[])?;
    assert_eq!(json!(600_000), run["protection"]["refuseMs"]);
    let (id, url) = (text(&run, "agentRunId"), scene.url());
    let place = ["--dev", "0", "--rpc", url.as_str()];
    let refuse = ["tx", "refuse", id, "--reason", "It is 390."];
    printed(scene.node.ombra(&[&refuse[..], &place].concat())?)?;
    let record = scene.node.call("ombra_getAgentRun", &json!([id]))?;
    assert_eq!(json!(true), record["refused"]);
    let turns = scene.node.call("ombra_getConversation", &json!([run["conversationId"]]))?;
    let last = turns["items"].as_array().and_then(|turns| turns.last()).context("a turn")?;
    assert_eq!(("It is 390.", "submitter"), (text(last, "content"), text(last, "relation")));
    assert_eq!(json!(1), scene.stake(0)?["rewardsRefused"]);
    // The reward and the stake of the requester are burned of the bond, too.
    let left = 100_000 - 2 * ANSWER_TOKENS - 10_000;
    assert_eq!(json!(left.to_string()), scene.stake(1)?["bonded"]);
    let earned = scene.home.told(&["earnings"])?;
    assert_eq!(json!([0, 1]), json!([earned["earned_micro"], earned["refused"]]));
    let again = scene.node.ombra(&[&refuse[..3], &place].concat())?;
    assert_eq!(Some(4), again.status.code(), "a reward is refused once");
    let told = String::from_utf8_lossy(&again.stderr);
    assert!(told.contains("REFUSE_CLOSED"), "{told}");
    let plain = scene.ask("How much is 17 times 23 again?", &["--unprotected"])?;
    assert!(plain.get("protection").is_none() && plain["bill"].get("heldUntil").is_none());
    miner.stop()
}
