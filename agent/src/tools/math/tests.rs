//! What `math_eval` calculates, and what it refuses at once.

use proptest::prelude::*;

use super::{CHARACTERS_MAX, evaluate};

fn said(expression: &str) -> String {
    evaluate(expression).unwrap_or_else(|failure| failure.to_string())
}

#[test]
fn expressions_have_their_exact_values() {
    let cases = [
        ("1+2*3", "7"),
        ("(1+2)*3", "9"),
        ("2^3^2", "512"),
        ("-2^2", "-4"),
        ("(-2)^2", "4"),
        ("2^-3", "0.125"),
        ("(2/3)^-2", "2.25"),
        ("0^0", "1"),
        ("0^5", "0"),
        ("(-1)^99999999999999999999", "-1"),
        ("1^99999999999999999999", "1"),
        ("7 % 3", "1"),
        ("-7 % 3", "-1"),
        ("7.5 % 2", "1.5"),
        ("10 - 4 - 3", "3"),
        ("100 / 10 / 2", "5"),
        ("- - 5", "5"),
        ("+5", "5"),
        ("0.1 + 0.2", "0.3"),
        ("1e3 + 2.5E-2", "1000.025"),
        ("2^64 - 1", "18446744073709551615"),
        ("2^256", "115792089237316195423570985008687907853269984665640564039457584007913129639936"),
        ("1/8", "0.125"),
        ("-1/3", "about -0.3333333333333333333333333333333333333333, exactly -1/3"),
        ("2/3", "about 0.6666666666666666666666666666666666666667, exactly 2/3"),
        ("1/3*3", "1"),
        ("min(3, 1, 2)", "1"),
        ("max(1/3, 0.3)", "about 0.3333333333333333333333333333333333333333, exactly 1/3"),
        ("abs(-4.5)", "4.5"),
        ("floor(-1.5)", "-2"),
        ("ceil(-1.5)", "-1"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.4999)", "2"),
        ("sqrt(144)", "12"),
        ("sqrt(2.25)", "1.5"),
        ("sqrt(4/9)", "about 0.6666666666666666666666666666666666666667, exactly 2/3"),
        ("sqrt(2)", "about 1.4142135623730950488016887242096980785696"),
        ("sqrt(2)*0", "about 0"),
        ("sqrt(0)", "0"),
    ];
    for (expression, value) in cases {
        assert_eq!(said(expression), value, "{expression}");
    }
}

#[test]
fn what_has_no_value_is_refused_with_the_place_or_the_reason() {
    let syntax = |at, found, expected| {
        format!(
            "bad_arguments: argument expression: found {found} at character {at}: expected {expected}"
        )
    };
    let deep =
        "bad_arguments: argument expression: more than 32 nested parentheses, signs or exponents";
    let large = "failed: a number of the calculation has more than 8192 binary digits";
    let cases = [
        (String::new(), syntax(1, "the end", "a number, ( or a function")),
        ("1 +".into(), syntax(4, "the end", "a number, ( or a function")),
        ("1 2".into(), syntax(3, "'2'", "an operator or the end")),
        ("(1".into(), syntax(3, "the end", "an operator or )")),
        ("1)".into(), syntax(2, "')'", "an operator or the end")),
        ("1.".into(), syntax(3, "the end", "a digit")),
        (".5".into(), syntax(3, "the end", "a digit")),
        ("1e".into(), syntax(3, "the end", "a digit")),
        ("2 × 3".into(), syntax(3, "'×'", "an operator or the end")),
        // For private use: compilers write it otherwise, and what they write of others changes.
        ("1 \u{e000}".into(), syntax(3, "'\u{e000}'", "an operator or the end")),
        ("abs(1, 2)".into(), syntax(6, "','", ")")),
        ("min()".into(), syntax(5, "')'", "a number, ( or a function")),
        ("exp(1)".into(), syntax(1, "'e'", "one of min, max, abs, floor, ceil, round, sqrt")),
        ("((((".repeat(100), deep.into()),
        ("-".repeat(900), deep.into()),
        ("2^".repeat(450), deep.into()),
        ("1/0".into(), "failed: division by zero".into()),
        ("1%0".into(), "failed: division by zero".into()),
        ("0^-1".into(), "failed: division by zero".into()),
        (
            "2^0.5".into(),
            "failed: an exponent is not a whole number: for roots there is sqrt(x)".into(),
        ),
        ("sqrt(-1)".into(), "failed: the square root of a negative number".into()),
        ("9^9^9^9".into(), large.into()),
        ("2^8192".into(), large.into()),
        ("2^99999999999999999999999999".into(), large.into()),
        ("0.5^9000".into(), large.into()),
        ("1e99999999999999999999".into(), large.into()),
        ("1e-99999999999999999999".into(), large.into()),
        ("(2^8000)^8000".into(), large.into()),
        ("2^8000 * 2^8000".into(), large.into()),
    ];
    for (expression, message) in cases {
        assert_eq!(said(&expression), message, "{expression}");
    }
}

#[test]
fn the_largest_number_is_written_whole() {
    assert_eq!(said("2^8191").len(), 2466);
}

proptest! {
    #[test]
    fn whole_numbers_agree_with_the_machine(a in any::<i32>(), b in any::<i32>(), c in 1..i32::MAX) {
        let (wide_a, wide_b, wide_c) = (i128::from(a), i128::from(b), i128::from(c));
        let expected = wide_a * wide_b - wide_a % wide_c;
        prop_assert_eq!(said(&format!("{a} * {b} - {a} % {c}")), expected.to_string());
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-+*/%^(). 0-9a-zé,]{0,60}") {
        prop_assert!(text.len() <= CHARACTERS_MAX);
        prop_assert!(!said(&text).is_empty());
    }
}
