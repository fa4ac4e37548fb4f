//! The arguments of the methods: what they may be, how they are read and written
//! (docs/agent-methods.md section 3).

use types::json::{Json, ObjectWriter};
use types::params::MAX_STEPS_MAX;
use types::text::Quoted;

use super::conversation::{self, Dialect};
use super::functions::{Declaration, Functions};
use super::members::Members;
use super::messages::Messages;
use super::path::Path;
use super::refused::{Refused, bytes_at_most, entries_at_most};
use super::{Integer, Method};
use crate::messages::Message;

/// The most texts in `allowedValues`.
pub const ALLOWED_VALUES_MAX: usize = 256;
/// The most bytes of one of them.
pub const ALLOWED_VALUE_BYTES_MAX: usize = 1_024;
/// The most bytes of all of them: reading them is about as much work as reading a full context.
pub const ALLOWED_VALUES_BYTES_MAX: usize = 8_192;
/// The most addresses in `mcpServerUrls`.
pub const MCP_SERVERS_MAX: usize = 16;
/// The most bytes of one of them.
pub const MCP_SERVER_URL_BYTES_MAX: usize = 2_048;
/// The most round trips between model and tools: one more than these would need more steps than a
/// run can have.
pub const ITERATIONS_MAX: u32 = 200;
const _: () = assert!(MAX_STEPS_MAX == 200 && ITERATIONS_MAX == 200, "and the texts below say so");

/// What is asked, with every argument of the method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A text, or one of some texts.
    InferString {
        /// The question.
        prompt: String,
        /// Instructions; "" if there are none.
        system: String,
        /// Whether the model may think first.
        chain_of_thought: bool,
        /// The texts of which the answer is one; none of them means any text.
        allowed_values: Vec<String>,
    },
    /// A whole number.
    InferNumber {
        /// The question.
        prompt: String,
        /// Instructions; "" if there are none.
        system: String,
        /// The smallest answer.
        min_value: Integer,
        /// The largest answer; if both are zero, any number of 256 bits is one.
        max_value: Integer,
        /// Whether the model may think first.
        chain_of_thought: bool,
    },
    /// The next message of a conversation.
    InferChat {
        /// The conversation.
        messages: Vec<Message>,
        /// Whether the model may think first.
        chain_of_thought: bool,
    },
    /// The next message of a conversation, with tools.
    InferToolsChat {
        /// The conversation.
        messages: Vec<Message>,
        /// MCP servers whose tools the miner is to run.
        mcp_server_urls: Vec<String>,
        /// Functions that the requester runs.
        onchain_tools: Vec<Declaration>,
        /// The most round trips between model and tools, 1 to 200.
        max_iterations: u32,
        /// Whether the model may think first.
        chain_of_thought: bool,
    },
    /// The next message of a conversation, with functions and schemas as chat programs have them.
    InferMessages(Messages),
}

impl Ask {
    /// The method.
    #[must_use]
    pub const fn method(&self) -> Method {
        match self {
            Self::InferString { .. } => Method::InferString,
            Self::InferNumber { .. } => Method::InferNumber,
            Self::InferChat { .. } => Method::InferChat,
            Self::InferToolsChat { .. } => Method::InferToolsChat,
            Self::InferMessages(_) => Method::InferMessages,
        }
    }

    /// Whether the model may think first.
    #[must_use]
    pub const fn chain_of_thought(&self) -> bool {
        match self {
            Self::InferString { chain_of_thought, .. }
            | Self::InferNumber { chain_of_thought, .. }
            | Self::InferChat { chain_of_thought, .. }
            | Self::InferToolsChat { chain_of_thought, .. } => *chain_of_thought,
            Self::InferMessages(_) => false,
        }
    }
}

/// The arguments of a method.
pub(super) fn read(method: Method, args: &Members<'_, '_, '_>) -> Result<Ask, Refused> {
    if method == Method::InferMessages {
        return Messages::read(args).map(Ask::InferMessages);
    }
    let chain_of_thought = args.boolean("chainOfThought")?;
    let conversation = |dialect| conversation::read(args, "roles", "messages", dialect);
    Ok(match method {
        Method::InferString => Ask::InferString {
            prompt: args.text("prompt")?.to_owned(),
            system: args.text("system")?.to_owned(),
            chain_of_thought,
            allowed_values: args.texts("allowedValues")?,
        },
        Method::InferNumber => Ask::InferNumber {
            prompt: args.text("prompt")?.to_owned(),
            system: args.text("system")?.to_owned(),
            min_value: read_integer(args, "minValue")?,
            max_value: read_integer(args, "maxValue")?,
            chain_of_thought,
        },
        Method::InferChat => {
            Ask::InferChat { messages: conversation(Dialect::Chat)?, chain_of_thought }
        }
        // Was read above.
        Method::InferMessages => Ask::InferMessages(Messages::read(args)?),
        Method::InferToolsChat => Ask::InferToolsChat {
            messages: conversation(Dialect::Tools)?,
            mcp_server_urls: args.texts("mcpServerUrls")?,
            onchain_tools: read_declarations(args)?,
            max_iterations: args.integer("maxIterations", ITERATIONS)?,
            chain_of_thought,
        },
    })
}

fn read_integer(args: &Members<'_, '_, '_>, key: &str) -> Result<Integer, Refused> {
    let text = args.text(key)?;
    Integer::parse(text).ok_or_else(|| Refused::new(args.field(key), text, Integer::EXPECTED))
}

