//! What a service manager is told of a node.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use testkit::net::Net;
use testkit::node::PATIENCE;

/// A socket that stands for systemd's.
struct Manager(UnixDatagram);

impl Manager {
    fn at(path: &Path) -> anyhow::Result<Self> {
        let socket = UnixDatagram::bind(path)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(socket))
    }

    /// The next message.
    fn hears(&self) -> anyhow::Result<String> {
        let mut bytes = [0; 1_000];
        let length = self.0.recv(&mut bytes)?;
        Ok(String::from_utf8(bytes[..length].to_vec())?)
    }

    /// The next message that begins so.
    fn hears_of(&self, beginning: &str) -> anyhow::Result<String> {
        loop {
            let message = self.hears()?;
            if message.starts_with(beginning) {
                return Ok(message);
            }
        }
    }
}

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
