//! Conversations, and how a model wants them written.

use sha2::{Digest as _, Sha256};

use crate::error::FileError;
use crate::gguf::Metadata;
use crate::tokenizer::{Token, Tokenizer};

/// The sha256 of the template of SmolLM2's instruct models, which is ChatML. A template is a
/// program in the file; it is not run, and its text only tells which of the forms below is meant.
const SMOLLM2: &str = "872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788";

const START: &str = "<|im_start|>";
const END: &str = "<|im_end|>";

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions.
    System,
    /// The one who asks.
    User,
    /// The model.
    Assistant,
    /// A tool: what it answered.
    Tool,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One turn of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<'a> {
    /// Who speaks.
    pub role: Role,
    /// What is said; any text.
    pub text: &'a str,
}

/// What a model reads before it answers. Made by [`crate::Model::prompt`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    tokens: Vec<Token>,
}

impl Prompt {
    /// The tokens.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The prompt with the beginning of the model's own turn, which it then goes on with.
    #[must_use]
    pub fn answered_with(mut self, tokenizer: &Tokenizer, beginning: &str) -> Self {
        self.tokens.extend(tokenizer.encode(beginning));
        self
    }
}

/// ChatML with the model's tokens: a turn is `<|im_start|>`, the role, a new line, the text,
/// `<|im_end|>` and a new line. The template puts a system turn of its maker's before conversations
/// without one; here nothing is read that the caller did not say.
#[derive(Debug)]
pub(crate) struct Template {
    start: Token,
    end: Token,
}

impl Template {
    pub(crate) fn read(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Self, FileError> {
        let text = metadata.text("tokenizer.chat_template")?;
        let found = const_hex::encode(Sha256::digest(text.as_bytes()));
        if found != SMOLLM2 {
            return Err(FileError::Template { found });
        }
        let control = |name| tokenizer.control(name).ok_or(FileError::MissingControl { name });
        Ok(Self { start: control(START)?, end: control(END)? })
    }

    #[expect(clippy::unused_self, reason = "other models will have other forms")]
    pub(crate) const fn name(&self) -> &'static str {
        "chatml"
    }

    pub(crate) fn prompt(&self, tokenizer: &Tokenizer, turns: &[Turn<'_>]) -> Prompt {
        let mut tokens = Vec::new();
        for Turn { role, text } in turns {
            tokens.push(self.start);
            tokens.extend(tokenizer.encode(&format!("{}\n{text}", role.name())));
            tokens.push(self.end);
            tokens.extend(tokenizer.encode("\n"));
        }
        tokens.push(self.start);
        tokens.extend(tokenizer.encode(&format!("{}\n", Role::Assistant.name())));
        Prompt { tokens }
    }
}
