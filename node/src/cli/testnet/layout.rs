//! Where the nodes of a testnet listen, and how the others reach them.

use std::net::{Ipv4Addr, SocketAddr};

/// Ports of one node: JSON-RPC, metrics, consensus, transactions.
const PORTS: u16 = 4;

/// A node's name and addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) rpc: SocketAddr,
    pub(super) metrics: SocketAddr,
    pub(super) consensus_listen: String,
    pub(super) consensus_address: String,
    pub(super) gossip_listen: String,
    pub(super) gossip_address: String,
}

/// All nodes on loopback, with ports in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    base_port: u16,
}

impl Layout {
    /// Ports from `base_port` on for `count` nodes, if there are so many.
    pub(super) fn local(base_port: u16, count: usize) -> Result<Self, String> {
        let ports = count.saturating_mul(usize::from(PORTS));
        let is_room = usize::from(base_port).saturating_add(ports) <= usize::from(u16::MAX);
        if base_port == 0 || !is_room {
            return Err(format!("{count} nodes need {ports} ports from {base_port} on"));
        }
        Ok(Self { base_port })
    }

    /// Where the node with this number is.
    pub(super) fn place(&self, number: usize, name: String) -> Place {
        let first = u16::try_from(number)
            .unwrap_or(u16::MAX)
            .saturating_mul(PORTS)
            .saturating_add(self.base_port);
        let [rpc, metrics, consensus, gossip] =
            [0, 1, 2, 3].map(|offset| first.saturating_add(offset));
        let socket = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let multiaddr = |port: u16| format!("/ip4/127.0.0.1/tcp/{port}");
        Place {
            name,
            rpc: socket(rpc),
            metrics: socket(metrics),
            consensus_listen: multiaddr(consensus),
            consensus_address: multiaddr(consensus),
            gossip_listen: multiaddr(gossip),
            gossip_address: multiaddr(gossip),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_ports_of_its_own() {
        let layout = Layout::local(1_000, 2).unwrap();
        let second = layout.place(1, "node1".to_owned());
        assert_eq!("127.0.0.1:1004".parse(), Ok(second.rpc));
        assert_eq!("/ip4/127.0.0.1/tcp/1007", second.gossip_listen);
    }

    #[test]
    fn too_few_ports_are_refused() {
        assert!(Layout::local(65_500, 8).is_ok());
        assert!(Layout::local(65_500, 9).is_err());
        assert!(Layout::local(0, 1).is_err());
    }
}
