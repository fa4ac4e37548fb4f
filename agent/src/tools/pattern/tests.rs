//! Patterns that match, and those that would take too long.

use std::time::Instant;

use serde_json::json;

use crate::tools::tests::support::{DEADLINE, call, said, toolbox};

#[tokio::test]
async fn matches_are_listed_with_their_groups() {
    let cases = [
        (
            r"(\d+)-(?<word>[a-z]+)?",
            "1-a 22-",
            r#"{"matches":[{"groups":{"1":"1","word":"a"},"text":"1-a"},{"groups":{"1":"22","word":null},"text":"22-"}],"more":false}"#,
        ),
        ("x", "abc", r#"{"matches":[],"more":false}"#),
        (r"\p{Greek}+", "aβγδ!", r#"{"matches":[{"groups":{},"text":"βγδ"}],"more":false}"#),
        ("^$", "", r#"{"matches":[{"groups":{},"text":""}],"more":false}"#),
    ];
    let toolbox = toolbox("");
    for (pattern, text, expected) in cases {
        let arguments = json!({"pattern": pattern, "text": text}).to_string();
        assert_eq!(said(&toolbox, "regex_match", &arguments).await, expected, "{pattern}");
    }
    let many = json!({"pattern": "a", "text": "a".repeat(21)}).to_string();
    let result = said(&toolbox, "regex_match", &many).await;
    assert_eq!(result.matches("text").count(), 20);
    assert!(result.ends_with(r#""more":true}"#), "{result}");
}

#[tokio::test]
async fn a_pattern_that_cannot_be_used_is_refused() {
    let form = "expected a regular expression without look-around and back-references, at most 30 groups deep";
    let large = "expected a pattern with less repetition";
    let deep = "(".repeat(40) + "a" + &")".repeat(40);
    let cases = [
        ("(", form),
        ("(?=a)", form),
        (r"(a)\1", form),
        (&deep, form),
        ("(((a{100}){100}){100})", large),
        (r"\w{500}", large),
    ];
    let toolbox = toolbox("");
    for (pattern, expected) in cases {
        let arguments = json!({"pattern": pattern, "text": "a"}).to_string();
        let result = said(&toolbox, "regex_match", &arguments).await;
        let start = format!("bad_arguments: argument pattern is {:?}", &pattern[..1]);
        assert!(result.starts_with(start.trim_end_matches('"')), "{result}");
        assert!(result.ends_with(expected), "{result}");
    }
}

#[tokio::test]
async fn patterns_that_take_other_engines_for_ever_end() {
    let toolbox = toolbox("");
    let text = "a".repeat(15_000);
    for pattern in [
        "(a+)+$",
        "(a|aa)+b",
        "(a*)*b",
        "(.*)(.*)(.*)(.*)(.*)[^a]",
        "a.{0,200}b",
        r"(\w{1,9})+!",
        "(?:a?){150}b",
    ] {
        let began = Instant::now();
        let arguments = json!({"pattern": pattern, "text": text}).to_string();
        let outcome = call(&toolbox, "regex_match", &arguments).await;
        assert!(outcome.ok, "{pattern}: {outcome:?}");
        assert!(began.elapsed() < DEADLINE, "{pattern}");
    }
}
