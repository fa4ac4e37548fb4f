//! What an execution has used of what its call allows.

use std::fmt;

use types::Usage;

/// A limit of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Tokens that models read.
    InputTokens,
    /// Tokens that models choose.
    OutputTokens,
    /// Units of fuel.
    Fuel,
    /// Bytes of the result.
    ResultBytes,
}

impl Limit {
    /// Its name in the `limits` of a call.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InputTokens => "inputTokens",
            Self::OutputTokens => "outputTokens",
            Self::Fuel => "fuel",
            Self::ResultBytes => "resultBytes",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the limit {} of the call is reached", self.as_str())
    }
}

/// Counts usage against limits. Agents that are nested count on the meter of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meter {
    limits: Usage,
    used: Usage,
}

impl Meter {
    /// Nothing is used yet.
    #[must_use]
    pub const fn new(limits: Usage) -> Self {
        Self { limits, used: Usage { input_tokens: 0, output_tokens: 0, fuel: 0 } }
    }

    /// What the call allows.
    #[must_use]
    pub const fn limits(&self) -> Usage {
        self.limits
    }

    /// What was used.
    #[must_use]
    pub const fn used(&self) -> Usage {
        self.used
    }

    /// What is left.
    #[must_use]
    pub const fn left(&self) -> Usage {
        let (limits, used) = (self.limits, self.used);
        Usage {
            input_tokens: limits.input_tokens.saturating_sub(used.input_tokens),
            output_tokens: limits.output_tokens.saturating_sub(used.output_tokens),
            fuel: limits.fuel.saturating_sub(used.fuel),
        }
    }

    /// Counts usage.
    ///
    /// # Errors
    /// The first limit that would be passed; nothing is counted then.
    pub fn add(&mut self, usage: Usage) -> Result<(), Limit> {
        let left = self.left();
        if usage.input_tokens > left.input_tokens {
            return Err(Limit::InputTokens);
        }
        if usage.output_tokens > left.output_tokens {
            return Err(Limit::OutputTokens);
        }
        if usage.fuel > left.fuel {
            return Err(Limit::Fuel);
        }
        self.used.input_tokens = self.used.input_tokens.saturating_add(usage.input_tokens);
        self.used.output_tokens = self.used.output_tokens.saturating_add(usage.output_tokens);
        self.used.fuel = self.used.fuel.saturating_add(usage.fuel);
        Ok(())
    }
}
