//! The options of `ombra run --method`: what is asked, as an envelope that miners read
//! (docs/agent-methods.md).
//!
//! The envelope is put together loosely and then read with the miner's own code, so that what a
//! miner would refuse is refused here, before it costs anything.

use std::path::PathBuf;

use agent::messages::ToolSpec;
use agent::methods::{AgentSession, Integer, Method, Parsed, Refused, Request};
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::{CliError, input};

/// More than any envelope: the envelope's own limit gives the exact answer.
const MESSAGES_BYTES_MAX: u64 = 16 * 1024 * 1024;
const ITERATIONS_DEFAULT: u32 = 8;

/// The arguments of the agent methods.
#[derive(Args, Debug, Default)]
pub struct MethodArgs {
    /// Ask for an agent method: inferString, inferNumber, inferChat, inferToolsChat or inferMessages
    #[arg(long, value_name = "METHOD", value_parser = method, help_heading = HEADING)]
    pub(super) method: Option<Method>,
    /// Instructions for the model (inferString, inferNumber)
    #[arg(long, value_name = "TEXT", requires = "method", help_heading = HEADING)]
    system: Option<String>,
    /// Let the model think first; thoughts are paid for as tokens
    #[arg(long, requires = "method", help_heading = HEADING)]
    chain_of_thought: bool,
    /// An allowed answer; may be given several times (inferString)
    #[arg(long, value_name = "VALUE", requires = "method", help_heading = HEADING)]
    allowed: Vec<String>,
    /// The smallest answer (inferNumber)
    #[arg(long, value_name = "NUMBER", requires = "method", allow_hyphen_values = true,
        help_heading = HEADING)]
    min: Option<String>,
    /// The largest answer (inferNumber)
    #[arg(long, value_name = "NUMBER", requires = "method", allow_hyphen_values = true,
        help_heading = HEADING)]
    max: Option<String>,
    /// A message of the conversation, ROLE one of system, user, assistant; may be given several
    /// times; PROMPT is the last one, of role user (inferChat, inferToolsChat)
    #[arg(long, value_name = "ROLE:TEXT", requires = "method", value_parser = message,
        help_heading = HEADING)]
    message: Vec<Message>,
    /// File with the first messages: [{"role":"user","content":"…"}, …] ('-': standard input)
    #[arg(long, value_name = "FILE", requires = "method", help_heading = HEADING)]
    messages: Option<PathBuf>,
    /// A function that you will run yourself, 'swap(address token, uint256 amount)=what it does';
    /// may be given several times (inferToolsChat)
    #[arg(long, value_name = "SIGNATURE=TEXT", requires = "method", value_parser = function,
        help_heading = HEADING)]
    onchain_tool: Vec<Function>,
    /// A server whose tools the miner runs; may be given several times (inferToolsChat)
    #[arg(long, value_name = "URL", requires = "method", help_heading = HEADING)]
    mcp_server: Vec<String>,
    /// The most round trips between model and tools, 1 to 200 [default: 8] (inferToolsChat)
    #[arg(long, value_name = "N", requires = "method", help_heading = HEADING)]
    max_iterations: Option<u32>,
    /// File with the arguments as JSON, {"messages":[…],"functions":[],…} ('-': standard input); PROMPT
    /// is added to its messages, of role user (inferMessages)
    #[arg(long, value_name = "FILE", requires = "method", help_heading = HEADING)]
    args: Option<PathBuf>,
    /// Only a miner that can answer reproducibly may take the run
    #[arg(long, requires = "method", help_heading = HEADING)]
    deterministic: bool,
}

const HEADING: &str = "Agent methods (docs/agent-methods.md)";

/// A message as people give it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    role: String,
    content: String,
}

/// A function as people declare it.
#[derive(Clone, Debug)]
struct Function {
    signature: String,
    description: String,
}

