//! Standard input and output, for a client that starts the program itself.

use std::sync::Arc;

use rmcp::service::serve_server_with_ct;
use rmcp::transport::io::stdio_pipes;

use super::{Access, Server};
use crate::keys::Key;
use crate::request_service::RequestService;

/// Why a client on standard input is not served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// It does not begin as the protocol has it.
    #[error("the client did not start an MCP session: {0}")]
    Begin(String),
    /// The task that serves it has failed.
    #[error("the MCP session failed: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// Serves the client on standard input with a key, until it closes it or the service is stopped.
///
/// # Errors
/// When it does not speak the protocol.
pub async fn serve_stdio(service: &Arc<RequestService>, key: Key) -> Result<(), StdioError> {
    let server = Server { service: Arc::clone(service), access: Access::Process(Box::new(key)) };
    let stop = service.stop.child_token();
    let serving = serve_server_with_ct(server, stdio_pipes(), stop);
    let serving = tokio::select! {
        biased;
        () = service.stop.cancelled() => return Ok(()),
        serving = serving => serving.map_err(|error| StdioError::Begin(error.to_string()))?,
    };
    serving.waiting().await?;
    Ok(())
}
