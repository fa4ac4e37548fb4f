//! `ombra health`, and what becomes of a node that stopped for safety.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

use testkit::net::Net;
use testkit::node::{binary, wait_for};
use testkit::process::{Signal, signal};

/// The exit code, and what was said.
fn told(output: &Output) -> (Option<i32>, String) {
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).trim().to_owned())
}

#[test]
fn a_node_without_peers_is_alive_and_not_ready() -> anyhow::Result<()> {
    let mut net = Net::make(2, 0)?;
    net.members[0].start()?;
    assert_eq!((Some(0), "alive".to_owned()), told(&net.members[0].ombra(&["health", "--alive"])?));
    let (code, said) = told(&net.members[0].ombra(&["health"])?);
    assert_eq!(Some(1), code);
    assert!(said.contains("not ready: peers (0 connected)"), "{said}");

    net.members[1].start()?;
    net.members[0].meets(1)?;
    wait_for("readiness", || {
        Ok((told(&net.members[0].ombra(&["health"])?) == (Some(0), "ready".to_owned()))
            .then_some(()))
    })?;

    net.members[0].kill()?;
    for flags in [&["health"][..], &["health", "--alive"]] {
        let (code, said) = told(&net.members[0].ombra(flags)?);
        assert_eq!(Some(3), code, "{said}");
    }
    Ok(())
}

#[test]
fn a_node_that_stopped_for_safety_stays_down_until_it_is_asked_to_end() -> anyhow::Result<()> {
    let mut net = Net::make(1, 0)?;
    net.members[0].start()?;
    net.members[0].reaches(1)?;
    net.members[0].kill()?;
    let member = &net.members[0];
    std::fs::write(member.home().join("data/consensus/last-signed"), "damaged")?;

    assert_eq!(Some(5), member.ombra(&["start"])?.status.code());

    let log = member.home().join("held.log");
    let mut command = Command::new(binary());
    command.args(["start", "--hold-unsafe", "--home"]).arg(member.home());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&log)?);
    let mut process = command.spawn()?;
    wait_for("the reason in the log", || {
        let said = std::fs::read_to_string(&log)?;
        Ok(said.contains("this process waits to be told to stop").then_some(()))
    })?;
    assert_eq!(Some(3), member.ombra(&["health", "--alive"])?.status.code());
    assert!(process.try_wait()?.is_none(), "it waits");
    signal(process.id(), Signal::TERM)?;
    let ended = process.wait()?;
    assert_eq!((Some(5), None), (ended.code(), ended.signal()));
    Ok(())
}
