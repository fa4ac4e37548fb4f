//! The Model Context Protocol: the service as tools.
//!
//! ```text
//! POST /mcp   ──▶ http.rs ──▶ Server ──▶ ask.rs      a question, priced and reserved for like any other
//! stdin/out   ──▶ stdio.rs ─▶   │    ──▶ calls.rs    a call of an agent
//!                               │    ──▶ runs.rs     what the key asked for
//!                               │    ──▶ lists.rs    wallet and agents
//!                               └──────▶ tools.rs    what clients are told of them
//! ```
//!
//! No session is kept: each request over HTTP has its key. So no session can be taken over, and a
//! gateway that starts anew answers the clients of the one before.

mod answer;
mod arguments;
mod ask;
mod calls;
mod http;
mod lists;
mod runs;
mod stdio;
mod tools;
mod wait;
mod watch;

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::http::PUBLIC;
use crate::keys::Key;
use crate::openai::ApiFault;
use crate::operate::{Asking, Interface};
use crate::request_service::RequestService;
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

impl Access {
    const fn interface(&self) -> Interface {
        match self {
            Self::Each => Interface::Mcp,
            Self::Process(_) => Interface::Stdio,
        }
    }
}

/// The tools of a service.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    service: Arc<RequestService>,
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
        let (service, mut watcher) = (&self.service, Watcher::new(context));
        let told = match name.as_ref() {
            "get_agent" => calls::get_agent(service, arguments).await.map(Told::well),
            "get_call" => runs::get_call((service, key), arguments, &mut watcher).await,
            "get_run" => runs::get_run((service, key), arguments, &mut watcher).await,
            "cancel" => runs::cancel((service, key), arguments, &mut watcher).await,
            "wallet" => lists::wallet(service, &key, arguments).await.map(Told::well),
            "list_agents" => lists::list_agents(service, arguments).await.map(Told::well),
            paying => match self.pay((paying, arguments), key, &mut watcher).await {
                Some(told) => told,
                None => {
                    let other = crate::openai::short(paying);
                    return Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None));
                }
            },
        };
        Ok(told.unwrap_or_else(|fault| Told::badly(&fault)))
    }

    /// Has a tool spend money; none if there is no such tool.
    async fn pay(
        &self,
        (name, arguments): (&str, Option<JsonObject>),
        key: Key,
        watcher: &mut Watcher<'_>,
    ) -> Option<Result<Told, ApiFault>> {
        let service = &self.service;
        let pinned = service.pinned.iter().find(|it| it.name == name);
        if pinned.is_none() && name != "ask" && name != "call_agent" {
            return None;
        }
        let asking = Asking::over(self.access.interface(), &service.store.meter.counters);
        let (buyer, waiting) = ((service, key), (watcher, &asking));
        let told = match (name, pinned) {
            (_, Some(pinned)) => calls::call_pinned(buyer, (pinned, arguments), waiting).await,
            ("call_agent", None) => calls::call_agent(buyer, arguments, waiting).await,
            (_, None) => ask::ask(buyer, arguments, waiting).await,
        };
        Some(told.inspect_err(|fault| asking.failed(fault)))
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
                "Miners of the Ombra chain answer questions and calls of agents for money of a wallet. \
                 {PUBLIC}"
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
        Ok(ListToolsResult::with_all_items(tools::all(&self.service.pinned)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all(&self.service.pinned).into_iter().find(|tool| tool.name == name)
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
