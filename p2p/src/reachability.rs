//! Which addresses that others tell could lead somewhere from here, and where nobody may have this
//! node knock.
//!
//! | told over a connection | public | private | loopback |
//! |---|---|---|---|
//! | on loopback | yes | yes | yes |
//! | that this node opened to a private address | yes | yes | no |
//! | from a private address, and this node has no public one | yes | yes | no |
//! | any other | yes | no | no |
//!
//! So nodes in containers and namespaces find each other at their private addresses, and a stranger
//! cannot have a public node dial what stands beside it.

use std::net::{IpAddr, Ipv4Addr};

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};

use crate::Direction;
use crate::group::ip_of;

/// How far the addresses of a record can be meant to reach.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Reach {
    /// Public addresses only.
    Public,
    /// Those of private networks too.
    Private,
    /// Loopback too: they are the same machine's.
    SameMachine,
}

impl Reach {
    /// By the connection that a record came over, and whether this node has private addresses only.
    pub(crate) fn of(address: &Multiaddr, direction: Direction, lives_privately: bool) -> Self {
        match ip_of(address).map(Self::needed) {
            Some(Some(Self::SameMachine)) => Self::SameMachine,
            Some(Some(Self::Private)) if direction == Direction::Outbound || lives_privately => {
                Self::Private
            }
            Some(_) | None => Self::Public,
        }
    }

    /// What it takes to reach an address; none if it leads nowhere.
    fn needed(ip: IpAddr) -> Option<Self> {
        let leads_nowhere = match ip {
            IpAddr::V4(ip) => ip.is_link_local() || ip.octets()[0] == 0 || ip.octets()[0] >= 240,
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
        if leads_nowhere || ip.is_unspecified() || ip.is_multicast() {
            None
        } else if ip.is_loopback() {
            Some(Self::SameMachine)
        } else if is_private(ip) {
            Some(Self::Private)
        } else {
            Some(Self::Public)
        }
    }

    /// Whether an address is an IP address and a TCP port, and one that may be dialled.
    pub(crate) fn allows(self, address: &Multiaddr, of: &PeerId) -> bool {
        let mut parts = address.iter();
        let has_ip = matches!(parts.next(), Some(Protocol::Ip4(_) | Protocol::Ip6(_)));
        let has_port = matches!(parts.next(), Some(Protocol::Tcp(port)) if port > 0);
        let is_end = |part: Option<Protocol<'_>>| match part {
            None => true,
            Some(Protocol::P2p(peer)) => peer == *of,
            Some(_) => false,
        };
        let needed = ip_of(address).and_then(Self::needed);
        has_ip
            && has_port
            && is_end(parts.next())
            && parts.next().is_none()
            && needed.is_some_and(|needed| needed <= self)
    }
}

/// Whether all these addresses are private or loopback, so that a node with them is met by its
/// neighbours only.
pub(crate) fn are_private<'a>(addresses: impl IntoIterator<Item = &'a Multiaddr>) -> bool {
    let mut needed = addresses.into_iter().filter_map(ip_of).filter_map(Reach::needed);
    needed.all(|needed| needed > Reach::Public)
}

/// Whether an address is private or loopback. It does not tell who is behind it: a neighbour, or
/// everybody, if a proxy passes connections on.
pub(crate) fn is_local(ip: IpAddr) -> bool {
    Reach::needed(ip).is_some_and(|needed| needed > Reach::Public)
}

fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_private() || is_shared(ip),
        IpAddr::V6(ip) => ip.is_unique_local(),
    }
}

/// 100.64.0.0/10, which providers use inside their networks.
const fn is_shared(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    a == 100 && b & 0xc0 == 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_dialled_by_where_it_was_told() {
        let peer = PeerId::random();
        let cases = [
            ("/ip4/0.0.0.0/tcp/1", None),
            ("/ip4/224.0.0.1/tcp/1", None),
            ("/ip4/255.255.255.255/tcp/1", None),
            ("/ip4/169.254.0.1/tcp/1", None),
            ("/ip6/fe80::1/tcp/1", None),
            ("/dns4/example.org/tcp/1", None),
            ("/ip4/192.0.2.1/udp/1", None),
            ("/ip4/192.0.2.1/tcp/0", None),
            ("/ip4/192.0.2.1/tcp/1/ws", None),
            ("/ip4/127.0.0.1/tcp/1", Some(Reach::SameMachine)),
            ("/ip6/::1/tcp/1", Some(Reach::SameMachine)),
            ("/ip6/::ffff:127.0.0.1/tcp/1", Some(Reach::SameMachine)),
            ("/ip4/10.1.2.3/tcp/1", Some(Reach::Private)),
            ("/ip4/172.18.0.3/tcp/1", Some(Reach::Private)),
            ("/ip4/192.168.0.1/tcp/1", Some(Reach::Private)),
            ("/ip4/100.64.0.1/tcp/1", Some(Reach::Private)),
            ("/ip6/fd00::1/tcp/1", Some(Reach::Private)),
            ("/ip6/::ffff:10.0.0.1/tcp/1", Some(Reach::Private)),
            ("/ip4/192.0.2.1/tcp/1", Some(Reach::Public)),
            ("/ip6/2001:db8::1/tcp/1", Some(Reach::Public)),
        ];
        for (text, needed) in cases {
            let address: Multiaddr = text.parse().unwrap();
            for reach in [Reach::Public, Reach::Private, Reach::SameMachine] {
                let expected = needed.is_some_and(|needed| needed <= reach);
                assert_eq!(expected, reach.allows(&address, &peer), "{text} {reach:?}");
            }
        }
    }

    #[test]
    fn an_address_names_its_own_node_or_none() {
        let peer = PeerId::random();
        let of = |id: PeerId| format!("/ip4/192.0.2.1/tcp/1/p2p/{id}").parse().unwrap();
        assert!(Reach::Public.allows(&of(peer), &peer));
        assert!(!Reach::Public.allows(&of(PeerId::random()), &peer));
    }

    #[test]
    fn private_addresses_are_taken_from_whom_this_node_meets_at_one() {
        use Direction::{Inbound, Outbound};
        let cases = [
            ("/ip4/127.0.0.1/tcp/1", Inbound, false, Reach::SameMachine),
            ("/ip4/10.0.0.1/tcp/1", Outbound, false, Reach::Private),
            ("/ip4/10.0.0.1/tcp/1", Inbound, true, Reach::Private),
            ("/ip4/10.0.0.1/tcp/1", Inbound, false, Reach::Public),
            ("/ip4/192.0.2.1/tcp/1", Outbound, true, Reach::Public),
        ];
        for (text, direction, lives_privately, expected) in cases {
            let address = text.parse().unwrap();
            assert_eq!(expected, Reach::of(&address, direction, lives_privately), "{text}");
        }
    }

    #[test]
    fn a_node_with_one_public_address_does_not_live_privately() {
        let list = |texts: &[&str]| -> Vec<Multiaddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        assert!(are_private(&list(&["/ip4/127.0.0.1/tcp/1", "/ip4/172.18.0.2/tcp/1"])));
        assert!(!are_private(&list(&["/ip4/10.0.0.1/tcp/1", "/ip4/192.0.2.1/tcp/1"])));
    }
}
