//! A miner that waits at its start says so: to the commands, to who watches it, to systemd.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::Context as _;
use serde_json::{Value, json};
use testkit::model::ModelServer;
use testkit::node::wait_until;

use super::scene::{Miner, Scene};
use crate::support::Manager;

/// Why the check `start` fails; none if there is no such check.
fn start_fails(miner: &Miner) -> anyhow::Result<Option<String>> {
    let answer = miner.ready()?;
    let checks = answer["checks"].as_array().context("checks")?;
    let Some(start) = checks.iter().find(|it| it["name"] == "start") else { return Ok(None) };
    assert_eq!((&json!(false), &json!(false)), (&start["ok"], &answer["ready"]));
    Ok(start["detail"].as_str().map(str::to_owned))
}

/// What a status says that the start waits for.
fn waits(status: &Value) -> Vec<&str> {
    let waits = status["starting"]["waits"].as_array().into_iter().flatten();
    waits.filter(|wait| wait["why"].is_string()).filter_map(|wait| wait["what"].as_str()).collect()
}

#[test]
fn a_miner_started_before_its_node_says_so_and_works_when_the_node_is_there() -> anyhow::Result<()>
{
    let mut scene = Scene::new()?;
    scene.node.kill()?;
    let mut miner = scene.begin(&[])?;
    let status = scene.until("the node to be missed", |status| waits(status) == ["node"])?;
    assert_eq!(json!(miner.pid()), status["starting"]["pid"]);
    assert!(status["process"].is_null());
    assert_eq!((&json!([]), &json!("away")), (&status["open"], &status["node"]["state"]));
    let page = scene.tell(&["status"])?;
    assert!(page.contains("starting since"), "{page}");
    assert!(page.contains(&format!("pid {}", miner.pid())), "{page}");
    assert!(page.contains("waits for  the node: "), "{page}");
    let none = scene.refused(&["runs"], 1)?;
    assert!(none.contains("the miner has not worked yet"), "{none}");
    assert_eq!("ok\n", miner.get("/healthz")?);
    let why = start_fails(&miner)?.context("it starts")?;
    assert!(why.contains("waiting for the node: "), "{why}");
    let metrics = miner.get("/metrics")?;
    assert!(metrics.contains("ombra_miner_ready_check{check=\"start\"} 0\n"), "{metrics}");
    let socket = scene.home().join("start.sock");
    assert_eq!(0o600, std::fs::metadata(&socket)?.permissions().mode() & 0o777);

    scene.node.restart_in_place()?;
    miner.prints("open")?;
    assert_eq!(None, start_fails(&miner)?);
    wait_until("the miner to be ready", || Ok(miner.ready()?["ready"] == true))?;
    assert!(miner.get("/metrics")?.contains("ombra_miner_node_ready 1\n"));
    let status = scene.status()?;
    assert_eq!(json!([miner.pid(), null]), json!([status["process"]["pid"], status["starting"]]));
    assert!(!socket.exists());
    miner.stop()
}

#[test]
fn a_miner_that_starts_again_says_what_it_waits_for_and_its_journal_is_read() -> anyhow::Result<()>
{
    let mut scene = Scene::new()?;
    let miner = scene.mine()?;
    let run = scene.request("How much is 17 times 23?", 10_000, "math_eval")?;
    scene.settled(&run)?;
    scene.until("the run to be over", |status| status["open"] == json!([]))?;
    let asked = [&["runs", "--json"][..], &["why", &run, "--json"], &["receipt", &run]];
    let ask = || asked.iter().map(|arguments| scene.tell(arguments)).collect::<Result<Vec<_>, _>>();
    let told = ask()?;
    miner.stop()?;
    scene.write_config("[backend]\nurl = \"http://127.0.0.1:1\"\nmodel = \"rule\"\n")?;
    let miner = scene.begin(&[])?;
    let status = scene.until("the model to be missed", |status| waits(status) == ["backend"])?;
    assert_eq!(json!("ready"), status["node"]["state"]);
    assert_eq!(json!(1), status["today"]["claims"]);
    assert_eq!(told, ask()?);
    let why = start_fails(&miner)?.context("it starts")?;
    assert!(why.contains("waiting for the model's server: "), "{why}");
    miner.stop()?;
    assert!(scene.status()?["starting"].is_null());
    Ok(())
}

#[test]
fn a_miner_waits_for_its_node_and_its_model_and_can_be_stopped_meanwhile() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let model = ModelServer::absent()?;
    scene.write_config(&model.settings())?;
    scene.node.kill()?;
    let waits_for_both = || {
        wait_until("the miner to wait for both", || {
            let log = scene.log()?;
            let waits = |what: &str| log.contains(&format!("waiting for the {what}"));
            Ok(waits("node") && waits("model's server"))
        })
    };
    let waiting = scene.begin(&[])?;
    waits_for_both()?;
    waiting.stop()?;

    std::fs::remove_file(scene.path("miner.log"))?;
    let mut miner = scene.begin(&[])?;
    waits_for_both()?;
    scene.node.restart_in_place()?;
    ModelServer::start_at(model.address, "math_eval", &json!({ "expression": "17*23" }))?;
    miner.prints("open")?;
    let run = scene.request("How much is 17 times 23?", 10_000, "math_eval")?;
    let run = scene.settled(&run)?;
    assert_eq!(json!(["completed", "391"]), json!([run["status"], run["finalAnswerInline"]]));
    miner.stop()
}

#[test]
fn a_miner_with_a_server_that_is_no_model_ends_with_a_sentence() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let backend = format!("[backend]\nurl = \"http://{}/v1\"\nmodel = \"none\"\n", scene.rpc);
    scene.write_config(&backend)?;
    let said = scene.refused_to_mine(1)?;
    assert!(said.contains("refuses the request"), "{said}");
    Ok(())
}

#[test]
fn a_second_miner_that_is_refused_leaves_the_first_one_to_be_asked() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let first = scene.mine()?;
    let why = scene.refused_to_mine(1)?;
    assert!(why.contains("is open in another process"), "{why}");
    assert_eq!(json!(first.pid()), scene.status()?["process"]["pid"]);
    first.stop()
}

#[test]
fn systemd_hears_what_the_start_waits_for_and_then_that_it_is_over() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let path = scene.path("notify");
    let manager = Manager::at(&path)?;
    scene.node.kill()?;
    let mut miner = scene.begin(&[("NOTIFY_SOCKET", &path.to_string_lossy())])?;
    let before = manager.hears_of("STATUS=not ready: start (waiting for the node: ")?;
    assert!(!before.iter().any(|it| it.starts_with("READY")), "too early: {before:?}");
    scene.node.restart_in_place()?;
    manager.hears_of("READY=1\n")?;
    miner.prints("open")?;
    miner.stop()
}
