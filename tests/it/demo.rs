//! The README's first command, without the building: a chain starts, one agent run is settled on it,
//! and everything stops in order.

use std::process::Command;

use serde_json::Value;
use tests::node::DevOptions;

#[test]
fn the_demonstration_settles_a_run_and_exits() -> anyhow::Result<()> {
    let output = Command::new(DevOptions::from_environment().binary)
        .args(["demo", "--exit", "--json", "--rpc", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
        .output()?;
    let printed = String::from_utf8(output.stdout)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let last = printed.lines().last().unwrap_or_default();
    let run: Value = serde_json::from_str(last)?;
    assert_eq!("completed", run["status"]);
    let parts = ["minerReward", "userRefund", "networkFee"];
    let sum: u64 = parts
        .iter()
        .map(|part| {
            run[part].as_str().and_then(|text| text.parse::<u64>().ok()).expect("an amount")
        })
        .sum();
    assert_eq!(run["maxFee"], sum.to_string());
    for kind in ["CHAT_TURN", "AGENT_REQUEST", "AGENT_CLAIM", "AGENT_STEP", "AGENT_FINISH"] {
        assert!(printed.contains(kind), "the demonstration shows no {kind}");
    }
    Ok(())
}
