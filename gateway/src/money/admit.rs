//! Whether a request fits what its key may spend.

use super::limits::{Day, Limits, Period, Tally};

/// What a request wants.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The time, milliseconds since 1970.
    pub now_ms: u64,
    /// The model that is asked.
    pub model: &'a str,
    /// The most that it can cost, micro-OMBRA.
    pub micro: u64,
}

/// What is counted of the key: ever, and on the day of the request.
#[derive(Clone, Copy, Debug)]
pub struct KeyUsage<'a> {
    /// Ever.
    pub tally: &'a Tally,
    /// On the day of the request.
    pub day: &'a Day,
}

/// Why a request does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The key is too old.
    #[error("the key has expired")]
    Expired,
    /// The key may not ask this model.
    #[error("the key may not use the model {model:?}; it may use {}", may.join(", "))]
    Model {
        /// Which.
        model: String,
        /// The patterns of those that it may ask.
        may: Vec<String>,
    },
    /// One request is too dear.
    #[error(
        "the request may cost up to {micro} micro-OMBRA, but the key allows {most_micro} for one \
         request"
    )]
    PerRequest {
        /// What it may cost.
        micro: u64,
        /// What the key allows.
        most_micro: u64,
    },
    /// Too many requests at once.
    #[error("the key has {most} requests under way, which is its limit")]
    Parallel {
        /// How many it may have.
        most: u64,
    },
    /// Too many requests in 60 seconds.
    #[error("the key may make {most} requests in 60 seconds")]
    Rate {
        /// How many it may make.
        most: u64,
        /// After how many milliseconds another may come.
        retry_ms: u64,
    },
    /// The budget does not have so much left.
    #[error(
        "the request may cost up to {micro} micro-OMBRA, but the budget of the key has \
         {left_micro} left{}", of_period(*per)
    )]
    Budget {
        /// What it may cost.
        micro: u64,
        /// What is left.
        left_micro: u64,
        /// Of which time.
        per: Period,
    },
}

const fn of_period(per: Period) -> &'static str {
    match per {
        Period::Day => " of today (UTC)",
        Period::Ever => "",
    }
}

/// Whether a request fits. The reasons come in the order of [`Refused`].
///
/// # Errors
/// The first reason why it does not.
pub fn admit(limits: &Limits, standing: KeyUsage<'_>, demand: Demand<'_>) -> Result<(), Refused> {
    let KeyUsage { tally, day } = standing;
    let Demand { now_ms, model, micro } = demand;
    if limits.expires_ms.is_some_and(|end| now_ms >= end) {
        return Err(Refused::Expired);
    }
    if !limits.models.is_empty() && !limits.models.iter().any(|it| it.matches(model)) {
        let may = limits.models.iter().map(|pattern| pattern.0.clone()).collect();
        return Err(Refused::Model { model: model.to_owned(), may });
    }
    if let Some(most_micro) = limits.per_request_micro.filter(|most| micro > *most) {
        return Err(Refused::PerRequest { micro, most_micro });
    }
    if let Some(most) = limits.parallel.filter(|most| tally.open >= *most) {
        return Err(Refused::Parallel { most });
    }
    let full = limits.rpm.map(|most| (most, tally.window.full_ms(now_ms, most)));
    if let Some((most, Some(retry_ms))) = full {
        return Err(Refused::Rate { most, retry_ms });
    }
    match left_micro(limits, standing) {
        Some((left_micro, per)) if micro > left_micro => {
            Err(Refused::Budget { micro, left_micro, per })
        }
        Some(_) | None => {
            debug_assert!(
                day.reserved_micro <= tally.reserved_micro,
                "days are parts of the whole"
            );
            Ok(())
        }
    }
}

/// What a key's budget has left, what is reserved counted as spent; none if it has no budget.
fn left_micro(limits: &Limits, standing: KeyUsage<'_>) -> Option<(u64, Period)> {
    let budget = limits.budget?;
    let (spent, reserved) = match budget.per {
        Period::Day => (standing.day.spent_micro, standing.day.reserved_micro),
        Period::Ever => (standing.tally.spent_micro, standing.tally.reserved_micro),
    };
    Some((budget.micro.saturating_sub(spent).saturating_sub(reserved), budget.per))
}

impl Limits {
    /// What the budget has left, micro-OMBRA; none if there is no budget.
    #[must_use]
    pub fn left_micro(&self, standing: KeyUsage<'_>) -> Option<u64> {
        left_micro(self, standing).map(|(left, _)| left)
    }
}
