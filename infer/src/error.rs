//! What can be wrong with a model file, a prompt or a grammar.

use std::io;
use std::num::TryFromIntError;
use std::path::PathBuf;
use std::string::FromUtf8Error;

use thiserror::Error;

/// Why a model was not opened.
#[derive(Debug, Error)]
pub enum ModelError {
    /// The file cannot be opened or its length not be told.
    #[error("the model file {} cannot be opened", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file is not a model that is computed here.
    #[error("the model file {} is refused", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: FileError,
    },
    /// The file is not the one that was asked for.
    #[error(
        "the model file {} has sha256 {found}, expected {expected}: it is another file, or damaged",
        path.display()
    )]
    Hash {
        /// Which file.
        path: PathBuf,
        /// What it has.
        found: String,
        /// What it should have.
        expected: String,
    },
}

/// What is wrong with a model file. Offsets are counted in bytes from the start of the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system does not give the bytes.
    #[error("byte {offset} cannot be read")]
    Read {
        /// Where.
        offset: u64,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file ends too early.
    #[error("{what} at byte {offset} wants {wanted} bytes, and {left} are left")]
    TooShort {
        /// Where.
        offset: u64,
        /// What was being read.
        what: &'static str,
        /// Bytes that it takes.
        wanted: u64,
        /// Bytes that there are.
        left: u64,
    },
    /// It is another kind of file.
    #[error("the file begins with {found:02x?}, expected \"GGUF\"")]
    Magic {
        /// Its first bytes.
        found: [u8; 4],
    },
    /// It is of another version.
    #[error("the file is of GGUF version {found}, expected {expected}")]
    Version {
        /// What it says.
        found: u32,
        /// What is read here.
        expected: u32,
    },
    /// A number is beyond what is reasonable.
    #[error("{found} {what} at byte {offset}, expected at most {max}")]
    TooMany {
        /// Where.
        offset: u64,
        /// Of what.
        what: &'static str,
        /// How many the file says.
        found: u64,
        /// The most.
        max: u64,
    },
    /// A text is not UTF-8.
    #[error("{what} at byte {offset} is not UTF-8")]
    NotUtf8 {
        /// Where.
        offset: u64,
        /// What was being read.
        what: &'static str,
        /// What is wrong with it.
        #[source]
        source: FromUtf8Error,
    },
    /// A truth value is neither 0 nor 1.
    #[error("byte {offset} is {found}, expected 0 or 1")]
    NotBool {
        /// Where.
        offset: u64,
        /// What is there.
        found: u8,
    },
    /// A value has a type that there is not.
    #[error("the value at byte {offset} is of type {found}, expected 0 to 12, lists not in lists")]
    ValueType {
        /// Where.
        offset: u64,
        /// The type's number.
        found: u32,
    },
    /// A number in a list is too large.
    #[error("the number at byte {offset} does not fit into 64 bits with a sign")]
    ListValue {
        /// Where.
        offset: u64,
        /// How it does not fit.
        #[source]
        source: TryFromIntError,
    },
    /// A name stands twice.
    #[error("the name {name:?} at byte {offset} stands twice")]
    Twice {
        /// Where the second is.
        offset: u64,
        /// The name.
        name: String,
    },
    /// A setting is missing or of another type.
    #[error("the setting {name:?} is {found}, expected {expected}")]
    Setting {
        /// Its name.
        name: String,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A setting is out of its bounds.
    #[error("the setting {name:?} is {value}, expected {min} to {max}")]
    Range {
        /// Its name.
        name: String,
        /// What it is.
        value: i128,
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
    /// A setting is not a multiple of what it has to be.
    #[error("the setting {name:?} is {value}, expected a multiple of {of}")]
    NotMultiple {
        /// Its name.
        name: String,
        /// What it is.
        value: usize,
        /// Of what it should be a multiple.
        of: usize,
    },
    /// A setting asks for what is not computed here.
    #[error("the setting {name:?} changes the architecture in a way that is not supported")]
    Unsupported {
        /// Its name.
        name: String,
    },
    /// The alignment is not a power of two.
    #[error("the alignment is {found}, expected a power of two")]
    Alignment {
        /// What it is.
        found: u64,
    },
    /// The model is of another architecture.
    #[error("the architecture is {found:?}, expected {expected:?}")]
    Architecture {
        /// What the file says.
        found: String,
        /// What is computed here.
        expected: &'static str,
    },
    /// The heads do not divide the width.
    #[error(
        "{heads} heads with {kv_heads} of keys for a width of {width}, expected the heads of keys \
         to divide the heads, and 8 times the heads the width"
    )]
    Heads {
        /// The width.
        width: usize,
        /// The heads.
        heads: usize,
        /// The heads of keys and values.
        kv_heads: usize,
    },
    /// Only a part of a head is rotated.
    #[error("{found} numbers of a head are rotated, expected all {expected}")]
    Rotation {
        /// What the file says.
        found: usize,
        /// The width of a head.
        expected: usize,
    },
    /// A tensor has too many dimensions.
    #[error("the tensor {name:?} has {found} dimensions, expected 1 to 4")]
    Dimensions {
        /// Its name.
        name: String,
        /// How many.
        found: u32,
    },
    /// A tensor's numbers are written in another way.
    #[error("the tensor {name:?} is of type {found}, expected F32, F16, Q4_0, Q4_1 or Q8_0")]
    TensorKind {
        /// Its name.
        name: String,
        /// The type's number.
        found: u32,
    },
    /// A tensor has no size that can be.
    #[error("the tensor {name:?} has {rows} rows of {cols}: empty, too large, or no whole blocks")]
    TensorSize {
        /// Its name.
        name: String,
        /// Rows.
        rows: u64,
        /// Columns.
        cols: u64,
    },
    /// A tensor reaches beyond the file.
    #[error("the tensor {name:?} has {bytes} bytes from {offset} of {left}")]
    Outside {
        /// Its name.
        name: String,
        /// Where it begins, within the tensors' part.
        offset: u64,
        /// Its bytes.
        bytes: u64,
        /// Bytes of the tensors' part.
        left: u64,
    },
    /// A tensor begins at an odd place.
    #[error("the tensor {name:?} begins at {offset}, expected a multiple of {alignment}")]
    Unaligned {
        /// Its name.
        name: String,
        /// Where it begins, within the tensors' part.
        offset: u64,
        /// What it should be a multiple of.
        alignment: u64,
    },
    /// Two tensors share bytes.
    #[error("the tensor {name:?} at byte {offset} overlaps the one before it")]
    Overlap {
        /// The later one's name.
        name: String,
        /// Where it begins.
        offset: u64,
    },
    /// A tensor that the architecture does not have.
    #[error("the tensor {name:?} is not one of this architecture")]
    UnknownTensor {
        /// Its name.
        name: String,
    },
    /// A tensor that the architecture needs.
    #[error("the tensor {name:?} is missing")]
    MissingTensor {
        /// Its name.
        name: String,
    },
    /// A tensor is of another size than the settings say.
    #[error("the tensor {name:?} has {found:?} rows and columns, expected {expected:?}")]
    Size {
        /// Its name.
        name: String,
        /// Its rows and columns.
        found: (usize, usize),
        /// What they should be.
        expected: (usize, usize),
    },
    /// A vector's numbers are written in another way.
    #[error("the tensor {name:?} is {found}, expected F32")]
    VectorKind {
        /// Its name.
        name: String,
        /// How they are written.
        found: String,
    },
    /// A tensor has infinities, or what is no number.
    #[error("the tensor {name:?} has a number that is not finite")]
    NotFinite {
        /// Its name.
        name: String,
    },
    /// The tokenizer is another.
    #[error("the setting {name:?} is {found:?}, expected {expected:?}")]
    Tokenizer {
        /// The setting's name.
        name: String,
        /// What it is.
        found: String,
        /// What is known here.
        expected: &'static str,
    },
    /// The vocabulary is empty or too large.
    #[error("a vocabulary of {found} tokens, expected 1 to {max}")]
    Vocabulary {
        /// Its size.
        found: usize,
        /// The most.
        max: usize,
    },
    /// Not every token has a type.
    #[error("{found} token types for {expected} tokens")]
    TokenTypes {
        /// Types.
        found: usize,
        /// Tokens.
        expected: usize,
    },
    /// A token is of another type.
    #[error("token {number} is of type {found}, expected 1 (text) or 3 (control)")]
    TokenType {
        /// The token.
        number: u32,
        /// The type's number.
        found: i64,
    },
    /// A token's text is not in the alphabet of bytes.
    #[error("token {number} is {text:?}, which has a letter that stands for no byte")]
    TokenText {
        /// The token.
        number: u32,
        /// Its text.
        text: String,
    },
    /// Two tokens have one text.
    #[error("token {number} is {text:?}, as one before it")]
    TokenTwice {
        /// The later token.
        number: u32,
        /// The text.
        text: String,
    },
    /// A merge is not of two tokens into a third, or stands twice.
    #[error("merge {rank} is {line:?}, expected two tokens that make a third, once")]
    Merge {
        /// Its number, from 0.
        rank: u32,
        /// The merge.
        line: String,
    },
    /// The form of conversations is unknown.
    #[error(
        "the chat template with sha256 {found} is unknown; templates are not run, only recognised"
    )]
    Template {
        /// The sha256 of its text.
        found: String,
    },
    /// A token that conversations need.
    #[error("the control token {name:?} is missing")]
    MissingControl {
        /// Its text.
        name: &'static str,
    },
    /// The vocabulary cannot be used for grammars.
    #[error("the vocabulary cannot be used for grammars: {reason}")]
    Grammars {
        /// What the library says.
        reason: String,
    },
}

