//! The names of the methods and of their arguments.

use std::fmt;

/// One of the five methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// A text, or one of some texts.
    InferString,
    /// A whole number.
    InferNumber,
    /// The next message of a conversation.
    InferChat,
    /// The next message of a conversation, with tools.
    InferToolsChat,
    /// The next message of a conversation, with functions and schemas as chat programs have them.
    InferMessages,
}

impl Method {
    /// Every method, in the order of docs/agent-methods.md section 3.
    pub const ALL: [Self; 5] = [
        Self::InferString,
        Self::InferNumber,
        Self::InferChat,
        Self::InferToolsChat,
        Self::InferMessages,
    ];

    /// The name in an envelope.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InferString => "inferString",
            Self::InferNumber => "inferNumber",
            Self::InferChat => "inferChat",
            Self::InferToolsChat => "inferToolsChat",
            Self::InferMessages => "inferMessages",
        }
    }

    /// The method of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Its arguments in the order in which they are written. Every one must be there, but for
    /// `responseSchema`, `maxOutputTokens` and `stop`.
    #[must_use]
    pub const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::InferString => &["prompt", "system", "chainOfThought", "allowedValues"],
            Self::InferNumber => &["prompt", "system", "minValue", "maxValue", "chainOfThought"],
            Self::InferChat => &["roles", "messages", "chainOfThought"],
            Self::InferToolsChat => &[
                "roles",
                "messages",
                "mcpServerUrls",
                "onchainTools",
                "maxIterations",
                "chainOfThought",
            ],
            Self::InferMessages => &[
                "messages",
                "functions",
                "toolChoice",
                "responseSchema",
                "maxOutputTokens",
                "stop",
            ],
        }
    }

    /// The names, for messages.
    pub(super) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
