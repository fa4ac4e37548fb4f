//! The files of a node.

use std::path::PathBuf;

/// Where a node keeps its files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// The home in this directory.
    #[must_use]
    pub const fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The directory itself.
    #[must_use]
    pub const fn directory(&self) -> &PathBuf {
        &self.0
    }

    /// Settings.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.0.join("config.toml")
    }

    /// The chain's beginning.
    #[must_use]
    pub fn genesis(&self) -> PathBuf {
        self.0.join("genesis.json")
    }

    /// The node's key on the network.
    #[must_use]
    pub fn node_key(&self) -> PathBuf {
        self.0.join("keys/node.key")
    }

    /// The key that signs votes.
    #[must_use]
    pub fn validator_key(&self) -> PathBuf {
        self.0.join("keys/validator.key")
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.0.join("data/db")
    }

    /// The snapshots that the node offers.
    #[must_use]
    pub fn snapshots(&self) -> PathBuf {
        self.0.join("data/snapshots")
    }

    /// Chunks of a snapshot that is being fetched.
    #[must_use]
    pub fn snapshot_intake(&self) -> PathBuf {
        self.0.join("data/snapshot-intake")
    }

    /// The engine's log and the record of signed votes.
    #[must_use]
    pub fn consensus(&self) -> PathBuf {
        self.0.join("data/consensus")
    }

    /// The pool's journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.0.join("data/pool.journal")
    }

    /// Locked by the process that uses the home.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// The sign that `ombra dev` made the chain, and may throw it away.
    #[must_use]
    pub fn dev_mark(&self) -> PathBuf {
        self.0.join("dev")
    }

    /// The socket of the operator's methods, while the node runs.
    #[must_use]
    pub fn admin_socket(&self) -> PathBuf {
        self.0.join("admin.sock")
    }

    /// The addresses of the node, while it runs.
    #[must_use]
    pub fn endpoints(&self) -> PathBuf {
        self.0.join("endpoints.json")
    }
}
