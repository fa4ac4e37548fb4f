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
    /// What the receipt may hold of what an agent asked and was told.
    Receipt,
}

/// The most bytes that the receipt of a call holds of what agents asked of tools and of each other, what
/// they were told, and what they logged. Without a bound a program could fill the memory of every member
/// for next to no fuel (docs/market.md section 9.2).
const RECEIPT_BYTES_MAX: u64 = 2 * 1_024 * 1_024;

impl Limit {
    /// Its name in the `limits` of a call.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InputTokens => "inputTokens",
            Self::OutputTokens => "outputTokens",
            Self::Fuel => "fuel",
            Self::ResultBytes => "resultBytes",
            Self::Receipt => "receipt",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(self, Self::Receipt) {
            return f.write_str("the receipt of the call is full");
        }
        write!(f, "the limit {} of the call is reached", self.as_str())
    }
}

/// Counts usage against limits. Agents that are nested count on the meter of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meter {
    limits: Usage,
    used: Usage,
    /// Bytes in the receipt.
    receipt: u64,
}

impl Meter {
    /// Nothing is used yet.
    #[must_use]
    pub const fn new(limits: Usage) -> Self {
        Self { limits, used: Usage { input_tokens: 0, output_tokens: 0, fuel: 0 }, receipt: 0 }
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

    /// Counts bytes that go into the receipt.
    ///
    /// # Errors
    /// [`Limit::Receipt`] if there is no room for them.
    pub fn record(&mut self, bytes: usize) -> Result<(), Limit> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let after = self.receipt.saturating_add(bytes);
        if after > RECEIPT_BYTES_MAX {
            return Err(Limit::Receipt);
        }
        self.receipt = after;
        Ok(())
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
