//! What the declaration of a kind says: its fields, their forms and limits. Schemas, builders,
//! documents and libraries in other languages are made from these tables.

use crate::forks::Fork;
use crate::params::INTEGER_MAX;
use crate::{Amount, Params};

/// A kind of transaction, as its file in `types/src/tx` declares it.
#[derive(Clone, Copy, Debug)]
pub struct KindSpec {
    /// The text of the member `type`: `SOCIAL_BLOB_INIT`.
    pub type_name: &'static str,
    /// The name that builders and libraries use: `BlobInit`.
    pub name: &'static str,
    /// The section of docs/protocol.md with its rules: `5.10`.
    pub section: &'static str,
    /// The fork that it needs; none if it is valid from block 1 on.
    pub fork: Option<Fork>,
    /// Its own fields in the order in which they are written: the required ones before `nonce`, the
    /// optional ones after `timestamp`.
    pub fields: &'static [FieldSpec],
    /// Optional fields that v7 added, written behind the others.
    pub later: &'static [FieldSpec],
    /// Optional fields that v8 added, written behind those.
    pub latest: &'static [FieldSpec],
    pub(crate) doc: &'static str,
}

impl KindSpec {
    /// All fields, those that a fork added included, in the order in which they are written.
    pub fn all_fields(&self) -> impl Iterator<Item = &'static FieldSpec> {
        self.fields.iter().chain(self.later).chain(self.latest)
    }

    /// What it is for, in a sentence.
    #[must_use]
    pub const fn doc(&self) -> &'static str {
        self.doc.trim_ascii()
    }
}

/// One member of a JSON object.
#[derive(Clone, Copy, Debug)]
pub struct FieldSpec {
    /// Its name in JSON: `agentRunId`.
    pub name: &'static str,
    /// Whether it must be there.
    pub presence: Presence,
    /// What it may hold.
    pub form: Form,
    /// What a builder does if its caller does not give the field.
    pub filled: Filled,
    pub(crate) doc: &'static str,
}

impl FieldSpec {
    /// What it is, in a sentence or two.
    #[must_use]
    pub const fn doc(&self) -> &'static str {
        self.doc.trim_ascii()
    }

    /// Whether the caller of a builder must give it.
    #[must_use]
    pub const fn is_asked_for(&self) -> bool {
        matches!((self.presence, self.filled), (Presence::Required, Filled::ByCaller))
    }
}

/// Whether a field must be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// Every transaction of the kind has it.
    Required,
    /// It may be left out.
    Optional,
}

/// What a builder writes into a field that its caller left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filled {
    /// Nothing: the caller gives a required field and may give an optional one.
    ByCaller,
    /// The empty list, or the amount 0.
    Empty,
    /// The sender's address.
    Sender,
    /// A value that the builder computes.
    Default,
    /// A value that the builder always computes: the caller cannot give another one.
    Computed,
}

/// What a field may hold.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// 64 lowercase hex characters.
    Hash,
    /// 64 lowercase hex characters: an Ed25519 public key that can sign.
    Key,
    /// 128 lowercase hex characters: an Ed25519 signature, good or not.
    Signature,
    /// An address in either written form.
    Address,
    /// Micro-OMBRA as a string of digits, 0 to 2^64−1.
    Amount(AmountLimit),
    /// An integer.
    Integer(IntegerLimit),
    /// `true` or `false`.
    Boolean,
    /// A string.
    Text(TextLimit),
    /// An array of at most so many addresses, each once and at least one.
    Addresses(usize),
    /// An array of at most 64 strings, each once and of at most so many bytes.
    Names(usize),
    /// Bytes in standard base64 with padding.
    Base64,
    /// Bytes in lowercase hex with `0x` before it, at most so many.
    Hex(usize),
    /// An object with these members, all required.
    Object(&'static [FieldSpec]),
    /// An array of objects.
    Objects(ListLimit),
}

/// What an amount may be.
#[derive(Clone, Copy, Debug)]
pub enum AmountLimit {
    /// Anything that an amount can be.
    Any,
    /// More than nothing.
    Positive,
    /// At least what the chain's parameter says.
    AtLeast(AmountParam),
}

/// A chain parameter that limits an amount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AmountParam {
    /// `minMaxFee`.
    MinMaxFee,
}

impl AmountParam {
    /// Its name in genesis: `minMaxFee`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MinMaxFee => "minMaxFee",
        }
    }

    /// Its value on a chain.
    #[must_use]
    pub const fn of(self, params: &Params) -> Amount {
        match self {
            Self::MinMaxFee => params.min_max_fee,
        }
    }
}

/// What an integer may be.
#[derive(Clone, Copy, Debug)]
pub struct IntegerLimit {
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: IntegerMax,
    /// What it counts: `tokens`, `ms`, `bytes`.
    pub unit: &'static str,
}

/// The greatest value of an integer.
#[derive(Clone, Copy, Debug)]
pub enum IntegerMax {
    /// A number of the protocol.
    Fixed(u64),
    /// `maxBlobBytes`, a parameter of the chain.
    MaxBlobBytes,
}

impl IntegerMax {
    /// The number on a chain.
    #[must_use]
    pub const fn of(self, params: &Params) -> u64 {
        match self {
            Self::Fixed(max) => max,
            Self::MaxBlobBytes => params.max_blob_bytes,
        }
    }
}

impl IntegerLimit {
    /// 0 to 2^53−1, the integers that every JSON reader keeps.
    #[must_use]
    pub(crate) const fn any(unit: &'static str) -> Self {
        Self::range(0, INTEGER_MAX, unit)
    }

    /// `min` to `max`.
    #[must_use]
    pub(crate) const fn range(min: u64, max: u64, unit: &'static str) -> Self {
        Self { min, max: IntegerMax::Fixed(max), unit }
    }
}

/// What a string may be.
#[derive(Clone, Copy, Debug)]
pub enum TextLimit {
    /// So many bytes of UTF-8.
    Bytes {
        /// The fewest.
        min: usize,
        /// The most.
        max: usize,
    },
    /// 1 to 128 characters of `[A-Za-z0-9_-]`.
    BlobId,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// What an array of objects may be.
#[derive(Clone, Copy, Debug)]
pub struct ListLimit {
    /// The members of one object, all required.
    pub members: &'static [FieldSpec],
    /// The most objects.
    pub max: usize,
}

/// At most 256 bytes: names, models, media types.
pub(crate) const LABEL: TextLimit = TextLimit::Bytes { min: 0, max: 256 };
/// At most 16,384 bytes: prompts, turns, answers.
pub(crate) const INLINE_TEXT: TextLimit =
    TextLimit::Bytes { min: 0, max: crate::params::INLINE_TEXT_BYTES_MAX };
