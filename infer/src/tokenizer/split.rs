//! Where text is cut before pairs are merged: no token reaches over a cut.

use regex::Regex;

/// Every numeral is a piece of its own.
const NUMERAL: &str = r"\p{N}";
/// Between numerals: English contractions, words, runs of other characters, white space.
const PIECE: &str = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+";

/// Cuts text. The tables of letters and numerals are the crate `regex`'s, which Cargo.lock fixes,
/// and not those of the compiler.
#[derive(Debug)]
pub(super) struct Splitter {
    numeral: Regex,
    piece: Regex,
}

impl Splitter {
    pub(super) fn new() -> Self {
        let regex =
            |pattern| Regex::new(pattern).expect("the pattern is a constant that is tested");
        Self { numeral: regex(NUMERAL), piece: regex(PIECE) }
    }

    /// Gives the pieces of a text in order; together they are the text.
    pub(super) fn split<'t>(&self, text: &'t str, mut each: impl FnMut(&'t str)) {
        let mut start = 0;
        for numeral in self.numeral.find_iter(text) {
            self.split_words(&text[start..numeral.start()], &mut each);
            each(numeral.as_str());
            start = numeral.end();
        }
        self.split_words(&text[start..], &mut each);
    }

    fn split_words<'t>(&self, text: &'t str, each: &mut impl FnMut(&'t str)) {
        let mut start = 0;
        while let Some(found) = self.piece.find_at(text, start) {
            let end = cut_white_space(found.as_str(), found.end() == text.len());
            each(&text[start..start + end]);
            start += end;
        }
    }
}

/// How much of a piece is taken: of white space before something else, all but the last character,
/// which then belongs to what follows if it is a space.
fn cut_white_space(piece: &str, is_last: bool) -> usize {
    let mut reversed = piece.char_indices().rev();
    match (reversed.next(), reversed.next()) {
        (Some((last, character)), Some(_)) if !is_last && character.is_whitespace() => last,
        _ => piece.len(),
    }
}
