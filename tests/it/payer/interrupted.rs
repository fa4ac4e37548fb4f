//! ctrl-C while a run is followed, and while a transaction waits for its block.

use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::json;
use testkit::node::{wait_for, wait_until};

use super::{Begun, Scene, assert_has, text};

const ESCROW: u64 = 10_000;

#[test]
fn ctrl_c_takes_a_pending_run_back_if_that_is_wished() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let before = scene.balance(0)?;
    let begun = scene.begin(&["Hi", "--cancel-on-interrupt"], "pending ")?;
    assert_eq!(before - ESCROW, scene.balance(0)?);
    begun.interrupt()?;
    let printed = begun.ends_with(1)?;
    let parts = ["taken back   tx ", "cancelled: the run was taken back; all of 0.010000"];
    assert_has(&printed, &parts);
    assert_eq!(before, scene.balance(0)?);
    Ok(())
}

#[test]
fn ctrl_c_without_a_terminal_leaves_a_pending_run_and_says_how_to_take_it_back()
-> anyhow::Result<()> {
    let scene = Scene::new()?;
    let begun = scene.begin(&["Hi"], "pending ")?;
    let run = begun.run()?;
    begun.interrupt()?;
    let printed = begun.ends_with(1)?;
    let parts = ["waits for a miner until", "to take it back now: ombra tx cancel", "--follow"];
    assert_has(&printed, &parts);
    assert_pending(&scene, &run)?;
    // Who did not ask for it cannot take it back, and is told so.
    let watching = ["run", "--follow", &run, "--dev", "2", "--cancel-on-interrupt"];
    let begun = scene.watch(&watching, "pending ")?;
    begun.interrupt()?;
    let printed = begun.ends_with(1)?;
    assert_has(&printed, &["only de133ca6f509c74f6e2e849403cc461d2d5b3e3c can take"]);
    Ok(())
}

#[test]
fn a_claimed_run_goes_on_after_ctrl_c() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let mut begun = scene.begin(&["Hi", "--cancel-on-interrupt"], "pending ")?;
    let run = begun.run()?;
    scene.done(&["tx", "claim", &run, "--dev", "1"])?;
    begun.read_to("claimed ")?;
    begun.interrupt()?;
    let printed = begun.ends_with(1)?;
    let follow = format!("ombra run --follow {run}");
    assert_has(&printed, &["works on the run, so you can no longer cancel it", &follow]);
    Ok(())
}

/// `ombra run` in a terminal of its own.
fn in_a_terminal(scene: &Scene) -> anyhow::Result<Begun> {
    let ombra = testkit::node::binary();
    // The program takes the shell's place: a shell that waited would hear ctrl-C too, and some (dash)
    // then end as interrupted whatever the program said.
    let line = format!("exec {} run Hi --dev 0 --max-fee {ESCROW}", ombra.display());
    let mut command = Command::new("script");
    command.args(["-qefc", &line, "/dev/null"]).env("OMBRA_RPC", scene.url());
    // A terminal without a name has no live line.
    command.env("TERM", "xterm").env_remove("OMBRA_WALLET");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Begun::of(&mut command).context("`script` of util-linux")
}

/// Types into it.
fn type_in(begun: &mut Begun, keys: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let terminal = begun.process.child.stdin.as_mut().context("its keyboard")?;
    terminal.write_all(keys.as_bytes())?;
    Ok(terminal.flush()?)
}

#[test]
fn a_terminal_has_a_live_line_and_is_asked_before_a_run_is_taken_back() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let before = scene.balance(0)?;
    let mut begun = in_a_terminal(&scene)?;
    wait_until("the escrow", || Ok(scene.balance(0)? == before - ESCROW))?;
    begun.read_to("requested ")?;
    // The record was read, so the line lives.
    begun.read_to_part("0.000000 of 0.010000 OMBRA, 0 tokens")?;
    type_in(&mut begun, "\u{3}")?;
    begun.read_to_part("^C")?;
    type_in(&mut begun, "y\n")?;
    // It stands behind the question when the key was echoed before that.
    begun.read_to_part("taken back   tx ")?;
    let printed = begun.ends_with(1)?;
    assert!(printed.contains("0.000000 of 0.010000 OMBRA, 0 tokens"), "{printed}");
    assert!(printed.contains("Cancel it and take 0.010000 OMBRA back? y/n"), "{printed}");
    assert_eq!(before, scene.balance(0)?);
    Ok(())
}

#[test]
fn who_does_not_say_yes_at_the_terminal_leaves_the_run_pending() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    for answer in ["n\n", "\n"] {
        let (mut begun, run) = asked_in_a_terminal(&scene)?;
        type_in(&mut begun, answer)?;
        let printed = begun.ends_with(1)?;
        assert!(printed.contains("waits for a miner until"), "{answer:?}: {printed}");
        assert_pending(&scene, &run)?;
    }
    let (mut begun, run) = asked_in_a_terminal(&scene)?;
    // Pressed until it was heard: two that come at once are one.
    wait_for("a second ctrl-C to end it", || {
        let ended = begun.process.child.try_wait()?;
        if ended.is_none() {
            // It may end just now.
            drop(type_in(&mut begun, "\u{3}"));
        }
        Ok(ended)
    })?;
    let printed = begun.ends_with(1)?;
    assert!(printed.contains("ombra: interrupted"), "{printed}");
    assert!(!printed.contains("waits for a miner until"), "{printed}");
    assert_pending(&scene, &run)
}

/// A pending run in a terminal, and ctrl-C pressed.
fn asked_in_a_terminal(scene: &Scene) -> anyhow::Result<(Begun, String)> {
    let mut begun = in_a_terminal(scene)?;
    begun.read_to("pending ")?;
    let run = begun.run()?;
    type_in(&mut begun, "\u{3}")?;
    begun.read_to_part("^C")?;
    Ok((begun, run))
}

fn assert_pending(scene: &Scene, run: &str) -> anyhow::Result<()> {
    let record = scene.node.call("ombra_getAgentRun", &json!([run]))?;
    assert_eq!("pending", text(&record, "status"));
    Ok(())
}

#[test]
fn ctrl_c_while_a_transaction_waits_for_its_block_names_it() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    // It waits for the nonce before it.
    let sending = ["tx", "transfer", "dev:3", "1ombra", "--dev", "0", "--nonce", "1"];
    let begun = scene.watch(&sending, "TRANSFER ")?;
    let told = begun.printed.iter().find_map(|line| line.strip_prefix("TRANSFER "));
    let hash = told.context("a hash")?.to_owned();
    begun.interrupt()?;
    let printed = begun.ends_with(1)?;
    let ask = format!("before you repeat it, ask: ombra query tx {hash}");
    assert_has(&printed, &["ombra: interrupted", &ask]);
    Ok(())
}