/// Why a model did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The prompt leaves no room for an answer.
    #[error("the prompt has {tokens} tokens, expected fewer than {max}")]
    PromptTooLong {
        /// Its tokens.
        tokens: usize,
        /// The tokens of a context.
        max: usize,
    },
    /// There is nothing to read.
    #[error("the prompt is empty")]
    PromptEmpty,
    /// More would be read than [`crate::Session::record`] allows.
    #[error("{tokens} tokens would be read, expected at most {max}")]
    InputTokens {
        /// What would be read.
        tokens: u64,
        /// What is left.
        max: u64,
    },
    /// There is nothing to choose from, or a text of no token.
    #[error("text {at} of {count} cannot be chosen: it is empty")]
    LabelEmpty {
        /// Which, from 0.
        at: usize,
        /// How many there are.
        count: usize,
    },
    /// The model's scores are not numbers: its weights are beyond what 32-bit floats carry.
    #[error("the model's scores are not numbers after {tokens} tokens")]
    NotANumber {
        /// The tokens that were read.
        tokens: usize,
    },
    /// The grammar was made for another vocabulary.
    #[error("the grammar was made for another model")]
    ForeignGrammar,
    /// The grammar cannot go on; a fault of it or of the library.
    #[error("the grammar cannot go on after {tokens} tokens")]
    Grammar {
        /// Output tokens up to there.
        tokens: u32,
        /// What the library says, which is not the same in all builds.
        reason: String,
    },
}

/// Why a grammar was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// There is no text to choose.
    #[error("no text to choose from")]
    NoText,
    /// A text is empty.
    #[error("text {at} is empty")]
    EmptyText {
        /// Which, from 0.
        at: usize,
    },
    /// A bound is not a whole number.
    #[error("the {bound} is {text:?}, expected a whole number in decimal of 256 bits with a sign")]
    Bound {
        /// `minimum` or `maximum`.
        bound: &'static str,
        /// What it is.
        text: String,
    },
    /// There is no number between the bounds.
    #[error("no number is at least {min} and at most {max}")]
    NoNumber {
        /// The smallest.
        min: String,
        /// The largest.
        max: String,
    },
    /// A tool's name cannot be used.
    #[error("the tool name {name:?} is empty or stands twice")]
    ToolName {
        /// The name.
        name: String,
    },
    /// A schema is not supported.
    #[error("the schema of {of:?} is not supported: {reason}")]
    Schema {
        /// Whose: a tool's name, or `answer`.
        of: String,
        /// The first line of what the library says, which is not the same in all builds.
        reason: String,
    },
}
