//! Long texts, which are kept in blobs beside the run.

use miner::chain::client::Node;
use miner::chain::{Ledger as _, Runs as _};
use types::Hash;
use wallet::Client;

use crate::client::CliError;
use crate::client::output::printable;

/// The blobs of a node.
#[derive(Debug)]
pub(super) struct Texts(Node);

impl Texts {
    /// Those of the node that `client` talks to.
    pub(super) fn of(client: &Client) -> Result<Self, CliError> {
        let refused = |error| CliError::Failed(format!("cannot create the HTTP client: {error}"));
        Node::new(client.clone()).map(Self).map_err(refused)
    }

    /// The text in a blob, of at most `bytes_max` bytes, after comparing it with the hash that the
    /// chain has of it.
    ///
    /// # Errors
    /// When the node is away, or there is no such text.
    pub(super) async fn read(&self, id: &str, bytes_max: usize) -> Result<String, CliError> {
        let shown = || printable(id);
        let record = self.0.blob(id).await?;
        let record = record.filter(|record| record.is_final);
        let record = record
            .ok_or_else(|| CliError::Failed(format!("there is no finished blob {}", shown())))?;
        let text = self.0.blob_text(id, bytes_max).await?.ok_or_else(|| {
            let why = format!("is not a text of at most {bytes_max} bytes");
            CliError::Failed(format!("blob {} {why}", shown()))
        })?;
        let hash = Hash::digest(text.as_bytes());
        if hash == record.content_hash {
            return Ok(text);
        }
        let expected = record.content_hash;
        Err(CliError::Failed(format!(
            "blob {}: the node gave a text with the hash {hash}, expected {expected}",
            shown()
        )))
    }
}
