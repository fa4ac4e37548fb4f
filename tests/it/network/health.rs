//! `ombra health`, and what becomes of a node that stopped for safety.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use testkit::net::{Member, Net};
use testkit::node::{binary, wait_until};
use testkit::process::{Signal, signal};

/// How `ombra health` ends: the exit code, and what was said.
fn health(member: &Member, flags: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
    let output = member.ombra(&[&["health"], flags].concat())?;
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&said).trim().to_owned()))
}

#[test]
fn a_node_without_peers_is_alive_and_not_ready() -> anyhow::Result<()> {
    let mut net = Net::make(2, 0)?;
    net.members[0].start()?;
    assert_eq!((Some(0), "alive".to_owned()), health(&net.members[0], &["--alive"])?);
    let (code, said) = health(&net.members[0], &[])?;
    assert_eq!(Some(1), code);
    assert!(said.contains("not ready: peers (0 connected)"), "{said}");

    net.members[1].start()?;
    net.members[0].meets(1)?;
    let is_ready = (Some(0), "ready".to_owned());
    wait_until("readiness", || Ok(health(&net.members[0], &[])? == is_ready))?;

    net.members[0].kill()?;
    for flags in [&[][..], &["--alive"]] {
        let (code, said) = health(&net.members[0], flags)?;
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
    wait_until("the reason in the log", || {
        let said = std::fs::read_to_string(&log)?;
        Ok(said.contains("this process waits to be told to stop"))
    })?;
    assert_eq!(Some(3), health(member, &["--alive"])?.0);
    assert!(process.try_wait()?.is_none(), "it waits");
    signal(process.id(), Signal::TERM)?;
    let ended = process.wait()?;
    assert_eq!((Some(5), None), (ended.code(), ended.signal()));
    Ok(())
}
