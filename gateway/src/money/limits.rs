//! The limits of a key, and what is counted against them.

use serde::{Deserialize, Serialize};

/// Milliseconds of the window in which requests are counted.
pub(super) const WINDOW_MS: u64 = 60_000;

/// For how long a budget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// A day (UTC).
    Day,
    /// The whole life of the key.
    Ever,
}

impl Period {
    /// The period that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "day" => Some(Self::Day),
            "ever" => Some(Self::Ever),
            _ => None,
        }
    }

    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Ever => "ever",
        }
    }
}

/// How much may be spent in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Micro-OMBRA.
    pub micro: u64,
    /// In which time.
    pub per: Period,
}

/// Names of models: a text in which each `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern(pub String);

impl Pattern {
    /// Whether it means a name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let mut parts: Vec<&str> = parts.collect();
        let Some(last) = parts.pop() else { return rest.is_empty() };
        for part in parts {
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

/// What a key may do. What is not said is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// What may be spent in a day, or ever.
    pub budget: Option<Budget>,
    /// What one request may cost at most, micro-OMBRA.
    pub per_request_micro: Option<u64>,
    /// Requests in a minute.
    pub rpm: Option<u64>,
    /// Requests at once.
    pub parallel: Option<u64>,
    /// Until when the key is taken, milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// The models that may be asked; all of them if there are none.
    pub models: Vec<Pattern>,
    /// Whether parameters are refused that have no effect here.
    pub strict: bool,
}

/// What is counted of a key over all days.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tally {
    /// Requests that have not ended.
    pub open: u64,
    /// What ended requests have cost, micro-OMBRA.
    pub spent_micro: u64,
    /// What is reserved for those that have not ended, micro-OMBRA.
    pub reserved_micro: u64,
    /// Requests of the last minute.
    pub window: Window,
}

/// The same of one day, by the day on which a request was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Day {
    /// Requests.
    pub requests: u64,
    /// What they have cost, micro-OMBRA.
    pub spent_micro: u64,
    /// What is reserved for those that have not ended, micro-OMBRA.
    pub reserved_micro: u64,
}

/// Requests in a minute that moves: those of the minute before count as far as it is still part of the
/// last 60 seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Window {
    /// The minute, counted from 1970.
    pub minute: u64,
    /// Requests in it.
    pub count: u64,
    /// Requests in the minute before.
    pub before: u64,
}

impl Window {
    /// The same at a later moment.
    #[must_use]
    pub const fn at(self, now_ms: u64) -> Self {
        let minute = now_ms / WINDOW_MS;
        match minute.saturating_sub(self.minute) {
            0 => self,
            1 => Self { minute, count: 0, before: self.count },
            _ => Self { minute, count: 0, before: 0 },
        }
    }

    /// How many requests the last 60 seconds had, rounded up; `self` is of that moment.
    #[must_use]
    pub const fn requests(self, now_ms: u64) -> u64 {
        let left_ms = WINDOW_MS.saturating_sub(now_ms % WINDOW_MS);
        self.count.saturating_add(self.before.saturating_mul(left_ms).div_ceil(WINDOW_MS))
    }

    /// The same with one request more.
    #[must_use]
    pub const fn and_one(self) -> Self {
        Self { count: self.count.saturating_add(1), ..self }
    }
}
