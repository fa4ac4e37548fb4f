//! The same answers from a running miner and from the journal of a killed one.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use testkit::model::ANSWER_TOKENS;
use testkit::node::wait_for;

use super::scene::{MINER, Scene};

fn mode(path: &Path) -> anyhow::Result<u32> {
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o777)
}

#[test]
fn a_running_miner_says_what_its_journal_says_after_kill_nine() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let miner = scene.mine()?;
    let run = scene.request("How much is 17 times 23?", 10_000, "math_eval")?;
    scene.settled(&run)?;
    let running = scene.until("the run to be over", |status| {
        let is_paid = status["node"]["balance_micro"] == json!(1_000_000_000 + 2 * ANSWER_TOKENS);
        is_paid && status["open"] == json!([]) && status["process"]["decisions"] != json!([])
    })?;
    let process = &running["process"];
    assert_eq!(json!("ready"), process["backend"]["state"]);
    assert_eq!(json!([{ "code": "CLAIM", "times": 1 }]), process["decisions"]);
    assert_eq!((&json!([]), &json!(1)), (&process["alarms"], &process["slots_max"]));
    assert_eq!(json!({ "claims": 1, "lost": 0, "spent_micro": 0 }), running["today"]);
    assert_eq!((&json!(MINER), &json!("ready")), (&running["wallet"], &running["node"]["state"]));
    assert!(process["policy"]["refused"].is_null() && process["policy"]["claiming"] == json!(true));
    let asked: [&[&str]; 4] = [
        &["why", &run, "--json"],
        &["runs", "--json"],
        &["runs", "--open", "--json"],
        &["receipt", &run],
    ];
    let ask = || asked.iter().map(|arguments| scene.tell(arguments)).collect::<Result<Vec<_>, _>>();
    let told = ask()?;
    let runs: Value = serde_json::from_str(&told[1])?;
    let (first, tokens) = (&runs[0], 2 * ANSWER_TOKENS);
    assert_eq!(json!([run, tokens]), json!([first["run"], first["reward_micro"]]));
    assert_eq!(json!([2, tokens]), json!([first["steps"], first["tokens"]]));
    assert_eq!(json!("ended as completed, reward 14 micro"), first["state"]);
    let nothing = "0".repeat(64);
    let unknown = scene.refused(&["why", &nothing], 1)?;
    assert!(unknown.ends_with(&format!("the journal has no run or call {nothing}\n")), "{unknown}");

    let socket = scene.home().join("control.sock");
    assert_eq!((0o600, 0o700), (mode(&socket)?, mode(&scene.home())?));
    drop(miner);
    assert!(socket.exists(), "kill -9 leaves the socket behind");
    assert_eq!(told, ask()?);
    let stopped = scene.status()?;
    assert!(stopped["process"].is_null());
    for same in ["wallet", "open", "today", "swept", "outbox"] {
        assert_eq!(running[same], stopped[same], "{same}");
    }
    assert_eq!(running["node"]["balance_micro"], stopped["node"]["balance_micro"]);

    let again = scene.mine()?;
    assert_eq!(told, ask()?, "the next miner answers at the same place");
    assert!(!scene.status()?["process"].is_null());
    again.stop()?;
    assert!(!socket.exists(), "an ordered stop takes the socket away");
    Ok(())
}

#[test]
fn the_pages_for_people_say_whether_it_runs_and_what_is_open() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let missing = scene.refused(&["status"], 2)?;
    assert!(missing.contains("no miner has run in"), "{missing}");
    let miner = scene.mine()?;
    // Nobody else has the tool, so it stays pending.
    let run = scene.request("Fly!", 10_000, "fly")?;
    let waited = wait_for("a decision", || {
        Ok(scene.tell(&["why", &run]).ok().filter(|why| why.contains("TOOLS_MISSING")))
    })?;
    assert!(waited.contains("not to be claimed: tools that this miner does not have: fly"));
    let page = scene.tell(&["status"])?;
    for part in ["running since", "answers; ", "1000.000000 OMBRA", "0 of 1 taken", "TOOLS_MISSING"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert_eq!("none\n", scene.tell(&["runs"])?);
    drop(miner);
    let page = scene.tell(&["status"])?;
    assert!(page.contains("not running; the journal says:"), "{page}");
    assert!(!page.contains("back end"), "{page}");
    let folder = scene.path("miners").display().to_string();
    let nowhere = ["--rpc", "http://127.0.0.1:1", "--data-dir", &folder];
    let no_node = scene.node.ombra(&[&["miner", "runs"], &nowhere[..]].concat())?;
    assert!(no_node.status.success(), "a journal is read without a node");
    Ok(())
}

