//! Text to tokens and back: byte-level pair encoding, as the model's file says.

mod alphabet;
mod merge;
mod split;
mod stream;
mod token;

use std::collections::BTreeMap;

pub use stream::TextStream;
pub use token::Token;

use self::merge::Merges;
use self::split::Splitter;
use crate::error::FileError;
use crate::gguf::Metadata;

/// The one kind of tokenizer: pair encoding over bytes.
const MODEL: &str = "gpt2";
/// The one way of splitting text before pairs are merged.
const SPLIT: &str = "smollm";

/// The most tokens of a vocabulary.
const VOCABULARY_MAX: usize = 1 << 20;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Stands for bytes of text.
    Text,
    /// Steers the model; never made from text.
    Control,
}

/// A model's vocabulary, and how text becomes tokens of it.
#[derive(Debug)]
pub struct Tokenizer {
    /// The bytes that a token stands for; a control token's name.
    bytes: Vec<Box<[u8]>>,
    purposes: Vec<Purpose>,
    controls: BTreeMap<String, Token>,
    /// The token of each byte. Some vocabularies lack bytes that their makers never saw.
    singles: [Option<Token>; 256],
    merges: Merges,
    splitter: Splitter,
    end: Token,
}

impl Tokenizer {
    pub(crate) fn read(metadata: &Metadata) -> Result<Self, FileError> {
        for (name, expected) in [("tokenizer.ggml.model", MODEL), ("tokenizer.ggml.pre", SPLIT)] {
            let found = metadata.text(name)?;
            if found != expected {
                let (name, found) = (name.to_owned(), found.to_owned());
                return Err(FileError::Tokenizer { name, found, expected });
            }
        }
        let names = metadata.texts("tokenizer.ggml.tokens")?;
        if names.is_empty() || names.len() > VOCABULARY_MAX {
            return Err(FileError::Vocabulary { found: names.len(), max: VOCABULARY_MAX });
        }
        let kinds = metadata.integers("tokenizer.ggml.token_type")?;
        if kinds.len() != names.len() {
            return Err(FileError::TokenTypes { found: kinds.len(), expected: names.len() });
        }
        let mut bytes = Vec::with_capacity(names.len());
        let mut purposes = Vec::with_capacity(names.len());
        let mut controls = BTreeMap::new();
        let mut texts = BTreeMap::new();
        for (number, (name, kind)) in (0..).zip(names.iter().zip(kinds)) {
            let token = Token::new(number);
            let purpose = purpose(*kind, number)?;
            purposes.push(purpose);
            let (before, stands_for) = match purpose {
                Purpose::Control => (controls.insert(name.clone(), token), name.as_bytes().into()),
                Purpose::Text => {
                    let unknown = || FileError::TokenText { number, text: name.clone() };
                    let stands_for = alphabet::bytes(name).ok_or_else(unknown)?;
                    (texts.insert(name.as_str(), token), stands_for)
                }
            };
            if before.is_some() {
                return Err(FileError::TokenTwice { number, text: name.clone() });
            }
            bytes.push(stands_for);
        }
        let mut singles = [None; 256];
        for (byte, single) in (0..=u8::MAX).zip(&mut singles) {
            *single = texts.get(alphabet::letter(byte).to_string().as_str()).copied();
        }
        let merges = Merges::read(metadata.texts("tokenizer.ggml.merges")?, &texts)?;
        let last = names.len() as u32 - 1;
        let end = metadata.number("tokenizer.ggml.eos_token_id", 0, last)? as u32;
        let splitter = Splitter::new();
        Ok(Self { bytes, purposes, controls, singles, merges, splitter, end: Token::new(end) })
    }

    /// How many tokens there are.
    pub(crate) fn vocabulary(&self) -> usize {
        self.bytes.len()
    }

    /// The token by which the model says that it is done.
    #[must_use]
    pub const fn end(&self) -> Token {
        self.end
    }

    /// The token with this number.
    #[must_use]
    pub fn token(&self, number: u32) -> Option<Token> {
        ((number as usize) < self.bytes.len()).then_some(Token::new(number))
    }

    /// Whether a token steers the model and stands for no text.
    #[must_use]
    pub fn is_control(&self, token: Token) -> bool {
        self.purposes.get(token.index()).is_none_or(|purpose| *purpose == Purpose::Control)
    }

    pub(crate) fn control(&self, name: &str) -> Option<Token> {
        self.controls.get(name).copied()
    }

    /// The tokens of a text. Nothing in it becomes a control token, whatever it looks like. Bytes
    /// that the vocabulary lacks are left out.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<Token> {
        let mut tokens = Vec::new();
        self.splitter.split(text, |piece| self.encode_piece(piece.as_bytes(), &mut tokens));
        tokens
    }

    /// The tokens of bytes that may end within a character.
    pub(crate) fn encode_bytes(&self, bytes: &[u8]) -> Vec<Token> {
        let mut tokens = Vec::new();
        for chunk in bytes.utf8_chunks() {
            self.splitter.split(chunk.valid(), |piece| {
                self.encode_piece(piece.as_bytes(), &mut tokens);
            });
            self.encode_piece(chunk.invalid(), &mut tokens);
        }
        tokens
    }

    fn encode_piece(&self, bytes: &[u8], tokens: &mut Vec<Token>) {
        let singles = bytes.iter().filter_map(|byte| self.singles[usize::from(*byte)]);
        self.merges.apply(singles, tokens);
    }

    /// The bytes that a token stands for: none if it is a control token or not in the vocabulary.
    #[must_use]
    pub fn bytes(&self, token: Token) -> &[u8] {
        if self.is_control(token) { &[] } else { &self.bytes[token.index()] }
    }

    /// The bytes of a token, or the name of a control token.
    pub(crate) fn name(&self, token: Token) -> &[u8] {
        &self.bytes[token.index()]
    }

    /// The text of tokens; what is not UTF-8 is shown as U+FFFD.
    #[must_use]
    pub fn decode(&self, tokens: &[Token]) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| self.bytes(*token)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn purpose(kind: i64, number: u32) -> Result<Purpose, FileError> {
    match kind {
        1 => Ok(Purpose::Text),
        3 => Ok(Purpose::Control),
        found => Err(FileError::TokenType { number, found }),
    }
}
