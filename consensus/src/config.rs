//! What consensus has to be told.

use std::path::PathBuf;
use std::time::Duration;

use types::Keypair;
use types::sign_bytes::SharedDomain;

/// How consensus runs on this node.
#[derive(Clone, Debug)]
pub struct Config {
    /// The chain: part of everything that is signed, and of the network protocol's name. Whoever started
    /// consensus tells it the height of fork v7 when that is fixed.
    pub domain: SharedDomain,
    /// Name of this node in metrics and logs; must differ between nodes of one process.
    pub moniker: String,
    /// Where the engine's log and the record of signed votes are kept. Must never be copied to
    /// another running node.
    pub directory: PathBuf,
    /// Where to meet other validators and followers.
    pub network: Network,
    /// Most bytes of an encoded block, header and all.
    pub block_bytes_max: usize,
    /// How long to wait for others.
    pub timeouts: Timeouts,
}

/// Whom this node talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// Nobody: the engine listens on a free loopback port, admits no peer and sends no bodies.
    /// For a chain of one validator on one machine.
    Alone,
    /// Peers, over libp2p.
    Peers {
        /// Multiaddress to listen on, such as `/ip4/0.0.0.0/tcp/7100`.
        listen: String,
        /// Multiaddresses to stay connected to; with `/p2p/<peer id>` they are pinned to a key.
        peers: Vec<String>,
        /// Whether others than those peers may connect.
        open: bool,
    },
}

/// How long a step of a round may take before validators go on without. A round that fails makes
/// the next one's steps longer by `step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a whole proposal to arrive.
    pub propose: Duration,
    /// For a quorum of prevotes to agree, after a quorum voted anything.
    pub prevote: Duration,
    /// For a quorum of precommits to agree, after a quorum voted anything.
    pub precommit: Duration,
    /// What each further round adds to each.
    pub step: Duration,
}

impl Default for Timeouts {
    /// For validators across the internet.
    fn default() -> Self {
        Self {
            propose: Duration::from_secs(3),
            prevote: Duration::from_secs(1),
            precommit: Duration::from_secs(1),
            step: Duration::from_millis(500),
        }
    }
}

/// Who this node is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Seed of the key that names the node on the network. Not the validator's.
    pub node_key: [u8; 32],
    /// The key that signs votes; nothing for a node that only follows.
    pub validator: Option<Keypair>,
}
