//! Address groups: who is counted as one, because addresses next to each other cost one owner little.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;

/// The /24 of an IPv4 address, the /64 of an IPv6 address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Group(IpAddr);

impl Group {
    /// The group of whatever has no IP address.
    pub(crate) const NONE: Self = Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    pub(crate) const fn of_ip(ip: IpAddr) -> Self {
        Self(match ip {
            IpAddr::V4(ip) => {
                let [a, b, c, _] = ip.octets();
                IpAddr::V4(Ipv4Addr::new(a, b, c, 0))
            }
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        })
    }

    /// The group of an address; all that have no IP address are one.
    pub(crate) fn of(address: &Multiaddr) -> Self {
        ip_of(address).map_or(Self::NONE, Self::of_ip)
    }
}

/// The IP address in a multiaddress.
pub(crate) fn ip_of(address: &Multiaddr) -> Option<IpAddr> {
    address.iter().find_map(|part| {
        if let Protocol::Ip4(ip) = part {
            Some(IpAddr::V4(ip))
        } else if let Protocol::Ip6(ip) = part {
            Some(IpAddr::V6(ip).to_canonical())
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(address: &str) -> Group {
        Group::of(&address.parse().unwrap())
    }

    #[test]
    fn neighbours_are_one_group() {
        assert_eq!(group("/ip4/192.0.2.1/tcp/1"), group("/ip4/192.0.2.200/tcp/9"));
        assert_ne!(group("/ip4/192.0.2.1/tcp/1"), group("/ip4/192.0.3.1/tcp/1"));
        assert_eq!(group("/ip6/2001:db8::1/tcp/1"), group("/ip6/2001:db8::ffff:1/tcp/1"));
        assert_ne!(group("/ip6/2001:db8::1/tcp/1"), group("/ip6/2001:db8:0:1::1/tcp/1"));
    }

    #[test]
    fn an_ipv4_address_written_as_ipv6_is_the_same_address() {
        let written = "/ip6/::ffff:192.0.2.1/tcp/1".parse().unwrap();
        assert_eq!(Some("192.0.2.1".parse().unwrap()), ip_of(&written));
    }
}
