//! Telling systemd how the node is, where systemd asks for it: `sd_notify(3)`, a datagram for each
//! message.
//!
//! `systemctl start` then waits until the node answers, and `systemctl status` says whether it is
//! ready.

use std::ffi::{OsStr, OsString};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use rpc::ports::{Check, Readiness};
use tokio_util::sync::CancellationToken;

use crate::fault::NodeFault;

/// The variable that names the socket.
pub const VARIABLE: &str = "NOTIFY_SOCKET";
/// How often the state is told, if it has changed.
const INTERVAL: Duration = Duration::from_secs(2);

/// What is told, and until when.
#[derive(Clone)]
pub struct Told {
    /// How it is.
    pub readiness: Arc<dyn Readiness>,
    /// Ends the telling.
    pub stop: CancellationToken,
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Told").finish_non_exhaustive()
    }
}

/// The service manager that waits to be told.
#[derive(Debug)]
pub struct Systemd {
    own: UnixDatagram,
    address: SocketAddr,
}

impl Systemd {
    /// The socket with this name: a path, or `@` and a name without a file.
    ///
    /// # Errors
    /// The system's, if there cannot be such a socket.
    pub fn at(name: &OsStr) -> std::io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let own = UnixDatagram::unbound()?;
        // A manager that does not read must not hold the node up.
        own.set_nonblocking(true)?;
        Ok(Self { own, address })
    }

    /// The one that the environment names, if it names one.
    pub fn find(name: Option<OsString>) -> Option<Self> {
        let name = name.filter(|name| !name.is_empty())?;
        Self::at(&name)
            .inspect_err(|error| {
                tracing::warn!(%error, ?name, "cannot use the socket in {VARIABLE}");
            })
            .ok()
    }

    /// Says how a start goes on, until this is dropped; that it is over comes with [`Self::tell`].
    pub async fn tell_start(&self, readiness: Arc<dyn Readiness>) {
        let mut last = String::new();
        loop {
            let now = status(&readiness.checks());
            if now != last {
                self.send(&format!("STATUS={now}"));
                last = now;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Says that the node answers, then how it is, until asked to stop; and that it stops.
    ///
    /// # Errors
    /// None today.
    pub async fn tell(self, told: Told) -> Result<(), NodeFault> {
        let Told { readiness, stop } = told;
        let mut last = status(&readiness.checks());
        self.send(&format!("READY=1\nSTATUS={last}"));
        while stop.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_some() {
            let now = status(&readiness.checks());
            if now != last {
                self.send(&format!("STATUS={now}"));
                last = now;
            }
        }
        self.send("STOPPING=1\nSTATUS=stopping");
        Ok(())
    }

    fn send(&self, message: &str) {
        if let Err(error) = self.own.send_to_addr(message.as_bytes(), &self.address) {
            tracing::warn!(%error, message, "cannot notify the service manager");
        }
    }
}

/// What the checks say, in one line.
fn status(checks: &[Check]) -> String {
    let failing: Vec<_> = checks
        .iter()
        .filter(|check| !check.is_ok)
        .map(|check| format!("{} ({})", check.name, check.detail))
        .collect();
    if failing.is_empty() {
        // Of a node, and of a miner.
        let lag = checks.iter().find(|check| matches!(check.name, "lag" | "node"));
        return format!("ready: {}", lag.map_or("", |check| check.detail.as_str()));
    }
    format!("not ready: {}", failing.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, is_ok: bool, detail: &str) -> Check {
        Check { name, is_ok, detail: detail.to_owned() }
    }

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 100];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn sockets_are_reached_by_path_and_by_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        Systemd::at(path.as_os_str()).unwrap().send("READY=1");
        assert_eq!("READY=1", received(&by_path));

        let name = format!("ombra-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        Systemd::at(OsStr::new(&format!("@{name}"))).unwrap().send("READY=1");
        assert_eq!("READY=1", received(&by_name));
    }

    #[test]
    fn nobody_is_told_without_a_socket() {
        assert!(Systemd::find(None).is_none());
        assert!(Systemd::find(Some(OsString::new())).is_none());
        assert!(Systemd::find(Some("x".repeat(200).into())).is_none());
    }

    #[test]
    fn the_status_names_what_fails_or_the_height() {
        let lag = check("lag", true, "height 7");
        assert_eq!("ready: height 7", status(&[check("peers", true, "2"), lag]));
        let checks = [
            check("peers", false, "0 connected"),
            check("lag", false, "behind"),
            check("disk", true, ""),
        ];
        assert_eq!("not ready: peers (0 connected), lag (behind)", status(&checks));
    }
}
