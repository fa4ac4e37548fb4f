//! Dates that are read, and those that are not.

use crate::tools::tests::support::{said, toolbox};

#[tokio::test]
async fn now_is_what_the_clock_says() {
    let now = r#"{"dayOfYear":326,"unixMs":1795368900123,"utc":"2026-11-22T17:35:00.123Z","weekday":"Sunday"}"#;
    assert_eq!(said(&toolbox(""), "now", "{}").await, now);
}

#[tokio::test]
async fn dates_are_read_in_every_form_that_is_named() {
    let toolbox = toolbox("");
    let cases = [
        ("2026-11-22", "2026-11-22T00:00:00Z"),
        ("2026-11-22T17:35:00Z", "2026-11-22T17:35:00Z"),
        ("2026-11-22T17:35:00", "2026-11-22T17:35:00Z"),
        ("2026-11-22 17:35", "2026-11-22T17:35:00Z"),
        ("2026-11-22T17:35:00+02:00", "2026-11-22T15:35:00Z"),
        ("Sun, 22 Nov 2026 17:35:00 +0100", "2026-11-22T16:35:00Z"),
        ("Sun, 22 Nov 2026 17:35:00 GMT", "2026-11-22T17:35:00Z"),
        ("20261122", "2026-11-22T00:00:00Z"),
        ("1795368900", "2026-11-22T17:35:00Z"),
        ("-1", "1969-12-31T23:59:59Z"),
        (" 2024-02-29 ", "2024-02-29T00:00:00Z"),
    ];
    for (text, utc) in cases {
        let result = said(&toolbox, "date_parse", &format!(r#"{{"text": "{text}"}}"#)).await;
        assert!(result.contains(&format!(r#""utc":"{utc}""#)), "{text}: {result}");
    }
}

#[tokio::test]
async fn what_is_no_date_is_refused_with_the_forms() {
    let toolbox = toolbox("");
    let cases = [
        "",
        "-",
        "tomorrow",
        "2026-02-30",
        "2026-13-01",
        "22.11.2026",
        "99999999999999999999",
        "2026-11-22T17:35:00[Europe/Rome]",
        "2026-11-22T17:35:00+01:00[Europe/Rome]",
        "10000-01-01",
    ];
    for text in cases {
        let result = said(&toolbox, "date_parse", &format!(r#"{{"text": "{text}"}}"#)).await;
        let start = format!("bad_arguments: argument text is {text:?}: expected a date such as ");
        assert!(result.starts_with(&start), "{result}");
    }
}

#[tokio::test]
async fn the_time_between_dates_is_counted_in_seconds_days_and_by_the_calendar() {
    let toolbox = toolbox("");
    let difference = |seconds: i64, days: i64, (years, months, month_days): (i8, i8, i8)| {
        format!(
            r#"{{"days":{days},"monthDays":{month_days},"months":{months},"seconds":{seconds},"years":{years}}}"#
        )
    };
    let cases = [
        ("2024-02-28", "2024-03-01", difference(172_800, 2, (0, 0, 2))),
        ("2024-01-31", "2024-03-01", difference(2_592_000, 30, (0, 1, 1))),
        ("2020-02-29", "2026-11-22", difference(212_371_200, 2458, (6, 8, 24))),
        ("2026-01-01T00:00:00Z", "2025-12-31T23:00:00Z", difference(-3600, 0, (0, 0, 0))),
        ("2026-01-02", "2025-01-01", difference(-31_622_400, -366, (-1, 0, -1))),
        ("2026-01-01", "2026-01-01", difference(0, 0, (0, 0, 0))),
    ];
    for (from, to, expected) in cases {
        let arguments = format!(r#"{{"from": "{from}", "to": "{to}"}}"#);
        assert_eq!(said(&toolbox, "date_diff", &arguments).await, expected, "{from} {to}");
    }
    let wrong = said(&toolbox, "date_diff", r#"{"from": "2026-01-01", "to": "x"}"#).await;
    assert!(wrong.starts_with("bad_arguments: argument to is \"x\""), "{wrong}");
}
