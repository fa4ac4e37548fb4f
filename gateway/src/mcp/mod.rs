//! The Model Context Protocol: the desk as tools.
//!
//! ```text
//! POST /mcp   ──▶ http.rs ──▶ Server ──▶ ask.rs      a question, priced and reserved for like any other
//! stdin/out   ──▶ stdio.rs ─▶   │    ──▶ runs.rs     runs that the key asked for
//!                               │    ──▶ lists.rs    wallet and agents
//!                               └──────▶ tools.rs    what clients are told of them
//! ```
//!
//! No session is kept: each request over HTTP has its key. So no session can be taken over, and a
//! gateway that starts anew answers the clients of the one before.

mod answer;
mod arguments;
mod ask;
mod http;
mod lists;
mod runs;
mod stdio;
mod tools;
mod watch;

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::desk::Desk;
use crate::http::PUBLIC;
use crate::keys::Key;
use answer::Told;
pub(crate) use http::{guard, service};
pub use stdio::{StdioError, serve_stdio};
use watch::Watcher;

/// The versions of the protocol that are spoken.
const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// Whose requests they are.
#[derive(Clone, Debug)]
enum Access {
    /// Each has its key, which [`guard`] has put into it.
    Each,
    /// All have this one.
    Process(Box<Key>),
}

/// The tools of a desk.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    desk: Arc<Desk>,
    access: Access,
}

impl Server {
    fn key(&self, context: &RequestContext<RoleServer>) -> Result<Key, ErrorData> {
        if let Access::Process(key) = &self.access {
            return Ok(Key::clone(key));
        }
        let parts = context.extensions.get::<Parts>();
        let key = parts.and_then(|parts| parts.extensions.get::<Key>());
        key.cloned().ok_or_else(|| ErrorData::invalid_request("the request has no key", None))
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Told, ErrorData> {
        let key = self.key(context)?;
        let CallToolRequestParams { name, arguments, .. } = request;
        let (desk, mut watcher) = (&self.desk, Watcher::new(context));
        let told = match name.as_ref() {
            "ask" => ask::ask((desk, key), arguments, &mut watcher).await,
            "get_run" => runs::get_run((desk, key), arguments, &mut watcher).await,
            "cancel" => runs::cancel((desk, key), arguments, &mut watcher).await,
            "wallet" => lists::wallet(desk, &key, arguments).await.map(Told::well),
            "list_agents" => lists::list_agents(desk, arguments).await.map(Told::well),
            other => {
                let other = crate::openai::short(other);
                return Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None));
            }
        };
        Ok(told.unwrap_or_else(|fault| Told { value: answer::failed(&fault), is_error: true }))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let implementation =
            Implementation::new("ombra", env!("CARGO_PKG_VERSION")).with_title("Ombra");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(implementation)
            .with_instructions(format!(
                "Miners of the Ombra chain answer questions for money of a wallet. {PUBLIC}"
            ))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let told = Box::pin(self.call(request, &context)).await?;
        Ok(told.result().into())
    }
}
