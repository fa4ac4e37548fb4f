//! Tests.

use regex::Regex;

use super::pattern;

const TEXT: &str = "balance: 999990000\nsince: 2026-11-22T00:00:00Z";

#[test]
fn a_sentence_has_one_of_the_needed_texts_and_no_number_but_those_of_the_text() {
    let balance = &["999990000"][..];
    let either = &["a/b [c]", "2026-11-22T00:00:00Z"][..];
    for (needed, sentence, is_one) in [
        (balance, "It has 999990000.", true),
        (balance, "It has 999990000 since 2026-11-22 or so!", true),
        (balance, "It has much since 2026-11-22.", false),
        (balance, "It has 9999900001.", false),
        (balance, "It has 999990000 and 12.", false),
        (balance, "It has 999990000. It has more.", false),
        (balance, "It has 999990000", false),
        (either, "It is a/b [c].", true),
        (either, "It is from 2026-11-22T00:00:00Z on?", true),
        (either, "It is a/b c.", false),
        (&[], "It is known.", true),
        (&[], "It is since 2026-11-22.", true),
        (&[], "It is since 2026-11-23.", false),
    ] {
        let regex = Regex::new(&format!("^(?:{})$", pattern(TEXT, needed))).unwrap();
        assert_eq!(regex.is_match(sentence), is_one, "{needed:?}: {sentence}");
    }
}
