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
    let window = Window { requests: vec![(NOW_MS - 30_000, 2), (NOW_MS - 10_000, 3)] };
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
fn no_60_seconds_have_more_requests_than_are_allowed() {
    const MOST: u64 = 6;
    let (mut window, mut came) = (Window::default(), Vec::new());
    // Bursts and pauses, beginning in the middle of a minute.
    let steps = [1, 1, 700, 1, 29_000, 3, 11_000, 250, 250, 9_000, 20_000, 499, 1].into_iter();
    let mut now_ms = NOW_MS;
    for step_ms in steps.cycle().take(500) {
        now_ms += step_ms;
        if window.full_ms(now_ms, MOST).is_none() {
            window = window.and_one(now_ms);
            came.push(now_ms);
        }
    }
    let most = usize::try_from(MOST).unwrap();
    assert!(came.len() > 10 * most, "{}", came.len());
    assert!(came.windows(most + 1).all(|them| them[most] - them[0] >= 60_000), "{came:?}");
    assert!(window.requests.len() <= most, "{window:?}");
}

#[test]
fn a_request_fits_at_the_moment_that_a_refusal_names_and_not_before() {
    let window = [0, 20_000, 20_001].iter().fold(Window::default(), |it, ms| it.and_one(*ms));
    for (now_ms, most, wait_ms) in [(30_000, 3, 30_000), (30_000, 2, 50_001), (30_000, 1, 50_001)] {
        assert_eq!(Some(wait_ms), window.full_ms(now_ms, most), "{most}");
        assert_eq!(Some(1), window.full_ms(now_ms + wait_ms - 1, most), "{most}");
        assert_eq!(None, window.full_ms(now_ms + wait_ms, most), "{most}");
    }
    assert_eq!(None, window.full_ms(30_000, 4));
    // One that came earlier and is written down later counts, too.
    let late = window.and_one(19_990);
    assert_eq!((Some(30_000), None), (late.full_ms(30_000, 4), late.full_ms(30_000, 5)));
    // One request a minute, each minute.
    let once = Window::default().and_one(NOW_MS);
    assert_eq!(
        (Some(1), None),
        (once.full_ms(NOW_MS + 59_999, 1), once.full_ms(NOW_MS + 60_000, 1))
    );
    assert_eq!(Some(60_000), Window::default().full_ms(NOW_MS, 0));
}

#[test]
fn a_window_stays_small_however_many_requests_come() {
    let window = (0..60_000).step_by(10).fold(Window::default(), |it, ms| it.and_one(NOW_MS + ms));
    assert_eq!(120, window.requests.len());
    assert_eq!(Some(1), window.full_ms(NOW_MS + 60_000 + 489, 5_951));
    // One that was kept before was by minutes.
    let before = r#"{"open":1,"window":{"minute":30000000,"count":5,"before":2}}"#;
    let tally: Tally = serde_json::from_str(before).unwrap();
    assert_eq!((1, Window::default()), (tally.open, tally.window));
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
