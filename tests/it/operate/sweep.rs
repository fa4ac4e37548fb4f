//! What the wallet does not need arrives at the cold address, once, though the miner is killed.

use std::sync::Arc;

use serde_json::json;
use testkit::node::wait_until;
use testkit::wire::{Call, Side, Trap, Wire};
use types::Hash;

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
    let mut scene = Scene::new()?;
    let wire = Wire::to(scene.node.rpc, Arc::default())?;
    scene.rpc = wire.address;
    scene.configure(&settings(COLD))?;
    // The node never hears of the sweep; then the miner never hears that the node has it.
    for side in [Side::Request, Side::Answer] {
        let trap = Trap { after: "", call: Call::Send("TRANSFER"), passing: 0, side };
        let held = wire.hold(trap, &Hash::ZERO);
        let miner = scene.mine()?;
        held.reached("the sweep to be held up")?;
        drop(miner);
        wire.mend();
        let left = scene.status()?;
        assert_eq!((&json!(1), &json!(0)), (&left["outbox"], &left["swept"]["times"]), "{side:?}");
    }
    let miner = scene.mine()?;
    let status = scene.until("the sweep", |status| status["swept"]["times"] == json!(1))?;
    assert_eq!(json!(ABOVE), status["swept"]["total_micro"]);
    assert_eq!(json!(COLD), status["process"]["sweep"]["address"]);
    wait_until("the money", || Ok(scene.balance(COLD)? == ABOVE))?;
    assert_eq!(400_000_000, scene.balance(MINER)?);
    let account = scene.node.call("ombra_getAccount", &json!([MINER]))?;
    assert_eq!(json!(1), account["nonce"], "one transaction, whatever was killed");
    assert!(scene.tell(&["status"])?.contains(COLD));
    miner.stop()?;
    let swept = &scene.status()?["swept"];
    assert_eq!((&json!(1), &json!(ABOVE)), (&swept["times"], &swept["total_micro"]));
    Ok(())
}

#[test]
fn a_cold_address_that_cannot_be_right_stops_the_start() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let cases = [
        (MINER, "the wallet's own; expected another address"),
        ("ox00", "40 lowercase hex characters"),
        ("0000000000000000000000000000000000000000", "sweep.address is all zeros"),
    ];
    for (address, sentence) in cases {
        scene.configure(&settings(address))?;
        let said = scene.refused_to_mine(2)?;
        assert!(said.contains(sentence), "{address}: {said}");
    }
    Ok(())
}
