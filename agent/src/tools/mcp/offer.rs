//! A server's tool as a tool of the miner.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ResourceContents,
    Tool as Listed,
};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::ServerConfig;
use super::config::SEPARATOR;
use super::connection::SharedPeer;
use crate::messages::ToolSpec;
use crate::tools::apart::Apart;
use crate::tools::arguments::Schema;
use crate::tools::canonical_json;
use crate::tools::offered::Offered;
use crate::tools::outcome::cut_result;
use crate::tools::tool::{Class, Code, Failure, Limits, Terms, Tool};

/// Bytes of a tool's name as a run's whitelist may have it.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of a tool's description.
const DESCRIPTION_BYTES_MAX: usize = 2000;
/// Bytes of the schemas of one server's tools, as JSON.
const SCHEMAS_BYTES_MAX: usize = 512 * 1024;
/// Patterns in them.
const PATTERNS_MAX: usize = 256;

/// A connection as its tools see it.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) peer: SharedPeer,
    /// Cancelled by whoever finds that the server no longer answers.
    pub(super) lost: CancellationToken,
    /// Where arguments of its tools are checked.
    pub(super) apart: Apart,
    /// Calls under way.
    pub(super) calls: Arc<AtomicUsize>,
}

/// A tool of a server.
#[derive(Debug)]
struct ServerTool {
    spec: ToolSpec,
    /// The server's own name of it.
    name: String,
    terms: Terms,
    line: Line,
}

/// What the schemas of one server's tools may still have.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    patterns: usize,
}

impl Room {
    pub(super) const WHOLE: Self = Self { bytes: SCHEMAS_BYTES_MAX, patterns: PATTERNS_MAX };

    /// Takes what a schema needs, or says that there is not enough.
    fn take(&mut self, schema: &Schema) -> Result<(), String> {
        let bytes = self.bytes.checked_sub(schema.bytes());
        let patterns = self.patterns.checked_sub(schema.patterns());
        let (Some(bytes), Some(patterns)) = (bytes, patterns) else {
            return Err(format!(
                "with it the schemas of the server's tools have more than {SCHEMAS_BYTES_MAX} bytes or {PATTERNS_MAX} patterns"
            ));
        };
        *self = Self { bytes, patterns };
        Ok(())
    }
}

/// The tool, or why it is not offered.
pub(super) fn offered(
    listed: Listed,
    config: &ServerConfig,
    line: &Line,
    room: &mut Room,
    limits: impl Fn(&str) -> Limits,
) -> Result<Offered, String> {
    let name = listed.name.into_owned();
    let full = format!("{}{SEPARATOR}{name}", config.name);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || full.len() > NAME_BYTES_MAX || !full.bytes().all(is_plain) {
        return Err(format!("{full:?} is not a name of at most {NAME_BYTES_MAX} of [A-Za-z0-9_-]"));
    }
    let parameters = Value::Object((*listed.input_schema).clone());
    let schema = Schema::compile(&parameters).map_err(|fault| fault.to_string())?;
    room.take(&schema)?;
    let limits = limits(&full);
    let is_pure = config.pure.contains(&name);
    let terms = Terms {
        class: if is_pure { Class::Pure } else { Class::Volatile },
        is_idempotent: is_pure || config.idempotent.contains(&name),
        limits,
    };
    let description =
        listed.description.map(|text| cut_result(text.into_owned(), DESCRIPTION_BYTES_MAX));
    let spec = ToolSpec { name: full, description: description.unwrap_or_default(), parameters };
    let tool = Arc::new(ServerTool { spec, name, terms, line: line.clone() });
    let (schema, apart) = (Arc::new(schema), Some(line.apart.clone()));
    Ok(Offered { tool, schema, limits, apart, is_of_agent: false })
}

/// Counts a call for as long as it runs, however it ends.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        Self(calls)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Tool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn terms(&self) -> Terms {
        self.terms
    }

    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure> {
        let _under_way = Counted::new(&self.line.calls);
        let request =
            CallToolRequestParams::new(self.name.clone()).with_arguments(arguments.clone());
        let called = tokio::select! {
            called = self.line.peer.call_tool_once(request) => called,
            () = self.line.lost.cancelled() => Err(ServiceError::TransportClosed),
        };
        match called {
            Ok(CallToolResponse::Complete(result)) => written(result),
            Ok(_) => {
                Err(Failure::failed("the tool asks for more than a call, which is not offered"))
            }
            Err(ServiceError::McpError(error)) => {
                let (code, message) = (error.code.0, error.message);
                Err(Failure::failed(format!("the server answers with error {code}: {message}")))
            }
            Err(error) => {
                tracing::warn!(tool = self.spec.name, %error, "an MCP server is lost");
                self.line.lost.cancel();
                Err(Failure::new(Code::Transport, "the tool's server could not be asked"))
            }
        }
    }
}

/// A result as the model gets it: its texts, one per line; what is not text is only named.
fn written(result: CallToolResult) -> Result<String, Failure> {
    let has_failed = result.is_error == Some(true);
    let mut parts: Vec<_> = result.content.into_iter().map(part).collect();
    if parts.is_empty() {
        parts.extend(result.structured_content.as_ref().map(canonical_json));
    }
    let text = parts.join("\n");
    if has_failed { Err(Failure::failed(text)) } else { Ok(text) }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a library's enum, which says it will grow")]
fn part(content: ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => format!("[{}, not shown]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[{}, not shown]", audio.mime_type),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            _ => "[a resource, not shown]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        _ => "[not shown]".to_owned(),
    }
}
