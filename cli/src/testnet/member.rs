//! One of the nodes.

use node::config::Home;
use types::Keypair;

use super::layout::NodeAddresses;

/// A node of the testnet.
pub(super) struct Member {
    pub(super) place: NodeAddresses,
    pub(super) home: Home,
    pub(super) peer_id: String,
    /// The key that votes; none for a follower.
    pub(super) validator: Option<Keypair>,
}
