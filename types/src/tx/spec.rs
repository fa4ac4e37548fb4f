//! What the declaration of a kind says: its fields, their forms and their limits. Schemas,
//! builders, documents and libraries in other languages are generated from these tables.

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
    /// The fork that it requires; `None` if it is valid from block 1 on.
    pub fork: Option<Fork>,
    /// Its own fields in the order in which they are written: the required ones before `nonce`, the
    /// optional ones after `timestamp`.
    pub fields: &'static [FieldSpec],
    /// Optional fields that v7 added, written after the others.
    pub later: &'static [FieldSpec],
    /// Optional fields that v8 added, written after those.
    pub latest: &'static [FieldSpec],
    pub(crate) doc: &'static str,
}

impl KindSpec {
    /// All fields in the order in which they are written, including those that a fork added.
    pub fn all_fields(&self) -> impl Iterator<Item = &'static FieldSpec> {
        self.fields.iter().chain(self.later).chain(self.latest)
    }

    /// What the kind does, in a sentence or two.
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
    /// Whether it must be present.
    pub presence: Presence,
    /// Which values it may have.
    pub form: Form,
    /// What a builder does if its caller leaves the field out.
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

/// Whether a field must be present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// Every transaction of the kind has it.
    Required,
    /// It may be left out.
    Optional,
}

/// What a builder writes into a field that its caller leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filled {
    /// Nothing: the caller must give a required field and may give an optional one.
    ByCaller,
    /// The empty list, or the amount 0.
    Empty,
    /// The sender's address.
    Sender,
    /// A value that the builder computes.
    Default,
    /// A value that the builder always computes; the caller cannot give another one.
    Computed,
}

/// The form of a field's values.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// 64 lowercase hex characters.
    Hash,
    /// 64 lowercase hex characters: an Ed25519 public key that can sign.
    Key,
    /// 128 lowercase hex characters: an Ed25519 signature, valid or not.
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
    /// An array of at least one and at most this many different addresses.
    Addresses(usize),
    /// An array of at most 64 different strings, each of at most this many bytes.
    Names(usize),
    /// Bytes in standard base64 with padding.
    Base64,
    /// At most this many bytes in lowercase hex with the prefix `0x`.
    Hex(usize),
    /// An object with these members, all required.
    Object(&'static [FieldSpec]),
    /// An array of objects.
    Objects(ListLimit),
}

/// Which amounts are allowed.
#[derive(Clone, Copy, Debug)]
pub enum AmountLimit {
    /// Any amount.
    Any,
    /// More than 0.
    Positive,
    /// At least the value of a parameter of the chain.
    AtLeast(AmountParam),
}

/// A parameter of the chain that limits an amount.
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

    /// Its value in these parameters.
    #[must_use]
    pub const fn of(self, params: &Params) -> Amount {
        match self {
            Self::MinMaxFee => params.min_max_fee,
        }
    }
}

/// Which integers are allowed.
#[derive(Clone, Copy, Debug)]
pub struct IntegerLimit {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: IntegerMax,
    /// The unit: `tokens`, `ms`, `bytes`.
    pub unit: &'static str,
}

/// The largest value of an integer.
#[derive(Clone, Copy, Debug)]
pub enum IntegerMax {
    /// A number that the protocol fixes.
    Fixed(u64),
    /// `maxBlobBytes`, a parameter of the chain.
    MaxBlobBytes,
}

impl IntegerMax {
    /// The number, given the chain's parameters.
    #[must_use]
    pub const fn of(self, params: &Params) -> u64 {
        match self {
            Self::Fixed(max) => max,
            Self::MaxBlobBytes => params.max_blob_bytes,
        }
    }
}

impl IntegerLimit {
    /// 0 to 2^53−1, the integers that every JSON parser represents exactly.
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

/// Which strings are allowed.
#[derive(Clone, Copy, Debug)]
pub enum TextLimit {
    /// Strings with this many bytes of UTF-8.
    Bytes {
        /// The minimum.
        min: usize,
        /// The maximum.
        max: usize,
    },
    /// 1 to 128 characters of `[A-Za-z0-9_-]`.
    BlobId,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// Which arrays of objects are allowed.
#[derive(Clone, Copy, Debug)]
pub struct ListLimit {
    /// The members of one object, all required.
    pub members: &'static [FieldSpec],
    /// The maximum number of objects.
    pub max: usize,
}

/// At most 256 bytes: names, models, media types.
pub(crate) const LABEL: TextLimit = TextLimit::Bytes { min: 0, max: 256 };
/// At most 16,384 bytes: prompts, turns, answers.
pub(crate) const INLINE_TEXT: TextLimit =
    TextLimit::Bytes { min: 0, max: crate::params::INLINE_TEXT_BYTES_MAX };
