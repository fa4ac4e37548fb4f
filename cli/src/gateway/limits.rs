//! What a client may spend, on the command line.

use clap::{Args, value_parser};
use gateway::money::{Budget, Limits, Pattern, Period};
use types::Amount;

use crate::client::input::amount;

/// What a client may spend.
#[derive(Args, Debug)]
pub(crate) struct LimitArgs {
    /// The budget, in micro-OMBRA or with unit (0.5ombra) [default: what the wallet has]
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    budget: Option<Amount>,
    /// The period of the budget: day (UTC) or ever
    #[arg(long, value_name = "TIME", value_parser = period, default_value = "day", requires = "budget")]
    per: Period,
    /// Highest cost of one request
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    per_request: Option<Amount>,
    /// Requests per minute
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    rpm: Option<u64>,
    /// Requests at the same time
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    parallel: Option<u64>,
    /// Models that the key may use, separated by commas; * matches any characters [default: all]
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    models: Vec<String>,
}

impl LimitArgs {
    /// The limits that they name.
    pub(crate) fn limits(self) -> Limits {
        Limits {
            budget: self.budget.map(|budget| Budget { micro: budget.get(), per: self.per }),
            per_request_micro: self.per_request.map(Amount::get),
            rpm: self.rpm,
            parallel: self.parallel,
            models: self.models.into_iter().map(Pattern).collect(),
            ..Limits::default()
        }
    }
}

fn period(text: &str) -> Result<Period, String> {
    Period::parse(text).ok_or_else(|| format!("{text:?}: expected day or ever"))
}