impl MethodArgs {
    /// The request that the options make; none without `--method`. `prompt` is the positional
    /// argument or its file, `tools` the run's whitelist.
    ///
    /// # Errors
    /// An option that the method has not, or the first argument that a miner would refuse.
    pub(super) fn request(
        &self,
        prompt: Option<String>,
        tools: &[String],
    ) -> Result<Option<Request>, CliError> {
        let Some(method) = self.method else { return Ok(None) };
        self.check_foreign(method, tools)?;
        let arguments = match method {
            Method::InferString => json!({
                "prompt": needed(prompt)?,
                "system": self.system.as_deref().unwrap_or_default(),
                "chainOfThought": self.chain_of_thought,
                "allowedValues": self.allowed,
            }),
            Method::InferNumber => {
                let (min, max) = self.bounds()?;
                json!({
                    "prompt": needed(prompt)?,
                    "system": self.system.as_deref().unwrap_or_default(),
                    "minValue": min,
                    "maxValue": max,
                    "chainOfThought": self.chain_of_thought,
                })
            }
            Method::InferChat => self.conversation(prompt)?,
            Method::InferToolsChat => {
                let mut arguments = self.conversation(prompt)?;
                arguments["mcpServerUrls"] = json!(self.mcp_server);
                arguments["onchainTools"] = self.onchain_tool.iter().map(declaration).collect();
                arguments["maxIterations"] =
                    json!(self.max_iterations.unwrap_or(ITERATIONS_DEFAULT));
                arguments
            }
            Method::InferMessages => self.arguments(prompt)?,
        };
        let envelope = json!({
            "ombraAgent": 1,
            "method": method.name(),
            "deterministic": self.deterministic,
            "args": arguments,
        });
        match read(&envelope.to_string(), None)? {
            Parsed::Method(request) => check(request, tools).map(Some),
            Parsed::PlainText(_) | Parsed::NeedsBlob { .. } => {
                Err(CliError::Failed("the envelope cannot be read back".into()))
            }
        }
    }

    /// An option that this method has not is a mistake, and not to be passed over.
    fn check_foreign(&self, method: Method, tools: &[String]) -> Result<(), CliError> {
        use Method::{InferChat, InferMessages, InferNumber, InferString, InferToolsChat};
        let with_thoughts = &[InferString, InferNumber, InferChat, InferToolsChat];
        let options: [(&str, bool, &[Method]); 12] = [
            ("--system", self.system.is_some(), &[InferString, InferNumber]),
            ("--allowed", !self.allowed.is_empty(), &[InferString]),
            ("--min", self.min.is_some(), &[InferNumber]),
            ("--max", self.max.is_some(), &[InferNumber]),
            ("--message", !self.message.is_empty(), &[InferChat, InferToolsChat]),
            ("--messages", self.messages.is_some(), &[InferChat, InferToolsChat]),
            ("--onchain-tool", !self.onchain_tool.is_empty(), &[InferToolsChat]),
            ("--mcp-server", !self.mcp_server.is_empty(), &[InferToolsChat]),
            ("--max-iterations", self.max_iterations.is_some(), &[InferToolsChat]),
            ("--chain-of-thought", self.chain_of_thought, with_thoughts),
            ("--args", self.args.is_some(), &[InferMessages]),
            ("--tools", !tools.is_empty(), &[InferToolsChat, InferMessages]),
        ];
        let foreign =
            options.into_iter().find(|(_, is_given, of)| *is_given && !of.contains(&method));
        let Some((option, _, of)) = foreign else { return Ok(()) };
        let of: Vec<_> = of.iter().map(|method| method.name()).collect();
        let mut text =
            format!("{option} is not an argument of {method}, only of {}", of.join(", "));
        if option == "--system" {
            text.push_str("; in a conversation give --message system:TEXT");
        }
        Err(CliError::Usage(text))
    }

    /// Both bounds; one alone is completed by that of the type.
    fn bounds(&self) -> Result<(String, String), CliError> {
        let zero = |text: &str| Integer::parse(text) == Some(Integer::ZERO);
        Ok(match (self.min.clone(), self.max.clone()) {
            (None, None) => ("0".to_owned(), "0".to_owned()),
            (Some(min), None) => (min, Integer::MAX.to_string()),
            (None, Some(max)) => (Integer::MIN.to_string(), max),
            (Some(min), Some(max)) if zero(&min) && zero(&max) => {
                let text = "--min 0 --max 0: two zeros mean no bounds; you cannot request an \
                            answer that must be zero";
                return Err(CliError::Usage(text.into()));
            }
            (Some(min), Some(max)) => (min, max),
        })
    }

    /// The arguments of `inferMessages`: those of the file, and the prompt as the last message. Functions
    /// and the choice need not be told.
    fn arguments(&self, prompt: Option<String>) -> Result<Value, CliError> {
        let mut arguments = json!({ "messages": [], "functions": [], "toolChoice": "auto" });
        if let Some(path) = &self.args {
            let text = input::read_text(path, MESSAGES_BYTES_MAX)?;
            let name = path.display();
            let expected = |error: &dyn std::fmt::Display| {
                let form = "{\"messages\":[…],\"functions\":[…],\"toolChoice\":\"auto\",…}";
                CliError::Usage(format!("{name}: expected {form}: {error}"))
            };
            let given: Map<String, Value> =
                serde_json::from_str(&text).map_err(|error| expected(&error))?;
            for (key, value) in given {
                arguments[key] = value;
            }
        }
        if let (Some(content), Value::Array(messages)) = (prompt, &mut arguments["messages"]) {
            messages.push(json!({ "role": "user", "content": content }));
        }
        Ok(arguments)
    }