#[test]
fn a_policy_is_tried_on_the_pending_runs_and_nothing_is_claimed() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let config = scene.config().display().to_string();
    let check = |scene: &Scene, more: &[&str]| {
        let url = format!("http://{}", scene.node.rpc);
        let arguments = ["miner", "policy", "check", "--config", &config, "--rpc", &url];
        let told = scene.node.ombra(&[&arguments[..], more].concat())?;
        let said = [told.stdout, told.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        anyhow::Ok((told.status.code(), said))
    };
    let (code, [said, _]) = check(&scene, &[])?;
    assert_eq!((Some(0), format!("{config}: no faults\nno run waits for a miner\n")), (code, said));
    let taken = scene.request("How much?", 10_000, "math_eval")?;
    let flies = scene.request("Fly!", 20_000, "fly")?;
    let cheap = scene.request("Cheap", 500, "now")?;
    let decisions = |scene: &Scene, more: &[&str]| {
        let (code, [said, error]) = check(scene, more)?;
        anyhow::ensure!(code == Some(0), "{error}");
        let lines = said.lines().map(serde_json::from_str::<Value>);
        let pair = |it: Value| [it["run"].clone(), it["code"].clone()];
        lines.map(|line| Ok(pair(line?))).collect::<anyhow::Result<Vec<_>>>()
    };
    let expected = |first: &str| {
        vec![
            [json!(flies), json!("TOOLS_MISSING")],
            [json!(taken), json!(first)],
            [json!(cheap), json!("FEE_TOO_LOW")],
        ]
    };
    assert_eq!(expected("CLAIM"), decisions(&scene, &["--json"])?);
    let (_, [table, _]) = check(&scene, &["--dev", "1"])?;
    assert!(table.contains("maxFee 500 micro is below min_max_fee_micro 1000"), "{table}");
    scene.configure("claiming = false")?;
    assert_eq!(expected("PAUSED"), decisions(&scene, &["--json", "--dev", "1"])?);
    scene.configure("runs_max = 0")?;
    let (code, [_, error]) = check(&scene, &[])?;
    assert_eq!(Some(2), code);
    assert!(error.contains("policy.runs_max is 0; expected 1 to 256"), "{error}");
    for run in [taken, flies, cheap] {
        let record = scene.node.call("ombra_getAgentRun", &json!([run]))?;
        assert_eq!(json!("pending"), record["status"]);
    }
    Ok(())
}

#[test]
fn a_broken_policy_file_changes_nothing_and_the_status_says_so() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let _miner = scene.mine()?;
    scene.configure("runs_max = 0")?;
    let status = scene.until("the file to be refused", |status| {
        status["process"]["policy"]["refused"].is_string()
    })?;
    let refused = status["process"]["policy"]["refused"].as_str().unwrap_or_default();
    assert_eq!("policy.runs_max is 0; expected 1 to 256", refused);
    let page = scene.tell(&["status"])?;
    assert!(page.contains("ITS NEWEST VERSION IS NOT IN FORCE: policy.runs_max is 0"), "{page}");
    let run = scene.request("How much is 17 times 23?", 10_000, "math_eval")?;
    assert_eq!(json!("completed"), scene.settled(&run)?["status"], "the old policy claims");
    scene.configure("claiming = false")?;
    scene.until("the file to be read", |status| {
        let policy = &status["process"]["policy"];
        policy["refused"].is_null() && policy["claiming"] == json!(false)
    })?;
    Ok(())
}
