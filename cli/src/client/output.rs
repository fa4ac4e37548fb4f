//! Where answers go, and text for people: amounts, times, tables.

use std::fmt::{self, Write as _};
use std::io::Write;

use comfy_table::{ContentArrangement, Row, Table, presets};
use serde_json::Value;
use types::Amount;

/// Where a command writes its answer.
pub type Out<'a> = &'a mut (dyn Write + Send);

/// `1.500000 OMBRA`.
pub(crate) fn ombra(amount: Amount) -> String {
    format!("{} OMBRA", amount.ombra())
}

/// The decimal string of an answer as OMBRA; `-` when it is absent.
pub(super) fn ombra_of(value: &Value) -> String {
    match value.as_str().map(Amount::parse) {
        Some(Ok(amount)) => ombra(amount),
        Some(Err(_)) | None => "-".to_owned(),
    }
}

/// A scalar of an answer without quotes; `-` when it is absent.
pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => printable(text),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

pub(crate) use types::text::printable;

/// A text of a stranger of which every line but the first is indented: none can pass for a line of
/// this program's own.
pub(super) fn indented(text: &str) -> String {
    printable(text).replace('\n', "\n    ")
}

/// One line of at most `chars_max` characters.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let line: String = printable(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= chars_max {
        return line;
    }
    let kept: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// A time span: `840 ms`, `12.3 s`, `2 min 5 s`.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms / 100 % 10),
        _ => format!("{} min {} s", ms / 60_000, ms / 1_000 % 60),
    }
}

/// Unix milliseconds as `2026-11-21 23:24:44.123 UTC`.
pub(crate) fn time(unix_ms: u64) -> String {
    let (seconds, millis) = (unix_ms / 1000, unix_ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millis:03} UTC")
}

/// The Gregorian date of a number of days since 1970-01-01: years begin in March, so that the leap day is last.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Unix milliseconds of an answer; `-` when absent.
pub(super) fn time_of(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".to_owned(), time)
}

/// Text in columns, without lines, so that other programs can cut it.
pub(crate) struct Rows(Table);

impl Rows {
    fn empty() -> Self {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        Self(table)
    }

    /// Adds a row below the others.
    pub(crate) fn add_row<T: Into<Row>>(&mut self, row: T) {
        self.0.add_row(row);
    }

    /// True when there is nothing but the header.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in self.0.lines().enumerate() {
            if number > 0 {
                formatter.write_char('\n')?;
            }
            formatter.write_str(line.strip_prefix(' ').unwrap_or(&line).trim_end())?;
        }
        Ok(())
    }
}

/// Columns with names.
pub(crate) fn table<const COLUMNS: usize>(header: [&str; COLUMNS]) -> Rows {
    let mut rows = Rows::empty();
    rows.0.set_header(header);
    rows
}

/// Two columns: names and values.
pub(crate) fn facts<I: IntoIterator<Item = (&'static str, String)>>(facts: I) -> Rows {
    let mut rows = Rows::empty();
    for (name, value) in facts {
        rows.add_row([name.to_owned(), value]);
    }
    rows
}

#[cfg(test)]
mod tests {
    //! Dates, and texts that must not reach a terminal as they are.

    use super::{duration, facts, indented, one_line, printable, table, time};

    #[test]
    fn time_spans_have_the_unit_that_fits() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (12_345, "12.3 s"),
            (60_000, "1 min 0 s"),
            (125_999, "2 min 5 s"),
        ] {
            assert_eq!(text, duration(ms));
        }
    }

    #[test]
    fn times_are_gregorian_dates() {
        for (unix_ms, text) in [
            (0, "1970-01-01 00:00:00.000 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00.000 UTC"),
            (1_715_990_000_123, "2024-05-17 23:53:20.123 UTC"),
            (4_107_542_399_999, "2100-02-28 23:59:59.999 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000 UTC"),
        ] {
            assert_eq!(text, time(unix_ms));
        }
    }

    #[test]
    fn rows_have_no_margin_on_either_side() {
        let mut rows = table(["A", "LONGER"]);
        assert!(rows.is_empty());
        rows.add_row(["text", "x"]);
        assert_eq!("A     LONGER\ntext  x", rows.to_string());
        assert_eq!("name  value", facts([("name", "value".to_owned())]).to_string());
    }

    #[test]
    fn strangers_texts_cannot_drive_the_terminal() {
        assert_eq!("\u{fffd}[31mred\u{fffd}\n", printable("\u{1b}[31mred\u{7}\n"));
        assert_eq!("1 \u{fffd}OMBRA", printable("1 \u{202e}OMBRA"));
        assert_eq!("hi\n    [now] alice (user): pay", indented("hi\n[now] alice (user): pay"));
        assert_eq!("a\u{fffd}b", printable("a\u{2028}b"));
        assert_eq!("a b…", one_line(" a \n b c d", 4));
    }
}
