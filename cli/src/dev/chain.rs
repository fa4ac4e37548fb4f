//! A chain for one person, while it runs.

use node::Running;
use node::config::Home;
use tempfile::TempDir;
use types::Keypair;
use wallet::Client;

use crate::client::CliError;
use crate::lock::HomeLock;

/// A chain that runs, its accounts, and the folder that goes when it is dropped.
pub(crate) struct DevChain {
    pub(super) running: Running,
    pub(super) accounts: Accounts,
    pub(super) home: Home,
    pub(super) is_new: bool,
    pub(super) _lock: HomeLock,
    pub(super) _temporary: Option<TempDir>,
}

/// The accounts that the banner tells of.
pub(super) struct Accounts {
    pub(super) keys: Vec<Keypair>,
    /// Whether anybody could have derived them.
    pub(super) are_public: bool,
}

impl DevChain {
    /// The first accounts of the words.
    pub(crate) fn accounts(&self) -> &[Keypair] {
        &self.accounts.keys
    }

    /// Whether anybody can derive them, so that `--dev N` means them.
    pub(crate) const fn has_public_accounts(&self) -> bool {
        self.accounts.are_public
    }

    /// The chain's folder.
    pub(crate) const fn home(&self) -> &Home {
        &self.home
    }

    /// The node's JSON-RPC address.
    pub(crate) fn rpc(&self) -> String {
        format!("http://{}", self.running.endpoints().rpc)
    }

    /// A client of the node.
    pub(crate) fn client(&self) -> Result<Client, CliError> {
        Ok(Client::new(&self.rpc())?)
    }
}
