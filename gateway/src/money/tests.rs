//! What fits the limits of a key.

use super::{
    Budget, Day, Demand, KeyUsage, Limits, Pattern, Period, Refused, Tally, Window, admit,
};

const NOW_MS: u64 = 1_800_000_030_000;

fn demand(micro: u64) -> Demand<'static> {
    Demand { now_ms: NOW_MS, model: "ombra", micro }
}

fn judged(limits: &Limits, tally: &Tally, day: &Day, micro: u64) -> Result<(), Refused> {
    admit(limits, KeyUsage { tally, day }, demand(micro))
}

#[test]
fn a_key_without_limits_may_ask_for_anything() {
    let (tally, day) = (Tally::default(), Day::default());
    assert_eq!(Ok(()), judged(&Limits::default(), &tally, &day, u64::MAX));
}

#[test]
fn refusals_come_in_their_order() {
    let (tally, day) = (Tally { open: 2, ..Tally::default() }, Day::default());
    let window = Window { minute: NOW_MS / 60_000, count: 5, before: 0 };
    let tally = Tally { window, ..tally };
    let mut limits = Limits {
        budget: Some(Budget { micro: 10, per: Period::Day }),
        per_request_micro: Some(10),
        rpm: Some(5),
        parallel: Some(2),
        expires_ms: Some(NOW_MS),
        models: vec![Pattern("agent:*".to_owned())],
        strict: false,
    };
    let model = Refused::Model { model: "ombra".to_owned(), may: vec!["agent:*".to_owned()] };
    assert_eq!(Err(Refused::Expired), judged(&limits, &tally, &day, 11));
    limits.expires_ms = Some(NOW_MS + 1);
    assert_eq!(Err(model), judged(&limits, &tally, &day, 11));
    limits.models.push(Pattern("ombra".to_owned()));
    let dear = Refused::PerRequest { micro: 11, most_micro: 10 };
    assert_eq!(Err(dear), judged(&limits, &tally, &day, 11));
    limits.per_request_micro = None;
    assert_eq!(Err(Refused::Parallel { most: 2 }), judged(&limits, &tally, &day, 11));
    limits.parallel = Some(3);
    let rate = Refused::Rate { most: 5, retry_ms: 30_000 };
    assert_eq!(Err(rate), judged(&limits, &tally, &day, 11));
    limits.rpm = Some(6);
    let budget = Refused::Budget { micro: 11, left_micro: 10, per: Period::Day };
    assert_eq!(Err(budget), judged(&limits, &tally, &day, 11));
    assert_eq!(Ok(()), judged(&limits, &tally, &day, 10));
}

#[test]
fn what_is_reserved_is_not_there_a_second_time() {
    let limits = |per| Limits { budget: Some(Budget { micro: 100, per }), ..Limits::default() };
    let day = Day { requests: 3, spent_micro: 30, reserved_micro: 20 };
    let tally = Tally { spent_micro: 60, reserved_micro: 20, ..Tally::default() };
    for (per, left) in [(Period::Day, 50), (Period::Ever, 20)] {
        assert_eq!(Ok(()), judged(&limits(per), &tally, &day, left));
        let refused = Refused::Budget { micro: left + 1, left_micro: left, per };
        assert_eq!(Err(refused), judged(&limits(per), &tally, &day, left + 1));
        assert_eq!(Some(left), limits(per).left_micro(KeyUsage { tally: &tally, day: &day }));
    }
    // A budget that was made smaller than what is spent has nothing left.
    let poor = Limits { budget: Some(Budget { micro: 1, per: Period::Ever }), ..Limits::default() };
    assert_eq!(Some(0), poor.left_micro(KeyUsage { tally: &tally, day: &day }));
}

#[test]
fn the_minute_before_counts_as_far_as_it_is_less_than_60_seconds_ago() {
    let window = Window { minute: 10, count: 60, before: 60 };
    for (now_ms, requests) in
        [(600_000, 120), (630_000, 90), (659_999, 61), (660_000, 60), (690_000, 30), (720_000, 0)]
    {
        assert_eq!(requests, window.at(now_ms).requests(now_ms), "{now_ms}");
    }
    assert_eq!(1, Window::default().at(600_000).and_one().requests(600_000));
}

#[test]
fn a_star_stands_for_any_characters() {
    for (pattern, name, matches) in [
        ("ombra", "ombra", true),
        ("ombra", "ombra:qwen", false),
        ("ombra*", "ombra:qwen", true),
        ("agent:*", "agent:ab@1.0", true),
        ("agent:*@1.*", "agent:ab@1.0", true),
        ("agent:*@1.*", "agent:ab@2.0", false),
        ("*", "", true),
        ("a*a", "a", false),
        ("*b*b", "abcb", true),
        ("", "a", false),
    ] {
        assert_eq!(matches, Pattern(pattern.to_owned()).matches(name), "{pattern} {name}");
    }
}
