//! Standard input and output, for a client that starts the program itself.

use std::sync::Arc;

use rmcp::service::serve_server_with_ct;
use rmcp::transport::io::stdio_pipes;

use super::{Access, Server};
use crate::desk::Desk;
use crate::keys::Key;

/// Why a client on standard input is not served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// It does not begin as the protocol has it.
    #[error("the client does not begin a conversation of the protocol: {0}")]
    Begin(String),
    /// The task that serves it has failed.
    #[error("the conversation broke: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// Serves the client on standard input with a key, until it closes it or the desk is stopped.
///
/// # Errors
/// When it does not speak the protocol.
pub async fn serve_stdio(desk: &Arc<Desk>, key: Key) -> Result<(), StdioError> {
    let server = Server { desk: Arc::clone(desk), access: Access::Process(Box::new(key)) };
    let stop = desk.stop.child_token();
    let serving = serve_server_with_ct(server, stdio_pipes(), stop);
    let serving = tokio::select! {
        biased;
        () = desk.stop.cancelled() => return Ok(()),
        serving = serving => serving.map_err(|error| StdioError::Begin(error.to_string()))?,
    };
    serving.waiting().await?;
    Ok(())
}
