//! `ombra miner` works for its fee: a real node, a real miner, a model that follows a rule.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::{Value, json};
use testkit::model::{ANSWER_TOKENS, ModelServer};
use testkit::node::{DevOptions, Node, wait_for};
use testkit::process::{Process, lines_to};

/// A node, a miner's folder, and the model that it uses.
struct Scene {
    node: Node,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> anyhow::Result<Self> {
        Self::on(&[])
    }

    /// On a chain with these options.
    fn on(options: &[&str]) -> anyhow::Result<Self> {
        let more = options.iter().map(ToString::to_string).collect();
        let node = Node::start(DevOptions { more, ..DevOptions::from_environment() })?;
        let folder = tempfile::tempdir()?;
        let model = ModelServer::start("math_eval", &json!({ "expression": "17*23" }))?;
        std::fs::write(folder.path().join("miner.toml"), model.settings())?;
        Ok(Self { node, folder })
    }

    fn url(&self) -> String {
        format!("http://{}", self.node.rpc)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Starts a miner on development account `account` and waits until it works.
    fn mine(&self, account: &str) -> anyhow::Result<Process> {
        let mut miner = self.start(account)?;
        self.await_introduction(&mut miner)?;
        Ok(miner)
    }

    /// Starts a miner and waits for nothing.
    fn start(&self, account: &str) -> anyhow::Result<Process> {
        let mut command = Command::new(testkit::node::binary());
        command
            .args(["miner", "--dev", account, "--config", &self.path("miner.toml")])
            .args(["--rpc", &self.url(), "--data-dir", &self.path("miners")])
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(self.path("miner.log"))?);
        Process::start("the miner", &mut command)
    }

    /// Waits until a miner works.
    fn await_introduction(&self, miner: &mut Process) -> anyhow::Result<()> {
        let works = lines_to(&miner.lines()?, "open").is_some();
        anyhow::ensure!(works, "{}", std::fs::read_to_string(self.path("miner.log"))?);
        Ok(())
    }

    /// Waits until a miner has said both that it waits for its node and for its model.
    fn await_waiting(&self) -> anyhow::Result<()> {
        wait_for("the miner to wait for both", || {
            let log = std::fs::read_to_string(self.path("miner.log"))?;
            let waits = |what: &str| log.contains(&format!("waiting for the {what}"));
            Ok((waits("node") && waits("model's server")).then_some(()))
        })
    }

    /// Asks for a run and answers its settled record.
    fn ask(&self, question: &str) -> anyhow::Result<Value> {
        self.ask_with(question, &[])
    }

    /// The same with more options.
    fn ask_with(&self, question: &str, more: &[&str]) -> anyhow::Result<Value> {
        self.settled(&[&[question, "--tools", "math_eval"], more].concat())
    }

    /// The settled record of `ombra run` with these arguments.
    fn settled(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let url = self.url();
        let usual =
            ["--max-fee", "10000", "--dev", "0", "--rpc", &url, "--json", "--timeout", "60"];
        let asked = self.node.ombra(&[&["run"], arguments, &usual].concat())?;
        let log = std::fs::read_to_string(self.path("miner.log"))?;
        let said = String::from_utf8_lossy(&asked.stderr);
        anyhow::ensure!(asked.status.success(), "{said}\n{log}");
        Ok(serde_json::from_slice(&asked.stdout)?)
    }

    /// What a command about the miner of account 1 prints.
    fn tell(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let place = ["--dev", "1", "--rpc", &self.url(), "--data-dir", &self.path("miners")];
        let told = self.node.ombra(&[&["miner"], arguments, &place].concat())?;
        anyhow::ensure!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        Ok(String::from_utf8(told.stdout)?)
    }
}

#[test]
fn a_miner_claims_a_run_calls_its_tool_answers_and_is_paid() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let miner = scene.mine("1")?;
    let run = scene.ask("How much is 17 times 23?")?;
    assert_eq!(("completed", "391"), (text(&run, "status"), text(&run, "finalAnswerInline")));
    // Two steps: the call, and the answer.
    let reward = (2 * ANSWER_TOKENS).to_string();
    let paid = ["minerReward", "networkFee"].map(|part| text(&run, part).to_owned());
    assert_eq!([reward.as_str(), "200"], [&*paid[0], &*paid[1]]);
    // The chain does not have fork v7: nothing was written that only that knows.
    assert!(run.get("protection").is_none() && run["bill"].get("heldUntil").is_none(), "{run}");
    // The requester may know of the end before the miner has written it down.
    wait_for("the miner to know that the run is over", || {
        let log = std::fs::read_to_string(scene.path("miner.log"))?;
        Ok(log.contains(" over run=").then_some(()))
    })?;
    miner.stop()?;

    let earned: Value = serde_json::from_str(&scene.tell(&["earnings", "--json"])?)?;
    assert_eq!(json!(2 * ANSWER_TOKENS), earned["earned_micro"]);
    assert_eq!(json!(1), earned["completed"]);

    let id = text(&run, "agentRunId");
    let why = scene.tell(&["why", id])?;
    assert!(why.contains("CLAIM") && why.contains("ended as completed"), "{why}");
    let receipt = scene.tell(&["receipt", id])?;
    verify(&scene, &receipt)?;
    // One letter of what a tool gave back.
    let spoilt = receipt.replace("\"391\"", "\"392\"");
    assert_ne!(receipt, spoilt);
    assert!(verify(&scene, &spoilt).is_err(), "a spoilt receipt was believed");
    Ok(())
}

