//! What the wallet does not need arrives at the cold address, once, though the miner is killed.

use serde_json::{Value, json};
use tests::node::{DevOptions, wait_for};

use super::scene::{MINER, Scene};

/// An address of which nobody here has the key.
const COLD: &str = "00112233445566778899aabbccddeeff00112233";
/// Development accounts have 1,000 OMBRA.
const ABOVE: u64 = 600_000_000;

fn settings(address: &str) -> String {
    format!("[sweep]\naddress = \"{address}\"\nkeep_micro = 400000000\nmin_micro = 1000000")
}

#[test]
fn money_arrives_once_though_the_miner_is_killed_around_it() -> anyhow::Result<()> {
    // Slow enough to die between the signature and the block, on a busy machine as well.
    let scene = Scene::with(DevOptions { block_time_ms: 5_000, ..DevOptions::from_environment() })?;
    scene.configure(&settings(COLD))?;
    let signed = |status: &Value| status["swept"]["signed_ms"] != json!(0);
    let mut died_under_way = 0;
    for round in 0..6 {
        let miner = scene.mine()?;
        if round >= 2 {
            scene.until("a sweep to be signed", signed)?;
        }
        drop(miner);
        let left = scene.status()?;
        died_under_way += u32::from(left["outbox"] == json!(1));
    }
    let miner = scene.mine()?;
    let status = scene.until("the sweep", |status| status["swept"]["times"] == json!(1))?;
    assert_eq!(json!(ABOVE), status["swept"]["total_micro"]);
    assert_eq!(json!(COLD), status["process"]["sweep"]["address"]);
    wait_for("the money", || Ok((scene.balance(COLD)? == ABOVE).then_some(())))?;
    assert_eq!(400_000_000, scene.balance(MINER)?);
    let account = scene.node.call("ombra_getAccount", &json!([MINER]))?;
    assert_eq!(json!(1), account["nonce"], "one transaction, whatever was killed");
    assert!(died_under_way > 0, "no kill met a signed sweep");
    assert!(scene.tell(&["status"])?.contains(COLD));
    miner.stop()?;
    let swept = &scene.status()?["swept"];
    assert_eq!((&json!(1), &json!(ABOVE)), (&swept["times"], &swept["total_micro"]));
    Ok(())
}

#[test]
fn a_cold_address_that_cannot_be_right_stops_the_start() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let config = scene.config().display().to_string();
    let cases = [
        (MINER, "the wallet's own; expected another address"),
        ("ox00", "40 lowercase hex characters"),
        ("0000000000000000000000000000000000000000", "sweep.address is all zeros"),
    ];
    for (address, sentence) in cases {
        scene.configure(&settings(address))?;
        let (code, said) = scene.refused(&["--dev", "1", "--config", &config])?;
        assert_eq!(Some(2), code, "{said}");
        assert!(said.contains(sentence), "{address}: {said}");
    }
    Ok(())
}
