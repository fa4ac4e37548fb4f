//! How many connections a client may have at once.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

/// Limits how many connections the addresses of one network may have open.
#[derive(Clone, Debug)]
pub(super) struct ConnectionLimit {
    /// The most connections of a network.
    most: usize,
    /// The open connections of each network.
    open: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// The permission for one connection. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Permit {
    network: IpAddr,
    open: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

impl ConnectionLimit {
    /// A limit of `most` connections for each network.
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Arc::default() }
    }

    /// Counts a new connection of a client. Connections from private addresses are not counted, and get no
    /// permit: a reverse proxy has such an address, and its connections are those of all its clients.
    ///
    /// # Errors
    /// [`TooManyConnections`] if the client's network has as many connections as it may have.
    pub(super) fn admit(&self, client: IpAddr) -> Result<Option<Permit>, TooManyConnections> {
        let client = client.to_canonical();
        if is_private(client) {
            return Ok(None);
        }
        let network = network(client);
        let mut open = self.open.lock();
        let count = open.get(&network).copied().unwrap_or_default();
        if count >= self.most {
            return Err(TooManyConnections);
        }
        open.insert(network, count.saturating_add(1));
        drop(open);
        Ok(Some(Permit { network, open: Arc::clone(&self.open) }))
    }
}

/// The client's network has as many connections as it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TooManyConnections;

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        let left = open.get(&self.network).copied().unwrap_or_default().saturating_sub(1);
        if left == 0 {
            open.remove(&self.network);
        } else {
            open.insert(self.network, left);
        }
    }
}

const fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_private() || address.is_link_local()
        }
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

/// Whoever has one IPv6 address has 2^64.
const fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (!0 << 64))),
    }
}

#[cfg(test)]
mod tests {
    //! Who shares a number of connections, and when they are free again.

    use super::*;

    const MOST: usize = 2;

    fn is_admitted(limit: &ConnectionLimit, client: &str) -> bool {
        limit.admit(client.parse().unwrap()).is_ok()
    }

    /// A limit that this client has reached.
    fn reached_by(client: &str) -> (ConnectionLimit, Vec<Option<Permit>>) {
        let limit = ConnectionLimit::new(MOST);
        let permits = (0..MOST).map(|_| limit.admit(client.parse().unwrap()).unwrap()).collect();
        (limit, permits)
    }

    #[test]
    fn a_client_with_as_many_connections_as_it_may_have_gets_no_other_until_one_ends() {
        let (limit, mut permits) = reached_by("198.51.100.7");
        assert!(!is_admitted(&limit, "198.51.100.7"));
        assert!(!is_admitted(&limit, "::ffff:198.51.100.7"), "the same in another notation");
        assert!(is_admitted(&limit, "198.51.100.8"), "another client");
        permits.pop();
        assert!(is_admitted(&limit, "198.51.100.7"));
        permits.clear();
        assert!(limit.open.lock().is_empty(), "clients without connections are forgotten");
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_count_together() {
        let (limit, _permits) = reached_by("2001:db8:1:2::1");
        assert!(!is_admitted(&limit, "2001:db8:1:2:ffff::9"));
        assert!(is_admitted(&limit, "2001:db8:1:3::1"));
    }

    #[test]
    fn proxies_with_private_addresses_have_as_many_as_there_are() {
        for proxy in ["127.0.0.1", "::1", "10.0.0.3", "172.18.0.2", "192.168.1.1", "fd00::5"] {
            let (limit, _permits) = reached_by(proxy);
            assert!(is_admitted(&limit, proxy), "{proxy}");
        }
    }
}
