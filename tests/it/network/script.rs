//! The script that `ombra testnet --local` writes.

use testkit::net::Net;

use crate::support::printed;

#[test]
fn the_script_starts_shows_and_stops_the_nodes() -> anyhow::Result<()> {
    let net = Net::make(1, 1)?;
    let said = |arguments: &[&str]| printed(net.script(arguments)?);
    let stopped = "node0        stopped\nfollower0    stopped\n";
    assert_eq!(stopped, said(&["status"])?);
    assert_eq!("node0 answers\nfollower0 answers\n", said(&["start"])?);
    assert_eq!("node0 is already running\n", said(&["start", "node0"])?);
    let status = said(&["status"])?;
    assert!(status.contains("node0        height "), "{status}");
    net.members[1].meets(1)?;
    assert_eq!("node0 stopped\nfollower0 stopped\n", said(&["stop"])?);
    assert_eq!(stopped, said(&["status"])?);
    let unknown = net.script(&["start", "node7"])?;
    assert!(!unknown.status.success());
    Ok(())
}
