//! Alarms: they appear with the right reason, are logged once, and end.

use serde_json::{Value, json};

use super::scene::{Miner, Scene};
use crate::support::printed;

/// The alarm of this name in a status.
fn alarm<'a>(status: &'a Value, name: &str) -> Option<&'a str> {
    let alarms = status["process"]["alarms"].as_array().into_iter().flatten();
    alarms.into_iter().find(|it| it["name"] == name).and_then(|it| it["text"].as_str())
}

/// Waits until there is no work, for this reason.
fn idle_for(scene: &Scene, reason: &str) -> anyhow::Result<()> {
    scene.until(reason, |status| {
        alarm(status, "no_work").is_some_and(|text| text.contains(reason))
    })?;
    Ok(())
}

fn is_measured(miner: &Miner, sample: &str) -> anyhow::Result<bool> {
    Ok(miner.get("/metrics")?.lines().any(|line| line == sample))
}

#[test]
fn a_low_balance_is_an_alarm_until_money_comes() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    // Development accounts have 1,000 OMBRA.
    scene.configure("[alarms]\nbalance_micro_min = 1000000001")?;
    let miner = scene.mine()?;
    let status = scene.until("the alarm", |status| alarm(status, "balance_low").is_some())?;
    let expected = "the account has 1000000000 micro, less than balance_micro_min 1000000001";
    assert_eq!(Some(expected), alarm(&status, "balance_low"));
    assert!(scene.tell(&["status"])?.contains("balance_low, for"));
    assert!(is_measured(&miner, "ombra_miner_alarm{alarm=\"balance_low\"} 1")?);
    let url = format!("http://{}", scene.node.rpc);
    printed(scene.node.ombra(&["tx", "transfer", "dev:1", "1", "--dev", "0", "--rpc", &url])?)?;
    scene.until("the end of the alarm", |status| alarm(status, "balance_low").is_none())?;
    let log = scene.log()?;
    assert_eq!(1, log.matches("less than balance_micro_min").count(), "{log}");
    assert_eq!(1, log.matches("the alarm is over").count(), "{log}");
    Ok(())
}

#[test]
fn no_work_is_an_alarm_with_the_reason_of_the_moment() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let with = |policy: &str| format!("{policy}\n[alarms]\nno_work_s = 1");
    scene.configure(&with(""))?;
    let miner = scene.mine()?;
    idle_for(&scene, "no run waits for a miner")?;
    assert!(is_measured(&miner, "ombra_miner_no_work{reason=\"no_pending_runs\"} 1")?);
    scene.request("Cheap", 500, "math_eval")?;
    idle_for(&scene, "for FEE_TOO_LOW")?;
    assert!(is_measured(&miner, "ombra_miner_no_work{reason=\"FEE_TOO_LOW\"} 1")?);
    scene.configure(&with("claiming = false"))?;
    idle_for(&scene, "the policy has claiming = false")?;
    scene.node.kill()?;
    idle_for(&scene, "the node is away")?;
    // One alarm, whatever its reason was meanwhile.
    let log = scene.log()?;
    assert_eq!(1, log.matches("no work for").count(), "{log}");
    scene.node.restart_in_place()?;
    scene.configure(&with("min_max_fee_micro = 100\nmin_margin_micro = -1000"))?;
    scene.until("work", |status| status["today"]["claims"] == json!(1))?;
    idle_for(&scene, "no run waits for a miner")?;
    let log = scene.log()?;
    let counts = ["no work for", "is over"].map(|what| log.matches(what).count());
    assert_eq!([2, 1], counts, "{log}");
    Ok(())
}
