//! Where the nodes of a testnet listen, and how the others reach them.

use std::net::{Ipv4Addr, SocketAddr};

/// Ports of one node on loopback: JSON-RPC, metrics, consensus, transactions.
const PORTS: u16 = 4;
/// Ports of this machine besides one for each container: Prometheus and Grafana.
const MONITORING_PORTS: u16 = 2;

/// Ports within a container, the same in each: the defaults of the settings.
const RPC_PORT: u16 = 8777;
const METRICS_PORT: u16 = 9777;
const CONSENSUS_PORT: u16 = 30_777;
const GOSSIP_PORT: u16 = 30_778;

/// A node's name and addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NodeAddresses {
    pub(super) name: String,
    /// Where clients of this machine reach its JSON-RPC.
    pub(super) rpc: SocketAddr,
    pub(super) rpc_listen: SocketAddr,
    pub(super) metrics_listen: SocketAddr,
    /// The names by which clients may call it besides `localhost`.
    pub(super) hosts: Vec<String>,
    pub(super) consensus_listen: String,
    pub(super) consensus_address: String,
    pub(super) gossip_listen: String,
    pub(super) gossip_address: String,
}

/// How the nodes are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// As processes, all on loopback, with ports in a row.
    Processes,
    /// In containers, which find each other by name; each has its JSON-RPC on a port of loopback.
    Containers,
}

/// The places of all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    kind: Kind,
    base_port: u16,
    count: u16,
}

impl Layout {
    /// Ports from `base_port` on for `count` nodes, if there are so many.
    pub(super) fn new(kind: Kind, base_port: u16, count: u16) -> Result<Self, String> {
        let ports = match kind {
            Kind::Processes => count.checked_mul(PORTS),
            Kind::Containers => count.checked_add(MONITORING_PORTS),
        };
        let last = ports.and_then(|ports| base_port.checked_add(ports));
        match last {
            Some(_) if base_port > 0 => Ok(Self { kind, base_port, count }),
            _ => Err(format!("there are too few ports from {base_port} on for {count} nodes")),
        }
    }

    /// Where the node with this number is, of those that there are.
    pub(super) fn place(&self, number: u16, name: String) -> NodeAddresses {
        match self.kind {
            Kind::Processes => self.process(number, name),
            Kind::Containers => self.container(number, name),
        }
    }

    fn process(&self, number: u16, name: String) -> NodeAddresses {
        let first = number.saturating_mul(PORTS).saturating_add(self.base_port);
        let [rpc, metrics, consensus, gossip] =
            [0, 1, 2, 3].map(|offset| first.saturating_add(offset));
        let multiaddr = |port: u16| format!("/ip4/127.0.0.1/tcp/{port}");
        NodeAddresses {
            name,
            rpc: loopback(rpc),
            rpc_listen: loopback(rpc),
            metrics_listen: loopback(metrics),
            hosts: Vec::new(),
            consensus_listen: multiaddr(consensus),
            consensus_address: multiaddr(consensus),
            gossip_listen: multiaddr(gossip),
            gossip_address: multiaddr(gossip),
        }
    }

    fn container(&self, number: u16, name: String) -> NodeAddresses {
        let anywhere = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let listen = |port: u16| format!("/ip4/0.0.0.0/tcp/{port}");
        let address = |port: u16| format!("/dns4/{name}/tcp/{port}");
        NodeAddresses {
            rpc: loopback(self.base_port.saturating_add(number)),
            rpc_listen: anywhere(RPC_PORT),
            metrics_listen: anywhere(METRICS_PORT),
            hosts: vec![name.clone()],
            consensus_listen: listen(CONSENSUS_PORT),
            consensus_address: address(CONSENSUS_PORT),
            gossip_listen: listen(GOSSIP_PORT),
            gossip_address: address(GOSSIP_PORT),
            name,
        }
    }

    /// The ports of this machine for Prometheus and for Grafana, where the nodes are containers.
    pub(super) const fn monitoring(&self) -> [u16; 2] {
        let first = self.base_port.saturating_add(self.count);
        [first, first.saturating_add(1)]
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

#[cfg(test)]
mod tests {
    //! No two nodes share an address.

    use super::*;

    #[test]
    fn every_process_has_ports_of_its_own() {
        let layout = Layout::new(Kind::Processes, 1_000, 2).unwrap();
        let second = layout.place(1, "node1".to_owned());
        assert_eq!("127.0.0.1:1004".parse(), Ok(second.rpc));
        assert_eq!("/ip4/127.0.0.1/tcp/1007", second.gossip_listen);
    }

    #[test]
    fn containers_are_found_by_name_and_called_on_loopback() {
        let layout = Layout::new(Kind::Containers, 1_000, 2).unwrap();
        let second = layout.place(1, "node1".to_owned());
        assert_eq!("127.0.0.1:1001".parse(), Ok(second.rpc));
        assert_eq!("0.0.0.0:8777".parse(), Ok(second.rpc_listen));
        assert_eq!("/dns4/node1/tcp/30778", second.gossip_address);
        assert_eq!(vec!["node1".to_owned()], second.hosts);
        assert_eq!([1_002, 1_003], layout.monitoring());
    }

    #[test]
    fn too_few_ports_are_refused() {
        assert!(Layout::new(Kind::Processes, 65_500, 8).is_ok());
        assert!(Layout::new(Kind::Processes, 65_500, 9).is_err());
        assert!(Layout::new(Kind::Containers, 65_500, 33).is_ok());
        assert!(Layout::new(Kind::Containers, 65_500, 34).is_err());
        assert!(Layout::new(Kind::Processes, 0, 1).is_err());
    }
}
