//! The metadata of an agent: a text read by rule 1, checked by the others, and what is left of it.

use std::fmt;

use super::fault::Spot;
use super::{Executor, Fault, METADATA_BYTES_MAX, NESTING_MAX, PROGRAM_BYTES_MAX, Tool, Version};
use super::{describe, methods, run};
use crate::abi::Method;
use crate::json::{Manner, Members, Place, Tape, Value, parse_tape};
use crate::{Amount, Hash, Usage};

/// How deep a text may nest; the outermost object is 1.
const DEPTH_MAX: usize = 32;

/// The keys that a rule names, by their length.
const KNOWN: &[&[&str]] = &[
    &[],
    &[],
    &[],
    &["abi"],
    &["kind", "name", "tags", "type"],
    &["image", "model", "tools", "value"],
    &["author", "blobId", "inputs"],
    &["outputs", "royalty", "runtime", "version"],
    &["executor", "homepage"],
    &[],
    &["attributes", "basePrompt", "components", "repository", "trait_type"],
    &["description"],
    &["external_url"],
    &["maxIterations"],
    &[],
    &["container_image", "maxOutputTokens"],
];

/// A text that is a JSON object by rule 1 of docs/market.md section 3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document<'a> {
    tape: Tape<'a>,
}

/// What the chain keeps of an agent's version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// The name, which makes the agent's id with its owner.
    pub name: String,
    /// The version.
    pub version: Version,
    /// What runs it.
    pub executor: Executor,
    /// The tools that it uses, in the order of the text.
    pub tools: Vec<Tool>,
    /// Its methods, in the order of the text.
    pub methods: Vec<Method>,
    /// What its owner gets for each successful call.
    pub royalty: Amount,
}

impl Metadata {
    /// Whether the answers of two miners can be compared, if the agents among its tools are what
    /// [`Checked::pending`] asks.
    #[must_use]
    pub const fn is_deterministic(&self) -> bool {
        self.executor.is_deterministic()
    }
}

/// What a text alone decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// The metadata, or the first fault that needs no state to be seen.
    pub outcome: Result<Metadata, Fault>,
    /// What only the state knows, in the order of the rules. All of it comes before the fault, if there
    /// is one: the first that does not hold is the fault that is told.
    pub pending: Vec<Pending>,
}

/// A condition that only the state decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Where the condition comes from, as a JSON pointer.
    pub path: String,
    /// The rule of docs/market.md section 3 that is broken where it does not hold.
    pub rule: u8,
    /// What has to hold.
    pub question: Question,
}

/// What has to hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Question {
    /// The version has precedence over every earlier one of the agent.
    Newer(Version),
    /// The blob is final and not too large for a program.
    Program {
        /// Its id.
        blob_id: String,
    },
    /// The agent has that version, which is deterministic, and nests so that the new one nests at most
    /// [`NESTING_MAX`] deep.
    Nested {
        /// Its id.
        id: Hash,
        /// Its version.
        version: Version,
    },
}

/// What has to hold, for people.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer(version) => {
                write!(f, "{version} is greater than every earlier version of this agent")
            }
            Self::Program { blob_id } => {
                write!(f, "the blob {blob_id} is final, of at most {PROGRAM_BYTES_MAX} bytes")
            }
            Self::Nested { id, version } => write!(
                f,
                "the agent {id} has the version {version}, which is deterministic, and agents nest at \
                 most {NESTING_MAX} deep with this one"
            ),
        }
    }
}

/// What the metadata of an agent that asks a language model says of its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelWork {
    /// The most rounds of the model and its tools.
    pub rounds: u64,
    /// The most tokens of one answer of the model.
    pub output_tokens: u64,
    /// The bytes of the prompt that is read before each payload.
    pub prompt_bytes: u64,
}

impl ModelWork {
    /// Tokens of turns and tools beside the texts, in each round.
    const TOKENS_BESIDE: u64 = 512;

    /// About the most that a call with so large a payload takes: a byte is a token at most, and each round
    /// reads what those before it wrote.
    #[must_use]
    pub const fn usage(&self, payload_bytes: u64) -> Usage {
        let Self { rounds, output_tokens, prompt_bytes } = *self;
        let texts = prompt_bytes.saturating_add(payload_bytes).saturating_add(Self::TOKENS_BESIDE);
        let written = output_tokens.saturating_mul(rounds);
        let read_again = written.saturating_mul(rounds.saturating_sub(1)) / 2;
        Usage {
            input_tokens: texts.saturating_mul(rounds).saturating_add(read_again),
            output_tokens: written,
            fuel: 0,
        }
    }
}

impl<'a> Document<'a> {
    /// Reads a text by rule 1.
    ///
    /// # Errors
    /// A [`Fault`] of rule 1.
    pub fn read(text: &'a [u8]) -> Result<Self, Fault> {
        if text.len() > METADATA_BYTES_MAX {
            let expected = format!("at most {METADATA_BYTES_MAX} bytes");
            let found = format!("{} bytes", text.len());
            return Err(Fault { path: String::new(), rule: 1, expected, found });
        }
        let tape = parse_tape(text, Manner { depth_max: DEPTH_MAX, known: KNOWN })?;
        Spot { place: &Place::OUTERMOST, value: tape.value(), rule: 1 }.members(&[])?;
        Ok(Self { tape })
    }

    /// The name, if it is a string: the agent's id is made of it, and checked before the other rules.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.members()?.find("name").and_then(Value::as_str)
    }

    /// The description, if it is a string.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.members()?.find("description").and_then(Value::as_str)
    }

    /// The tags that are strings.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self.members().and_then(|it| it.find("tags")).and_then(Value::items);
        tags.into_iter().flatten().filter_map(Value::as_str)
    }

    /// What it says of the work of a `model` agent; none of another one.
    #[must_use]
    pub fn model_work(&self) -> Option<ModelWork> {
        let executor = self.members()?.find("executor")?.members()?;
        let number = |key| executor.find(key)?.as_number()?.parse().ok();
        let prompt = executor.find("basePrompt")?.as_str()?;
        Some(ModelWork {
            rounds: number("maxIterations")?,
            output_tokens: number("maxOutputTokens")?,
            prompt_bytes: u64::try_from(prompt.len()).unwrap_or(u64::MAX),
        })
    }

    /// Checks what the text alone decides of rules 2 to 7.
    #[must_use]
    pub fn check(&self, royalty_max: Amount) -> Checked {
        let mut pending = Vec::new();
        let outcome = self.metadata(royalty_max, &mut pending);
        Checked { outcome, pending }
    }

    fn metadata(&self, royalty_max: Amount, pending: &mut Vec<Pending>) -> Result<Metadata, Fault> {
        let value = self.tape.value();
        let document = Spot { place: &Place::OUTERMOST, value, rule: 2 };
        let described = describe::required(document, pending)?;
        let members = document.members(&[])?;
        describe::optional(members)?;
        let methods = methods::read(members)?;
        let (executor, tools) = run::executor(document, pending)?;
        let royalty = run::royalty(members, royalty_max)?;
        let describe::Required { name, version } = described;
        Ok(Metadata { name, version, executor, tools, methods, royalty })
    }

    fn members(&self) -> Option<Members<'_>> {
        self.tape.value().members()
    }
}
