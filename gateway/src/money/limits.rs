//! The limits of a key, and what is counted against them.

use serde::{Deserialize, Serialize};

/// Milliseconds of the window in which requests are counted.
pub(super) const WINDOW_MS: u64 = 60_000;
/// Requests that come within so many milliseconds are kept together, so that a window stays small.
const TOGETHER_MS: u64 = 500;

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
    /// Requests in 60 seconds.
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
    /// Requests of the last 60 seconds, if the key has a limit for them.
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

/// The requests of the last 60 seconds. Those that came within half a second count for as long as the last
/// of them, so there are never more than are allowed in any 60 seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// When requests came, milliseconds since 1970, and how many; the oldest first.
    pub requests: Vec<(u64, u64)>,
}

impl Window {
    /// Those that still count.
    fn at(&self, now_ms: u64) -> impl Iterator<Item = (u64, u64)> {
        // One far in the future was counted by a clock that was wrong.
        let counts = move |it: &(u64, u64)| it.0 < end_ms(now_ms) && now_ms < end_ms(it.0);
        self.requests.iter().copied().filter(counts)
    }

    /// For how many milliseconds there have been as many requests as there may be, or more; none if another
    /// may come now.
    #[must_use]
    pub fn full_ms(&self, now_ms: u64, most: u64) -> Option<u64> {
        let sum = |sum: u64, (_, count): (u64, u64)| sum.saturating_add(count);
        let mut left = self.at(now_ms).fold(0, sum);
        if left < most {
            return None;
        }
        for (ms, count) in self.at(now_ms) {
            left = left.saturating_sub(count);
            if left < most {
                return Some(end_ms(ms).saturating_sub(now_ms));
            }
        }
        // None may ever come.
        Some(WINDOW_MS)
    }

    /// The same with one request more, and without those that no longer count.
    #[must_use]
    pub fn and_one(&self, now_ms: u64) -> Self {
        let mut requests: Vec<(u64, u64)> = self.at(now_ms).collect();
        // Requests are not always written down in the order in which they came.
        let now_ms = requests.last().map_or(now_ms, |(ms, _)| now_ms.max(*ms));
        match requests.last_mut() {
            Some((ms, count)) if *ms / TOGETHER_MS == now_ms / TOGETHER_MS => {
                (*ms, *count) = (now_ms, count.saturating_add(1));
            }
            Some(_) | None => requests.push((now_ms, 1)),
        }
        Self { requests }
    }
}

/// When a request of this moment no longer counts.
const fn end_ms(ms: u64) -> u64 {
    ms.saturating_add(WINDOW_MS)
}
