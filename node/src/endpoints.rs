//! The file that says where a running node answers.

use std::path::Path;

use rpc::ports::Endpoints;

use crate::not_started::StartError;

/// Writes down where the node answers, and where its peers reach it.
///
/// # Errors
/// [`StartError::Io`].
pub(crate) fn write_all(
    file: &Path,
    endpoints: &Endpoints,
    listen: Option<&str>,
    network: Option<&p2p::Handle>,
) -> Result<(), StartError> {
    let gossip = network.into_iter().flat_map(p2p::Handle::listen_addresses).next();
    write(file, endpoints, listen, gossip.as_deref())
        .map_err(|source| StartError::Io { doing: "writing endpoints.json".to_owned(), source })
}

/// Writes down where the node answers.
///
/// # Errors
/// The system's, if the file cannot be written.
pub(crate) fn write(
    file: &Path,
    endpoints: &Endpoints,
    p2p: Option<&str>,
    gossip: Option<&str>,
) -> std::io::Result<()> {
    let body = serde_json::json!({
        "rpc": endpoints.rpc,
        "p2p": p2p,
        "gossip": gossip,
        "metrics": endpoints.metrics,
    });
    write_atomically(file, &format!("{body}\n"))
}

/// A reader sees the old file or the new one, never half of it.
fn write_atomically(path: &Path, text: &str) -> std::io::Result<()> {
    let half = path.with_extension("tmp");
    std::fs::write(&half, text)?;
    std::fs::rename(&half, path)
}
