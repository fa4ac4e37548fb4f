//! The script that `ombra testnet --local` writes.

use std::process::Output;

use testkit::net::Net;

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_script_starts_shows_and_stops_the_nodes() -> anyhow::Result<()> {
    let net = Net::make(1, 1)?;
    let stopped = "node0        stopped\nfollower0    stopped\n";
    assert_eq!(stopped, text(&net.script(&["status"])?));
    assert_eq!("node0 answers\nfollower0 answers\n", text(&net.script(&["start"])?));
    assert_eq!("node0 is already running\n", text(&net.script(&["start", "node0"])?));
    let status = text(&net.script(&["status"])?);
    assert!(status.contains("node0        height "), "{status}");
    net.members[1].meets(1)?;
    assert_eq!("node0 stopped\nfollower0 stopped\n", text(&net.script(&["stop"])?));
    assert_eq!(stopped, text(&net.script(&["status"])?));
    let unknown = net.script(&["start", "node7"])?;
    assert!(!unknown.status.success());
    Ok(())
}
