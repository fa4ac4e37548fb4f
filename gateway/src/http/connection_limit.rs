//! How many connections a client may have at once.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

/// What clients have open, by their networks.
#[derive(Clone, Debug)]
pub(super) struct Crowd {
    /// The most connections of a network.
    most: usize,
    open: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// A place that a network takes until this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    network: IpAddr,
    open: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

impl Crowd {
    /// Nobody has a connection yet. Each network may have so many.
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Arc::default() }
    }

    /// Whether this client may have one more connection, and the place that it takes by it. Private
    /// addresses take none: a proxy has one of them, and its connections are those of all its clients.
    pub(super) fn admit(&self, client: IpAddr) -> Result<Option<Seat>, Crowded> {
        let client = client.to_canonical();
        if is_private(client) {
            return Ok(None);
        }
        let network = network(client);
        let mut open = self.open.lock();
        let count = open.get(&network).copied().unwrap_or_default();
        if count >= self.most {
            return Err(Crowded);
        }
        open.insert(network, count.saturating_add(1));
        drop(open);
        Ok(Some(Seat { network, open: Arc::clone(&self.open) }))
    }
}

/// The client's network has as many connections as it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Crowded;

impl Drop for Seat {
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

    fn is_admitted(crowd: &Crowd, client: &str) -> bool {
        crowd.admit(client.parse().unwrap()).is_ok()
    }

    /// A crowd in which these clients have as many connections as they may.
    fn full_of(client: &str) -> (Crowd, Vec<Option<Seat>>) {
        let crowd = Crowd::new(MOST);
        let seats = (0..MOST).map(|_| crowd.admit(client.parse().unwrap()).unwrap()).collect();
        (crowd, seats)
    }

    #[test]
    fn a_client_with_as_many_connections_as_it_may_have_gets_no_other_until_one_ends() {
        let (crowd, mut seats) = full_of("198.51.100.7");
        assert!(!is_admitted(&crowd, "198.51.100.7"));
        assert!(!is_admitted(&crowd, "::ffff:198.51.100.7"), "the same in another notation");
        assert!(is_admitted(&crowd, "198.51.100.8"), "another client");
        seats.pop();
        assert!(is_admitted(&crowd, "198.51.100.7"));
        seats.clear();
        assert!(crowd.open.lock().is_empty(), "who has gone is forgotten");
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_count_together() {
        let (crowd, _seats) = full_of("2001:db8:1:2::1");
        assert!(!is_admitted(&crowd, "2001:db8:1:2:ffff::9"));
        assert!(is_admitted(&crowd, "2001:db8:1:3::1"));
    }

    #[test]
    fn proxies_with_private_addresses_have_as_many_as_there_are() {
        for proxy in ["127.0.0.1", "::1", "10.0.0.3", "172.18.0.2", "192.168.1.1", "fd00::5"] {
            let (crowd, _seats) = full_of(proxy);
            assert!(is_admitted(&crowd, proxy), "{proxy}");
        }
    }
}
