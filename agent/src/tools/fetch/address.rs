//! Which addresses a request of a stranger must never reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, c: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), bits)
}

/// What IANA's registry of special-purpose addresses does not call globally reachable, and multicast.
const NOT_PUBLIC_V4: [Ipv4Net; 16] = [
    v4(0, 0, 0, 0, 8),        // this network
    v4(10, 0, 0, 0, 8),       // private
    v4(100, 64, 0, 0, 10),    // carrier-grade NAT; cloud metadata at 100.100.100.200
    v4(127, 0, 0, 0, 8),      // loopback
    v4(169, 254, 0, 0, 16),   // link-local; cloud metadata at 169.254.169.254
    v4(172, 16, 0, 0, 12),    // private
    v4(192, 0, 0, 0, 24),     // protocol assignments
    v4(192, 0, 2, 0, 24),     // documentation
    v4(192, 88, 99, 0, 24),   // 6to4 relays
    v4(192, 168, 0, 0, 16),   // private
    v4(198, 18, 0, 0, 15),    // benchmarks
    v4(198, 51, 100, 0, 24),  // documentation
    v4(203, 0, 113, 0, 24),   // documentation
    v4(168, 63, 129, 16, 32), // a cloud's own services, though registered as public
    v4(224, 0, 0, 0, 4),      // multicast
    v4(240, 0, 0, 0, 4),      // reserved and broadcast
];

/// Outside of `2000::/3` nothing is public; within it these are not.
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 0, 23),     // protocol assignments, Teredo among them
    v6(0x2001, 0xdb8, 0, 32), // documentation
    v6(0x2002, 0, 0, 16),     // 6to4: holds an IPv4 address
    v6(0x3fff, 0, 0, 20),     // documentation
];

const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);
/// NAT64: the last four bytes are an IPv4 address.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);

/// Whether the address is one of the public internet, or in a network that the operator allows.
///
/// An IPv4 address within an IPv6 one is judged as the IPv4 address.
pub(super) fn may_be_reached(address: IpAddr, allowed: &[IpNet]) -> bool {
    let address = plain(address);
    let is_allowed = allowed.iter().any(|network| network.contains(&address));
    is_allowed || is_public(address)
}

/// The address that a connection really goes to.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address.to_canonical() else { return address.to_canonical() };
    if !NAT64.contains(&v6) {
        return address;
    }
    let [.., a, b, c, d] = v6.octets();
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !NOT_PUBLIC_V4.iter().any(|network| network.contains(&v4)),
        IpAddr::V6(v6) => {
            GLOBAL_V6.contains(&v6) && !NOT_PUBLIC_V6.iter().any(|network| network.contains(&v6))
        }
    }
}
