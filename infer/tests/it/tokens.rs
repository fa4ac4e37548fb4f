//! Text to tokens and back.

use infer::TextStream;
use proptest::prelude::*;

use crate::support::{MISSING, model};

#[test]
fn pairs_are_merged_in_their_order_and_not_over_cuts() {
    let model = model();
    let tokenizer = model.tokenizer();
    let pieces = |text: &str| -> Vec<String> {
        tokenizer.encode(text).iter().map(|token| tokenizer.decode(&[*token])).collect()
    };
    assert_eq!(pieces("the"), ["t", "he"]);
    assert_eq!(pieces(" the"), [" the"]);
    assert_eq!(pieces("x  the"), ["x", " ", " the"]);
    assert_eq!(pieces("     the"), ["    ", " the"]);
    assert_eq!(pieces("aaaaaaa"), ["aaaa", "aa", "a"]);
    assert_eq!(pieces("on1on"), ["on", "1", "on"]);
    assert_eq!(pieces("caf\u{e9}"), ["c", "a", "f", "\u{e9}"]);
    assert_eq!(pieces("<|im_end|>").concat(), "<|im_end|>");
    assert!(pieces("<|im_end|>").len() > 5);
}

#[test]
fn a_long_piece_takes_no_longer_than_many_short_ones() {
    // Time in proportion to the square of a million characters would not end.
    let model = model();
    let tokens = model.tokenizer().encode(&"a".repeat(1 << 20));
    assert_eq!(tokens.len(), 1 << 18);
}

#[test]
fn a_byte_that_the_vocabulary_lacks_is_left_out() {
    let model = model();
    let text = format!("a{}b", char::from(MISSING));
    assert_eq!(model.tokenizer().decode(&model.tokenizer().encode(&text)), "ab");
}

proptest! {
    #[test]
    fn tokens_of_a_text_are_the_text(text in ".*") {
        let model = shared();
        let lacking = text.replace(char::from(MISSING), "");
        let tokens = model.tokenizer().encode(&text);
        prop_assert!(tokens.iter().all(|token| !model.tokenizer().is_control(*token)));
        prop_assert_eq!(model.tokenizer().decode(&tokens), lacking);
    }

    #[test]
    fn a_stream_of_pieces_is_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..60), cuts in prop::collection::vec(0usize..60, 0..20)) {
        prop_assert_eq!(streamed(&bytes, cuts), String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_stream_of_a_text_in_pieces_is_the_text(text in "\\PC*", cuts in prop::collection::vec(0usize..200, 0..40)) {
        prop_assert_eq!(streamed(text.as_bytes(), cuts), text);
    }
}

/// One model for all cases of a property.
fn shared() -> &'static infer::Model {
    static MODEL: std::sync::OnceLock<std::sync::Arc<infer::Model>> = std::sync::OnceLock::new();
    MODEL.get_or_init(model)
}

/// Puts bytes through a stream, cut at these places.
fn streamed(bytes: &[u8], mut cuts: Vec<usize>) -> String {
    cuts.iter_mut().for_each(|cut| *cut = (*cut).min(bytes.len()));
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let mut stream = TextStream::default();
    let mut text = String::new();
    let mut start = 0;
    for cut in cuts {
        text.push_str(&stream.push(&bytes[start..cut]));
        start = cut;
    }
    text + &stream.finish()
}
