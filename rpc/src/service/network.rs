//! This node and its peers.

use crate::ports::Ports;
use crate::wire::{NetInfo, PeerView};

/// This node's peer id and addresses.
pub(crate) fn info(ports: &Ports) -> NetInfo {
    let peers = ports.network.peers().len();
    NetInfo::new(ports.network.identity(), peers)
}

/// The connected peers.
pub(crate) fn peers(ports: &Ports) -> Vec<PeerView> {
    ports.network.peers().into_iter().map(PeerView::from).collect()
}
