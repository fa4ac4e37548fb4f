//! An MCP server over streamable HTTP that keeps account of its calls and can hold them up.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::breakpoint::lock;
use crate::web::{self, Request};

/// What a server takes that is a program: a miner that has just started is there before it.
const HANDSHAKE: Duration = Duration::from_millis(300);

/// A running server with the tools `once`, which changes something, and `again`, which does not.
/// It ends with the process.
#[derive(Clone, Debug)]
pub struct ToolServer {
    pub address: SocketAddr,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
}

impl ToolServer {
    /// A server that asks `script` what it says to a tool with arguments; it may hold the call up.
    pub fn start(
        script: impl Fn(&str, &Value) -> String + Clone + Send + 'static,
    ) -> anyhow::Result<Self> {
        Self::with_schema(json!({ "type": "object" }), script)
    }

    /// The same with another schema of the tools' arguments.
    pub fn with_schema(
        schema: Value,
        script: impl Fn(&str, &Value) -> String + Clone + Send + 'static,
    ) -> anyhow::Result<Self> {
        let calls: Arc<Mutex<Vec<_>>> = Arc::default();
        let notes = Arc::clone(&calls);
        let call = move |name: &str, arguments: &Value| {
            lock(&notes).push((name.to_owned(), arguments.clone()));
            script(name, arguments)
        };
        let address = web::listen(move |stream| serve(stream, &schema, &call))?;
        Ok(Self { address, calls })
    }

    /// The calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<(String, Value)> {
        lock(&self.calls).clone()
    }

    /// The table of a miner that uses it under the name `own`.
    #[must_use]
    pub fn settings(&self) -> String {
        let address = self.address;
        format!(
            "[[tools.mcp]]\nname = \"own\"\nurl = \"http://{address}/mcp\"\nidempotent = [\"again\"]\n"
        )
    }
}

fn serve(stream: TcpStream, schema: &Value, call: &impl Fn(&str, &Value) -> String) -> Option<()> {
    let (mut reader, mut writer) = web::both(stream)?;
    loop {
        let request = Request::read(&mut reader)?;
        if !request.line.starts_with("POST") {
            web::answer(&mut writer, "405 Method Not Allowed", &[], "")?;
            continue;
        }
        let message = request.json();
        let params = &message["params"];
        let result = match message["method"].as_str()? {
            "initialize" => {
                std::thread::sleep(HANDSHAKE);
                json!({
                    "protocolVersion": params["protocolVersion"], "capabilities": { "tools": {} },
                    "serverInfo": { "name": "own", "version": "1" },
                })
            }
            "tools/list" => {
                let tool = |name| json!({ "name": name, "inputSchema": schema });
                json!({ "tools": [tool("once"), tool("again")] })
            }
            "tools/call" => {
                let text = call(params["name"].as_str()?, &params["arguments"]);
                json!({ "content": [{ "type": "text", "text": text }] })
            }
            _ => {
                web::answer(&mut writer, "202 Accepted", &[], "")?;
                continue;
            }
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        let headers = ["content-type: application/json".to_owned()];
        web::answer(&mut writer, "200 OK", &headers, &answer.to_string())?;
    }
}