fn read_declarations(args: &Members<'_, '_, '_>) -> Result<Vec<Declaration>, Refused> {
    let items = args.array("onchainTools")?.iter().enumerate();
    let field = args.field("onchainTools");
    let read = |(index, item): (usize, &Json<'_>)| {
        let object =
            Members::of(item, Path::Entry(&field, index))?.only(&["signature", "description"])?;
        Ok(Declaration {
            signature: object.text("signature")?.to_owned(),
            description: object.text("description")?.to_owned(),
        })
    };
    items.map(read).collect()
}

/// The rules that the types do not hold already.
pub(super) fn check(ask: &Ask) -> Result<Functions, Refused> {
    match ask {
        Ask::InferString { allowed_values, prompt: _, system: _, chain_of_thought: _ } => {
            check_allowed_values(allowed_values)?;
        }
        Ask::InferNumber { min_value, max_value, prompt: _, system: _, chain_of_thought: _ } => {
            if min_value > max_value {
                let expected = format!("at most maxValue, {max_value}");
                return Err(Refused::new("args.minValue", min_value, expected));
            }
        }
        Ask::InferChat { messages, chain_of_thought: _ } => {
            conversation::check_parts(MESSAGES, messages, Dialect::Chat)?;
            conversation::check_answered(MESSAGES, messages)?;
        }
        Ask::InferToolsChat {
            messages,
            mcp_server_urls,
            onchain_tools,
            max_iterations,
            chain_of_thought: _,
        } => {
            conversation::check_parts(MESSAGES, messages, Dialect::Tools)?;
            conversation::check_answered(MESSAGES, messages)?;
            check_servers(mcp_server_urls)?;
            if !(1..=ITERATIONS_MAX).contains(max_iterations) {
                return Err(Refused::new("args.maxIterations", max_iterations, ITERATIONS));
            }
            return Functions::parse("args.onchainTools", onchain_tools);
        }
        Ask::InferMessages(messages) => messages.check()?,
    }
    Ok(Functions::default())
}

const MESSAGES: &str = "args.messages";
const ITERATIONS: &str = "an integer from 1 to 200";

fn check_allowed_values(values: &[String]) -> Result<(), Refused> {
    const FIELD: &str = "args.allowedValues";
    entries_at_most(FIELD, values.len(), ALLOWED_VALUES_MAX)?;
    for (index, value) in values.iter().enumerate() {
        let path = format!("{FIELD}[{index}]");
        bytes_at_most(&path, value, ALLOWED_VALUE_BYTES_MAX)?;
        // The output is trimmed before it is compared, so such a value could never be the answer.
        if value.trim() != value || value.is_empty() {
            let expected = "a text that neither is empty nor begins or ends with white space";
            return Err(Refused::new(path, Quoted(value), expected));
        }
        if values.iter().take(index).any(|earlier| earlier == value) {
            return Err(Refused::new(
                path,
                format_args!("{} twice", Quoted(value)),
                "every value once",
            ));
        }
    }
    let bytes = values.iter().map(String::len).fold(0, usize::saturating_add);
    if bytes > ALLOWED_VALUES_BYTES_MAX {
        let expected = format!("at most {ALLOWED_VALUES_BYTES_MAX} bytes in all values together");
        return Err(Refused::new(FIELD, format_args!("{bytes} bytes"), expected));
    }
    Ok(())
}

fn check_servers(urls: &[String]) -> Result<(), Refused> {
    const FIELD: &str = "args.mcpServerUrls";
    entries_at_most(FIELD, urls.len(), MCP_SERVERS_MAX)?;
    for (index, url) in urls.iter().enumerate() {
        let path = format!("{FIELD}[{index}]");
        bytes_at_most(&path, url, MCP_SERVER_URL_BYTES_MAX)?;
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(Refused::new(path, url, "an address that begins with https:// or http://"));
        }
        if urls.iter().take(index).any(|earlier| earlier == url) {
            return Err(Refused::new(path, format_args!("{url} twice"), "every server once"));
        }
    }
    Ok(())
}

/// The arguments in the order of docs/agent-methods.md section 3.
pub(super) fn write(ask: &Ask) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    let args = &mut object;
    match ask {
        Ask::InferString { prompt, system, chain_of_thought, allowed_values } => {
            args.string("prompt", prompt);
            args.string("system", system);
            args.boolean("chainOfThought", *chain_of_thought);
            args.strings("allowedValues", allowed_values);
        }
        Ask::InferNumber { prompt, system, min_value, max_value, chain_of_thought } => {
            args.string("prompt", prompt);
            args.string("system", system);
            args.display("minValue", min_value);
            args.display("maxValue", max_value);
            args.boolean("chainOfThought", *chain_of_thought);
        }
        Ask::InferChat { messages, chain_of_thought } => {
            let (roles, texts) = conversation::write(messages, Dialect::Chat);
            args.strings("roles", &roles);
            args.strings("messages", &texts);
            args.boolean("chainOfThought", *chain_of_thought);
        }
        Ask::InferToolsChat {
            messages,
            mcp_server_urls,
            onchain_tools,
            max_iterations,
            chain_of_thought,
        } => {
            let (roles, texts) = conversation::write(messages, Dialect::Tools);
            args.strings("roles", &roles);
            args.strings("messages", &texts);
            args.strings("mcpServerUrls", mcp_server_urls);
            args.objects("onchainTools", onchain_tools, |declaration, object| {
                let Declaration { signature, description } = declaration;
                object.string("signature", signature);
                object.string("description", description);
            });
            args.integer("maxIterations", u64::from(*max_iterations));
            args.boolean("chainOfThought", *chain_of_thought);
        }
        Ask::InferMessages(messages) => return messages.write(),
    }
    object.end();
    out
}
