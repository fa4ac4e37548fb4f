//! Tools about dates. Times are UTC unless a text gives an offset; there are no time zones by name,
//! whose rules differ between machines.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::civil::{Date, DateTime, Weekday};
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit, Zoned};
use serde_json::{Map, Value, json};

use super::definition::{spec, terms, text};
use super::hashes::canonical_json;
use super::ports::Clock;
use super::tool::{Class, Failure, Terms, Tool};
use crate::messages::ToolSpec;

/// The forms of a date.
const FORMS: &str = "a date such as 2026-11-22, 2026-11-22T17:35:00Z, 2026-11-22T17:35:00+02:00, \
     Sun, 22 Nov 2026 17:35:00 GMT, or seconds since 1970";

/// The tools, with this clock.
pub(super) fn tools(clock: &Arc<dyn Clock>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Now { spec: now_spec(), clock: Arc::clone(clock) }),
        Arc::new(DateParse { spec: parse_spec() }),
        Arc::new(DateDiff { spec: diff_spec() }),
    ]
}

fn date(what: &str) -> Value {
    json!({"type": "string", "maxLength": 100, "description": format!("{what}: {FORMS}")})
}

fn now_spec() -> ToolSpec {
    spec("now", "The time now, in UTC.", &json!({}), &[])
}

pub(super) fn parse_spec() -> ToolSpec {
    let what = "Reads a date: in UTC, in milliseconds since 1970, with its weekday.";
    spec("date_parse", what, &json!({"text": date("the date")}), &["text"])
}

pub(super) fn diff_spec() -> ToolSpec {
    let what = "How long it is from one date to another: in seconds, in whole days, and in years, \
                months and days.";
    let properties = json!({"from": date("the first date"), "to": date("the second date")});
    spec("date_diff", what, &properties, &["from", "to"])
}

/// The time now.
#[derive(Debug)]
struct Now {
    spec: ToolSpec,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Tool for Now {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn terms(&self) -> Terms {
        terms(Class::Volatile)
    }

    async fn call(&self, _: &Map<String, Value>) -> Result<String, Failure> {
        let ms = i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX);
        let now = Timestamp::from_millisecond(ms)
            .map_err(|_unread| Failure::failed("the miner's clock is wrong"))?;
        Ok(described(now))
    }
}

/// Reads a date.
#[derive(Debug)]
struct DateParse {
    spec: ToolSpec,
}

#[async_trait]
impl Tool for DateParse {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn terms(&self) -> Terms {
        terms(Class::Pure)
    }

    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure> {
        parse_date(arguments)
    }
}

/// The result of `date_parse`, which depends on the arguments alone.
pub(super) fn parse_date(arguments: &Map<String, Value>) -> Result<String, Failure> {
    parsed(arguments, "text").map(described)
}

/// How long it is between two dates.
#[derive(Debug)]
struct DateDiff {
    spec: ToolSpec,
}

#[async_trait]
impl Tool for DateDiff {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn terms(&self) -> Terms {
        terms(Class::Pure)
    }

    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure> {
        date_difference(arguments)
    }
}

/// The result of `date_diff`, which depends on the arguments alone.
pub(super) fn date_difference(arguments: &Map<String, Value>) -> Result<String, Failure> {
    difference(parsed(arguments, "from")?, parsed(arguments, "to")?)
}

/// The argument of this name as a time.
fn parsed(arguments: &Map<String, Value>, name: &str) -> Result<Timestamp, Failure> {
    let given = text(arguments, name);
    parse(given.trim()).ok_or_else(|| Failure::argument(name, given, FORMS))
}

/// A time written in one of [`FORMS`].
fn parse(text: &str) -> Option<Timestamp> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    // Eight digits are a date without hyphens, as ISO 8601 has it.
    if digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() != 8 {
        return Timestamp::from_second(text.parse().ok()?).ok();
    }
    // A zone's name in brackets would be looked up on this machine.
    if text.contains('[') {
        return None;
    }
    let in_utc = |time: DateTime| TimeZone::UTC.to_timestamp(time).ok();
    text.parse::<Timestamp>()
        .ok()
        .or_else(|| rfc2822::DateTimeParser::new().parse_timestamp(text).ok())
        .or_else(|| in_utc(text.parse::<DateTime>().ok()?))
        .or_else(|| in_utc(text.parse::<Date>().ok()?.at(0, 0, 0, 0)))
}

fn described(time: Timestamp) -> String {
    let civil = in_utc(time).datetime();
    let weekday = match civil.weekday() {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    };
    let value = json!({
        "utc": time.to_string(),
        "unixMs": time.as_millisecond(),
        "weekday": weekday,
        "dayOfYear": civil.day_of_year(),
    });
    canonical_json(&value)
}

fn in_utc(time: Timestamp) -> Zoned {
    time.to_zoned(TimeZone::UTC)
}

const SECONDS_PER_DAY: i64 = 86_400;

fn difference(from: Timestamp, to: Timestamp) -> Result<String, Failure> {
    let too_far = |_| Failure::failed("the dates are too far apart");
    let whole_seconds = from.until((Unit::Second, to)).map_err(too_far)?.get_seconds();
    let calendar = in_utc(from).datetime();
    let span = calendar.until((Unit::Year, in_utc(to).datetime())).map_err(too_far)?;
    let value = json!({
        "seconds": whole_seconds,
        "days": whole_seconds / SECONDS_PER_DAY,
        "years": span.get_years(),
        "months": span.get_months(),
        "monthDays": span.get_days(),
    });
    Ok(canonical_json(&value))
}

#[cfg(test)]
mod tests;
