//! What can go wrong with this network itself.

/// Why the network did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The node key's seed gives no key.
    #[error("the node key cannot be used")]
    NodeKey,
    /// A setting is not a multiaddress.
    #[error(
        "`{setting}` has {text:?}, which is not a multiaddress such as /ip4/127.0.0.1/tcp/30778"
    )]
    Multiaddr {
        /// The setting.
        setting: &'static str,
        /// What it holds.
        text: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address} for peers: {reason}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        reason: String,
    },
    /// The system's resolver cannot be used.
    #[error("the configuration of the name resolver: {0}")]
    Resolver(std::io::Error),
    /// Parts of the network do not fit together.
    #[error("the gossip network cannot be set up: {0}")]
    Behaviour(String),
}

/// Our own trouble; it stops the node.
#[derive(Debug, thiserror::Error)]
pub enum NetworkFault {
    /// The listening socket is gone.
    #[error("the gossip network no longer listens: {reason}")]
    Listener {
        /// What the system said.
        reason: String,
    },
}

/// Why a peer was not added, removed or banned.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PeerError {
    /// Neither.
    #[error("{text:?} is neither a peer id nor a multiaddress such as /ip4/192.0.2.1/tcp/30778")]
    Unreadable {
        /// What was given.
        text: String,
    },
    /// It is this node.
    #[error("{text:?} is this node itself")]
    Own {
        /// What was given.
        text: String,
    },
    /// The network is stopping.
    #[error("the gossip network is stopping")]
    Stopping,
}