    /// The conversation: the file, the messages, the prompt.
    fn conversation(&self, prompt: Option<String>) -> Result<Value, CliError> {
        let mut messages: Vec<Message> = match &self.messages {
            None => Vec::new(),
            Some(path) => {
                let text = input::read_text(path, MESSAGES_BYTES_MAX)?;
                serde_json::from_str(&text).map_err(|error| {
                    let name = path.display();
                    CliError::Usage(format!(
                        "{name}: expected [{{\"role\":…,\"content\":…}}, …]: {error}"
                    ))
                })?
            }
        };
        messages.extend(self.message.iter().cloned());
        messages.extend(prompt.map(|content| Message { role: "user".to_owned(), content }));
        let (roles, texts): (Vec<_>, Vec<_>) =
            messages.into_iter().map(|Message { role, content }| (role, content)).unzip();
        Ok(json!({ "roles": roles, "messages": texts, "chainOfThought": self.chain_of_thought }))
    }
}

/// Reads a prompt as a miner does.
///
/// # Errors
/// What the miner would refuse, as wrong usage.
pub(super) fn read(prompt: &str, blob: Option<&str>) -> Result<Parsed, CliError> {
    Request::parse(prompt, blob).map_err(|refused| refused_by_miners(&refused))
}

/// Whether miners take a prompt for free text.
pub(super) fn is_free_text(prompt: &str) -> bool {
    matches!(Request::parse(prompt, None), Ok(Parsed::PlainText(_)))
}

/// Checks what only shows beside the run's tools.
pub(super) fn check(request: Request, tools: &[String]) -> Result<Request, CliError> {
    let spec = |name: &String| ToolSpec {
        name: name.clone(),
        description: String::new(),
        parameters: json!({}),
    };
    let specs: Vec<_> = tools.iter().map(spec).collect();
    AgentSession::of_request(&request, &specs).map_err(|refused| refused_by_miners(&refused))?;
    Ok(request)
}

/// What miners would refuse, as wrong usage that names the option.
pub(super) fn refused_by_miners(refused: &Refused) -> CliError {
    let options = [
        ("args.prompt", "PROMPT"),
        ("args.system", "--system"),
        ("args.allowedValues", "--allowed"),
        ("args.minValue", "--min"),
        ("args.maxValue", "--max"),
        ("args.roles", "--message"),
        ("args.messages", "--message"),
        ("args.mcpServerUrls", "--mcp-server"),
        ("args.onchainTools", "--onchain-tool"),
        ("args.maxIterations", "--max-iterations"),
        ("args.functions", "--args"),
        ("args.toolChoice", "--args"),
        ("args.responseSchema", "--args"),
        ("args.maxOutputTokens", "--args"),
        ("args.stop", "--args"),
    ];
    let option = options.iter().find(|(field, _)| refused.field.starts_with(field));
    let option = option.map(|(_, option)| format!(" ({option})")).unwrap_or_default();
    CliError::Usage(format!("no miner would take this request{option}: {refused}"))
}

fn needed(prompt: Option<String>) -> Result<String, CliError> {
    prompt.ok_or_else(|| CliError::Usage("PROMPT is missing: say what to ask".into()))
}

fn declaration(function: &Function) -> Value {
    json!({ "signature": function.signature, "description": function.description })
}

fn method(text: &str) -> Result<Method, String> {
    let names = Method::ALL.map(Method::name).join(", ");
    Method::parse(text).ok_or_else(|| format!("{text:?}: expected one of {names}"))
}

/// `user:Hello`.
fn message(text: &str) -> Result<Message, String> {
    let (role, content) =
        text.split_once(':').ok_or_else(|| format!("{text:?}: expected ROLE:TEXT"))?;
    Ok(Message { role: role.to_owned(), content: content.to_owned() })
}

/// `greet(string name)=Greets somebody`; the description may be left out.
fn function(text: &str) -> Result<Function, String> {
    let (signature, description) = text.split_once('=').unwrap_or((text, ""));
    Ok(Function { signature: signature.to_owned(), description: description.to_owned() })
}

#[cfg(test)]
mod tests;