#[test]
fn what_can_be_calculated_is_calculated_without_naming_a_tool() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let _miner = scene.mine("1")?;
    let asked = |more: &[&str]| scene.settled(&[&["What is 17 * 23?"], more].concat());
    let run = asked(&[])?;
    assert_eq!("391", text(&run, "finalAnswerInline"));
    assert_eq!(json!(["date_diff", "date_parse", "math_eval"]), run["toolsWhitelist"]);
    let calls = &run["steps"][0]["toolCalls"];
    assert_eq!(
        (json!("math_eval"), json!(true)),
        (calls[0]["name"].clone(), calls[0]["ok"].clone())
    );

    // Who wants none has none, and neither has an answer of a form.
    let run = asked(&["--no-tools"])?;
    assert_eq!(
        (json!([]), "Hello."),
        (run["toolsWhitelist"].clone(), text(&run, "finalAnswerInline"))
    );
    let run = asked(&["--method", "inferString"])?;
    assert_eq!(json!([]), run["toolsWhitelist"]);
    Ok(())
}

#[test]
fn a_miner_without_the_tools_of_every_question_answers_it_all_the_same() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let settings = std::fs::read_to_string(scene.path("miner.toml"))?;
    std::fs::write(scene.path("miner.toml"), settings + "\n[tools]\nallow = [\"now\"]\n")?;
    let _miner = scene.mine("1")?;
    let run = scene.settled(&["What is 17 * 23?"])?;
    assert_eq!(("completed", "Hello."), (text(&run, "status"), text(&run, "finalAnswerInline")));
    assert_eq!(json!(1), run["stepCount"]);
    Ok(())
}

#[test]
fn a_killed_miner_goes_on_where_it_was() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    for round in 0..5 {
        let miner = scene.mine("1")?;
        let question = format!("How much is 17 times 23, the {round}th time?");
        let run = std::thread::scope(|scope| {
            let asked = scope.spawn(|| scene.ask(&question));
            // The claim of this round is on the chain, and perhaps more.
            let is_claimed = || {
                let runs = scene.node.call("ombra_listAgentRuns", &json!([{ "limit": 1 }]))?;
                let newest = &runs["items"][0];
                let is_claimed = newest["prompt"] == json!(question);
                Ok((is_claimed && newest["status"] != "pending").then_some(()))
            };
            wait_for("the run to be claimed", is_claimed)?;
            drop(miner);
            let _again = scene.mine("1")?;
            asked.join().map_err(|_panic| anyhow::anyhow!("the asking thread panicked"))?
        })?;
        assert_eq!(("completed", "391"), (text(&run, "status"), text(&run, "finalAnswerInline")));
        assert_eq!(json!(2), run["stepCount"], "no step twice");
    }
    let earned: Value = serde_json::from_str(&scene.tell(&["earnings", "--json"])?)?;
    assert_eq!(json!(5 * 2 * ANSWER_TOKENS), earned["earned_micro"]);
    Ok(())
}

#[test]
fn a_miner_waits_for_its_node_and_its_model_and_can_be_stopped_meanwhile() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let model = ModelServer::absent()?;
    std::fs::write(scene.path("miner.toml"), model.settings())?;
    scene.node.kill()?;
    let waiting = scene.start("1")?;
    scene.await_waiting()?;
    waiting.stop()?;

    let mut miner = scene.start("1")?;
    scene.await_waiting()?;
    scene.node.restart_in_place()?;
    ModelServer::start_at(model.address, "math_eval", &json!({ "expression": "17*23" }))?;
    scene.await_introduction(&mut miner)?;
    let run = scene.ask("How much is 17 times 23?")?;
    assert_eq!(("completed", "391"), (text(&run, "status"), text(&run, "finalAnswerInline")));
    miner.stop()
}

#[test]
fn a_miner_with_a_server_that_is_no_model_ends_with_a_sentence() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let settings = format!("[backend]\nurl = \"{}/v1\"\nmodel = \"none\"\n", scene.url());
    std::fs::write(scene.path("miner.toml"), settings)?;
    let mut miner = scene.start("1")?;
    let status = miner.child.wait()?;
    let said = std::fs::read_to_string(scene.path("miner.log"))?;
    assert!(!status.success() && said.contains("refuses the request"), "{status}: {said}");
    Ok(())
}

