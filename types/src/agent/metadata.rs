//! The metadata of an agent: a text that is parsed by rule 1 and checked by the other rules, and
//! what the chain keeps of it.

use super::fault::Spot;
use super::limits::METADATA_BYTES_MAX;
use super::pending::Pending;
use super::{Executor, MetadataFault, Tool, Version};
use super::{describe, methods, run};
use crate::abi::Method;
use crate::json::{JsonPlace, Manner, Members, Tape, Value, parse_tape};
use crate::{Amount, Usage};

/// How deep a text may nest. The outermost object counts as 1.
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

/// A text that is a JSON object according to rule 1 of docs/market.md section 3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document<'a> {
    tape: Tape<'a>,
}

/// What the chain keeps of a version of an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// The name. Together with the owner, it determines the agent's id.
    pub name: String,
    /// The version.
    pub version: Version,
    /// What runs the agent.
    pub executor: Executor,
    /// The tools that the agent uses, in the order of the text.
    pub tools: Vec<Tool>,
    /// The methods, in the order of the text.
    pub methods: Vec<Method>,
    /// The royalty that the owner gets for each successful call.
    pub royalty: Amount,
}

impl Metadata {
    /// Whether the answers of different miners can be compared, provided that the agents among the
    /// tools meet the conditions in [`Checked::pending`].
    #[must_use]
    pub const fn is_deterministic(&self) -> bool {
        self.executor.is_deterministic()
    }
}

/// The result of the checks that need only the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// The metadata, or the first fault that the text alone shows.
    pub outcome: Result<Metadata, MetadataFault>,
    /// The conditions that only the state can decide, in the order of the rules. All of them come
    /// before the fault, if there is one: the first condition that does not hold is the fault to
    /// report.
    pub pending: Vec<Pending>,
}

/// The work of an agent that asks a language model, according to its metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelWork {
    /// The most rounds of the model and its tools.
    pub rounds: u64,
    /// The most tokens in one answer of the model.
    pub output_tokens: u64,
    /// The size in bytes of the prompt that the model reads before each payload.
    pub prompt_bytes: u64,
}

impl ModelWork {
    /// The tokens that each round needs for turns and tools, in addition to the texts.
    const TOKENS_BESIDE: u64 = 512;

    /// An estimate of the most work that a call with a payload of this size takes. A byte is at
    /// most one token, and each round reads what the earlier rounds wrote.
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
    /// Parses a text by rule 1.
    ///
    /// # Errors
    /// A [`MetadataFault`] of rule 1.
    pub fn read(text: &'a [u8]) -> Result<Self, MetadataFault> {
        if text.len() > METADATA_BYTES_MAX {
            let expected = format!("at most {METADATA_BYTES_MAX} bytes");
            let found = format!("{} bytes", text.len());
            return Err(MetadataFault { path: String::new(), rule: 1, expected, found });
        }
        let tape = parse_tape(text, Manner { depth_max: DEPTH_MAX, known: KNOWN })?;
        Spot { place: &JsonPlace::OUTERMOST, value: tape.value(), rule: 1 }.members(&[])?;
        Ok(Self { tape })
    }

    /// The name, if it is a string. The chain checks the agent's id, which depends on the name,
    /// before the other rules.
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

    /// The work of an agent of kind `model`; `None` for other kinds.
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

    /// Checks rules 2 to 7 as far as the text alone decides them.
    #[must_use]
    pub fn check(&self, royalty_max: Amount) -> Checked {
        let mut pending = Vec::new();
        let outcome = self.metadata(royalty_max, &mut pending);
        Checked { outcome, pending }
    }

    fn metadata(
        &self,
        royalty_max: Amount,
        pending: &mut Vec<Pending>,
    ) -> Result<Metadata, MetadataFault> {
        let value = self.tape.value();
        let document = Spot { place: &JsonPlace::OUTERMOST, value, rule: 2 };
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
