//! The limits of calls, and what their members must be together.

use super::{assert_each_invalid, assert_invalid, assert_valid, check, draft, quoted};
use crate::Code;
use crate::testing::Draft;

/// A call that the majority decides.
fn majority() -> Draft {
    let draft = draft("AGENT_CALL").with("consensus", "\"majority\"");
    draft.without("threshold").without("onResult").without("appealable")
}

fn hex(bytes: usize) -> String {
    quoted(&format!("0x{}", "ab".repeat(bytes)))
}

const PRICES: &str = r#"{"perCall":"1","promptPerM":"2","completionPerM":"3","fuelPerG":"4"}"#;

#[test]
fn a_committee_is_odd_and_has_at_most_15_members() {
    assert_valid(&majority(), "committeeSize", &["1", "3", "15"]);
    assert_each_invalid(&majority(), "committeeSize", &["2", "14"], "an odd number");
    assert_each_invalid(&majority(), "committeeSize", &["0", "16", "17"], "1 to 15");
}

#[test]
fn a_threshold_goes_with_its_consensus_and_is_no_more_than_the_members() {
    assert_eq!(check(&majority()), Ok(()));
    let none = "no threshold with the consensus majority";
    assert_each_invalid(&majority(), "threshold", &["2"], none);
    let call = draft("AGENT_CALL");
    assert_valid(&call, "threshold", &["1", "3"]);
    assert_each_invalid(&call, "threshold", &["4"], "1 to 3");
    assert_each_invalid(&call, "threshold", &["0"], "1 to 15");
    assert_invalid(&call.without("threshold"), "threshold", "missing", "1 to 3");
    let others = ["\"unanimity\""];
    assert_each_invalid(&majority(), "consensus", &others, "one of majority, threshold");
}

#[test]
fn with_a_threshold_only_the_call_has_a_price_and_nobody_appeals() {
    assert_eq!(check(&majority().with("prices", PRICES)), Ok(()));
    for (member, price) in [("promptPerM", "2"), ("completionPerM", "3"), ("fuelPerG", "4")] {
        let others = ["promptPerM", "completionPerM", "fuelPerG"];
        let price_of = |name| if name == member { price } else { "0" };
        let rest: Vec<String> =
            others.map(|name| format!("\"{name}\":\"{}\"", price_of(name))).into();
        let prices = format!("{{\"perCall\":\"1\",{}}}", rest.join(","));
        let call = draft("AGENT_CALL").with("prices", &prices);
        let expected = "0: with the consensus threshold usage is unproved";
        assert_invalid(&call, &format!("prices.{member}"), price, expected);
    }
    let none = "no appeal with the consensus threshold";
    assert_each_invalid(&draft("AGENT_CALL"), "appealable", &["true"], none);
}

#[test]
fn conditional_payments_need_an_appealable_majority_of_three() {
    let payment = |when: &str| {
        format!("[{{\"when\":\"{when}\",\"to\":\"{}\",\"amount\":\"5\"}}]", "09".repeat(20))
    };
    let paying =
        |when: &str| majority().with("appealable", "true").with("onResult", &payment(when));
    let result = format!("result:{}", "ab".repeat(32));
    for when in ["success", &result] {
        assert_eq!(check(&paying(when)), Ok(()));
    }
    let expected = "success, or result: and 64 lowercase hex characters";
    for when in ["failure", "Success", "result:ab"] {
        assert_invalid(&paying(when), "onResult[0].when", &format!("{when:?}"), expected);
    }
    let expected = "none but with the consensus majority, appealable, and 3 members or more";
    let others = [
        majority().with("onResult", &payment("success")),
        majority().with("appealable", "false").with("onResult", &payment("success")),
        paying("success").with("committeeSize", "1"),
        draft("AGENT_CALL").with("onResult", &payment("success")),
    ];
    for other in others {
        assert_invalid(&other, "onResult", "1 entries", expected);
    }
    let one = payment("success").trim_matches(['[', ']']).to_owned();
    let many = |count: usize| {
        majority()
            .with("appealable", "true")
            .with("onResult", &super::array(vec![one.clone(); count]))
    };
    assert_eq!(check(&many(4)), Ok(()));
    assert_invalid(&many(5), "onResult", "5 entries", "at most 4 entries");
}

#[test]
fn members_have_ten_seconds_to_ten_minutes_to_commit() {
    assert_valid(&majority(), "timeoutMs", &["10000", "600000"]);
    assert_each_invalid(&majority(), "timeoutMs", &["9999", "600001"], "10000 to 600000");
}

#[test]
fn payloads_and_results_are_lowercase_hex_of_at_most_16384_bytes() {
    for (kind, field) in [("AGENT_CALL", "payload"), ("CALL_REVEAL", "result")] {
        assert_valid(&draft(kind), field, &[0, 1, 16_384].map(hex));
        let long = draft(kind).with(field, &hex(16_385));
        assert_invalid(&long, field, "16385 bytes", "at most 16384 bytes");
        for text in ["", "ab", "0x0", "0xAB", "0X00", "0x0g", "0x 00"] {
            let rejection = check(&draft(kind).with(field, &quoted(text))).unwrap_err();
            assert_eq!((rejection.code(), rejection.field()), (Code::Malformed, field), "{text}");
        }
    }
}

#[test]
fn members_of_prices_and_limits_are_named_by_their_place() {
    let without = r#"{"perCall":"1","promptPerM":"0","completionPerM":"0"}"#;
    let rejection = check(&draft("AGENT_CALL").with("prices", without)).unwrap_err();
    assert_eq!((rejection.code(), rejection.field()), (Code::Malformed, "prices.fuelPerG"));
    let limits = r#"{"inputTokens":-1,"outputTokens":0,"fuel":0,"resultBytes":0}"#;
    let rejection = check(&draft("AGENT_CALL").with("limits", limits)).unwrap_err();
    assert_eq!((rejection.code(), rejection.field()), (Code::Malformed, "limits.inputTokens"));
    let unknown = format!(
        r#"{{"perCall":"1","promptPerM":"0","completionPerM":"0","fuelPerG":"0","x":"{}"}}"#,
        "y".repeat(300)
    );
    let parsed = draft("AGENT_CALL").with("prices", &unknown).parse();
    assert!(parsed.is_ok(), "unknown members are kept, and count as such");
}

#[test]
fn rounds_are_0_and_1() {
    for kind in ["CALL_COMMIT", "CALL_REVEAL"] {
        assert_valid(&draft(kind), "round", &["0", "1"]);
        assert_each_invalid(&draft(kind), "round", &["2"], "0 to 1");
    }
}

#[test]
fn only_a_success_has_a_result() {
    let empty = quoted("0x");
    for outcome in ["failure", "unable"] {
        let reveal = draft("CALL_REVEAL").with("outcome", &quoted(outcome));
        let expected = format!("nothing with the outcome {outcome}");
        assert_invalid(&reveal, "result", "3 bytes", &expected);
        assert_eq!(check(&reveal.with("result", &empty)), Ok(()));
    }
    assert_eq!(check(&draft("CALL_REVEAL").with("result", &empty)), Ok(()), "it may be empty");
    let words = "one of success, failure, unable";
    assert_each_invalid(&draft("CALL_REVEAL"), "outcome", &["\"late\""], words);
}
