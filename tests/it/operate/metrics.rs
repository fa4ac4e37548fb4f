//! Metrics and health of a running miner, and the alerts and the dashboard that are made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};
use testkit::dashboards::{MINERS, OF_PROMETHEUS, names_in};
use testkit::model::ANSWER_TOKENS;
use testkit::node::wait_for;

use super::scene::{Miner, Scene};
use crate::support::samples;

/// What is there only while something is wrong, or once something was looked at.
const SOMETIMES: &[&str] = &["ombra_miner_no_work", "ombra_miner_run_seen_seconds"];

/// Every sample by its name without what all of them begin with, and by its labels.
fn samples_of(miner: &Miner) -> anyhow::Result<BTreeMap<String, f64>> {
    samples(&miner.get("/metrics")?, "ombra_miner_")
}

fn check(answer: &Value, name: &str) -> Value {
    let mut checks = answer["checks"].as_array().into_iter().flatten();
    checks.find(|check| check["name"] == name).map_or(Value::Null, |it| it["ok"].clone())
}

#[test]
fn a_run_is_measured_and_an_absent_node_is_not_ready() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let miner = scene.mine()?;
    let run = scene.request("How much is 17 times 23?", 10_000, "math_eval")?;
    scene.settled(&run)?;
    let measured = wait_for("the run to be counted", || {
        let measured = samples_of(&miner)?;
        let runs = measured.get("runs_total{status=\"completed\"}");
        Ok((runs == Some(&1.0)).then_some(measured))
    })?;
    let tokens = f64::from(u32::try_from(ANSWER_TOKENS)?);
    let expected = [
        ("decisions_total{code=\"CLAIM\"}", 1.0),
        ("claims_total", 1.0),
        ("claims_lost_total", 0.0),
        ("steps_total", 2.0),
        ("step_tokens_total", 2.0 * tokens),
        ("output_tokens_total", 2.0 * tokens),
        ("answer_seconds_count", 2.0),
        ("tool_calls_total{tool=\"math_eval\",outcome=\"ok\"}", 1.0),
        ("earned_micro_total", 2.0 * tokens),
        ("run_seconds_count", 1.0),
        ("slots", 1.0),
        ("today_claims", 1.0),
        ("backend_ready", 1.0),
        ("node_ready", 1.0),
        ("ready_check{check=\"journal\"}", 1.0),
        ("alarm{alarm=\"no_work\"}", 0.0),
    ];
    for (name, value) in expected {
        assert_eq!(Some(&value), measured.get(name), "{name}");
    }
    for name in ["balance_micro", "journal_write_seconds_count", "prompt_tokens_total"] {
        assert!(measured[name] > 0.0, "{name}");
    }
    assert_eq!("ok\n", miner.get("/healthz")?);
    assert_eq!(json!(true), miner.ready()?["ready"]);

    scene.node.kill()?;
    let answer = wait_for("the node to be missed", || {
        let answer = miner.ready()?;
        Ok((check(&answer, "node") == json!(false)).then_some(answer))
    })?;
    assert_eq!(json!([false, true]), json!([answer["ready"], check(&answer, "backend")]));
    assert_eq!("ok\n", miner.get("/healthz")?);
    let measured = samples_of(&miner)?;
    assert_eq!(0.0, measured["node_ready"]);
    assert!(measured["balance_micro"] > 0.0, "what the node said last is kept");
    Ok(())
}

#[test]
fn a_miner_that_claims_no_runs_is_ready_if_it_serves_agents() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let offers = "[market]\n[[market.offers]]\nexecutor = \"wasm-1\"\nper_call_micro = 1000\n";
    scene.configure(&format!("claiming = false\n[alarms]\nno_work_s = 1\n{offers}"))?;
    let miner = scene.mine()?;
    let is_idle = |reason: &str| {
        let idle = format!("no_work{{reason=\"{reason}\"}}");
        wait_for(reason, || Ok(samples_of(&miner)?.contains_key(&idle).then_some(())))
    };
    is_idle("no_calls")?;
    assert_eq!(json!(true), miner.ready()?["ready"]);

    scene.configure("claiming = false\n[alarms]\nno_work_s = 1\n[market]\noffers = []\n")?;
    is_idle("paused")?;
    assert_eq!(json!(false), check(&miner.ready()?, "policy"));
    Ok(())
}

#[test]
fn requests_that_are_never_finished_do_not_keep_the_miner_from_ending() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let miner = scene.mine()?;
    let mut metrics = TcpStream::connect(miner.metrics.context("metrics are served")?)?;
    metrics.write_all(b"GET /metrics HTTP/1.1\r\n")?;
    let mut control = UnixStream::connect(scene.home().join("control.sock"))?;
    control.write_all(b"GET /status HTTP/1.1\r\n")?;
    // Who came later was answered, so both connections stand.
    assert_eq!("ok\n", miner.get("/healthz")?);
    scene.status()?;
    let began = Instant::now();
    miner.stop()?;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    Ok(())
}

#[test]
fn every_metric_of_the_alerts_and_of_the_dashboard_is_measured() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let miner = scene.mine()?;
    scene.request("How much is 17 times 23?", 10_000, "math_eval")?;
    let name =
        |sample: &String| format!("ombra_miner_{}", sample.split('{').next().unwrap_or_default());
    let measured = wait_for("a settled run", || {
        let names: BTreeSet<_> = samples_of(&miner)?.keys().map(name).collect();
        Ok(names.contains("ombra_miner_runs_total").then_some(names))
    })?;
    let asked_for = names_in(MINERS, "miner-alerts.yml")?;
    let known = |name: &String| {
        let is_usual = OF_PROMETHEUS.contains(&name.as_str()) || SOMETIMES.contains(&name.as_str());
        is_usual || measured.contains(name)
    };
    let unknown: Vec<_> = asked_for.iter().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "no miner measures {unknown:?}");
    Ok(())
}
