//! What a service manager is told of a node.

use testkit::net::Net;

use crate::support::Manager;

#[test]
fn a_service_manager_hears_that_a_node_answers_how_it_is_and_that_it_stops() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("notify");
    let manager = Manager::at(&path)?;
    let mut net = Net::make(2, 0)?;
    let variable = ("NOTIFY_SOCKET", path.to_string_lossy().into_owned());
    net.members[0].start_with(&[variable])?;
    let first = manager.hears()?;
    assert!(first.starts_with("READY=1\nSTATUS=not ready: peers (0 connected)"), "{first}");

    net.members[1].start()?;
    manager.hears_of("STATUS=ready: height ")?;
    net.members[1].kill()?;
    manager.hears_of("STATUS=not ready: ")?;
    net.members[0].stop()?;
    manager.hears_of("STOPPING=1\n")?;
    Ok(())
}