/// What the chain says that an account has at stake.
fn stake(scene: &Scene, account: usize) -> anyhow::Result<Value> {
    let key = testkit::workload::keys(account + 1)?.pop().context("a key")?;
    scene.node.call("ombra_getBond", &json!([key.address()]))
}

#[test]
fn a_miner_bonds_for_a_protected_run_and_is_paid_when_the_reward_is_due() -> anyhow::Result<()> {
    let scene = Scene::on(&["--v7", "0"])?;
    let miner = scene.mine("1")?;
    assert_eq!("0", stake(&scene, 1)?["bonded"]);
    let run = scene.ask_with("How much is 17 times 23?", &["--refuse-ms", "3000"])?;
    assert_eq!(("completed", "391"), (text(&run, "status"), text(&run, "finalAnswerInline")));
    let protection = json!({ "miners": [], "claimBond": "100000", "refuseMs": 3_000 });
    assert_eq!(protection, run["protection"]);
    // What is held, and until when, is on the bill.
    assert!(run["bill"]["heldUntil"].is_u64(), "{run}");
    assert_eq!("100000", run["bill"]["lockedBond"]);
    assert_eq!("100000", stake(&scene, 1)?["bonded"]);

    let id = text(&run, "agentRunId");
    wait_for("the reward to be paid", || {
        let record = scene.node.call("ombra_getAgentRun", &json!([id]))?;
        Ok(record.get("heldUntil").is_none().then_some(()))
    })?;
    assert_eq!("0", stake(&scene, 1)?["locked"]);
    let earned: Value = serde_json::from_str(&scene.tell(&["earnings", "--json"])?)?;
    assert_eq!(json!(2 * ANSWER_TOKENS), earned["earned_micro"]);
    assert!(earned.get("held_micro").is_none(), "{earned}");
    wait_for("the miner to tell its bond", || {
        let status: Value = serde_json::from_str(&scene.tell(&["status", "--json"])?)?;
        let stake = &status["node"]["stake"];
        let is_told = stake["bonded_micro"] == json!(100_000) && stake["locked_micro"] == json!(0);
        Ok(is_told.then_some(()))
    })?;
    miner.stop()
}

#[test]
fn a_requester_refuses_a_reward_and_says_why() -> anyhow::Result<()> {
    let scene = Scene::on(&["--v7", "0"])?;
    let miner = scene.mine("1")?;
    let run = scene.ask("How much is 17 times 23?")?;
    assert_eq!(json!(600_000), run["protection"]["refuseMs"]);
    let (id, url) = (text(&run, "agentRunId"), scene.url());
    let place = ["--dev", "0", "--rpc", url.as_str()];
    let refuse = ["tx", "refuse", id, "--reason", "It is 390."];
    let told = scene.node.ombra(&[&refuse[..], &place].concat())?;
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let record = scene.node.call("ombra_getAgentRun", &json!([id]))?;
    assert_eq!(json!(true), record["refused"]);
    let turns = scene.node.call("ombra_getConversation", &json!([run["conversationId"]]))?;
    let last = turns["items"].as_array().and_then(|turns| turns.last()).context("a turn")?;
    assert_eq!(("It is 390.", "submitter"), (text(last, "content"), text(last, "relation")));
    assert_eq!(json!(1), stake(&scene, 0)?["rewardsRefused"]);
    // The reward and the stake of the requester are burned of the bond, too.
    let left = 100_000 - 2 * ANSWER_TOKENS - 10_000;
    assert_eq!(json!(left.to_string()), stake(&scene, 1)?["bonded"]);
    let earned: Value = serde_json::from_str(&scene.tell(&["earnings", "--json"])?)?;
    assert_eq!((json!(0), json!(1)), (earned["earned_micro"].clone(), earned["refused"].clone()));
    let again = scene.node.ombra(&[&refuse[..3], &place].concat())?;
    assert_eq!(Some(4), again.status.code(), "a reward is refused once");
    let plain = scene.ask_with("How much is 17 times 23 again?", &["--unprotected"])?;
    assert!(plain.get("protection").is_none() && plain["bill"].get("heldUntil").is_none());
    miner.stop()
}

fn verify(scene: &Scene, receipt: &str) -> anyhow::Result<()> {
    let file = scene.path("receipt.json");
    std::fs::write(Path::new(&file), receipt)?;
    let told = scene.node.ombra(&["miner", "verify", &file, "--rpc", &scene.url()])?;
    anyhow::ensure!(told.status.success(), "{}", String::from_utf8_lossy(&told.stdout));
    Ok(())
}

fn text<'a>(record: &'a Value, member: &str) -> &'a str {
    record[member].as_str().unwrap_or_default()
}
