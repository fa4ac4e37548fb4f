//! How the values of fields are read, written and checked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::declare::Members;
use super::fields::Fields;
use super::spec::{AmountLimit, FieldSpec, IntegerLimit, ListLimit, TextLimit};
use super::static_view::StaticView;
use crate::json::ObjectWriter;
use crate::{Address, Amount, Hash, PublicKey, Rejection, Signature};

/// The most entries of a list of names.
const NAMES_MAX: usize = 64;
/// The most bytes of a name.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// A value that a field can have.
pub(crate) trait Value: Sized {
    /// What a declaration may limit.
    type Limit;

    /// Reads the required member `name`. Errors are MALFORMED.
    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection>;

    /// Writes the member `name`.
    fn write(&self, name: &str, out: &mut ObjectWriter<'_>);

    /// Checks what the declaration says of the field. Errors are INVALID_FIELD.
    fn check(
        &self,
        name: &'static str,
        limit: &Self::Limit,
        view: &StaticView<'_>,
    ) -> Result<(), Rejection> {
        let _ = (name, limit, view);
        Ok(())
    }
}

/// Reads the optional member `name`.
pub(crate) fn read_optional<T: Value>(
    fields: &Fields<'_, '_>,
    name: &str,
) -> Result<Option<T>, Rejection> {
    if fields.has(name) { T::read(fields, name).map(Some) } else { Ok(None) }
}

impl Value for Hash {
    type Limit = ();

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        fields.hash(name)
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.display(name, self);
    }
}

impl Value for PublicKey {
    type Limit = ();

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        fields.parsed(name)
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.display(name, self);
    }

    fn check(&self, name: &'static str, (): &(), _: &StaticView<'_>) -> Result<(), Rejection> {
        if self.can_sign() {
            return Ok(());
        }
        Err(Rejection::invalid(name, self, "an Ed25519 key that can sign"))
    }
}

impl Value for Signature {
    type Limit = ();

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        fields.parsed(name)
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.display(name, self);
    }
}

/// An address together with the text that the signer wrote, which the signature covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenAddress {
    /// The account.
    pub address: Address,
    /// With or without the prefix `ox`.
    pub text: String,
}

impl From<Address> for WrittenAddress {
    /// The form without the prefix.
    fn from(address: Address) -> Self {
        Self { address, text: address.to_string() }
    }
}

impl Value for WrittenAddress {
    type Limit = ();

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        Ok(Self { address: fields.parsed(name)?, text: fields.string(name)? })
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.string(name, &self.text);
    }
}

impl Value for Amount {
    type Limit = AmountLimit;

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        fields.amount(name)
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.display(name, self);
    }

    fn check(
        &self,
        name: &'static str,
        limit: &AmountLimit,
        view: &StaticView<'_>,
    ) -> Result<(), Rejection> {
        match limit {
            AmountLimit::Any => Ok(()),
            AmountLimit::Positive if self.is_zero() => {
                Err(Rejection::invalid(name, self, "more than 0"))
            }
            AmountLimit::Positive => Ok(()),
            AmountLimit::AtLeast(param) => {
                let least = param.of(view.params);
                if *self >= least {
                    return Ok(());
                }
                Err(Rejection::invalid(name, self, format_args!("at least {least}")))
            }
        }
    }
}

impl Value for u64 {
    type Limit = IntegerLimit;

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        fields.integer(name)
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.integer(name, *self);
    }

    fn check(
        &self,
        name: &'static str,
        limit: &IntegerLimit,
        view: &StaticView<'_>,
    ) -> Result<(), Rejection> {
        let (min, max) = (limit.min, limit.max.of(view.params));
        if (min..=max).contains(self) {
            return Ok(());
        }
        Err(Rejection::invalid(name, self, format_args!("{min} to {max}")))
    }
}

impl Value for bool {
    type Limit = ();

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        fields.boolean(name)
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.boolean(name, *self);
    }
}

impl Value for String {
    type Limit = TextLimit;

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        fields.string(name)
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.string(name, self);
    }

    fn check(
        &self,
        name: &'static str,
        limit: &TextLimit,
        _: &StaticView<'_>,
    ) -> Result<(), Rejection> {
        match *limit {
            TextLimit::Bytes { min, max } => check_bytes(name, self, min, max),
            TextLimit::BlobId => check_blob_id(name, self),
            TextLimit::OneOf(words) if words.contains(&self.as_str()) => Ok(()),
            TextLimit::OneOf(words) => {
                let expected = format_args!("one of {}", words.join(", "));
                Err(Rejection::invalid(name, format_args!("{self:?}"), expected))
            }
        }
    }
}

pub(super) fn check_bytes(
    name: &'static str,
    text: &str,
    min: usize,
    max: usize,
) -> Result<(), Rejection> {
    let bytes = text.len();
    if bytes > max {
        let expected = format_args!("at most {max} bytes");
        return Err(Rejection::invalid(name, format_args!("{bytes} bytes"), expected));
    }
    if bytes >= min {
        return Ok(());
    }
    let expected = format_args!("{min} to {max} bytes");
    if bytes == 0 {
        return Err(Rejection::invalid(name, "empty", expected));
    }
    Err(Rejection::invalid(name, format_args!("{bytes} bytes"), expected))
}

fn check_blob_id(name: &'static str, id: &str) -> Result<(), Rejection> {
    if is_blob_id(id) {
        return Ok(());
    }
    Err(Rejection::invalid(name, format_args!("{id:?}"), BLOB_ID))
}

/// What [`is_blob_id`] accepts, for messages.
pub(crate) const BLOB_ID: &str = "1 to 128 characters of [A-Za-z0-9_-]";

/// Whether a text can be the id of a blob.
pub(crate) fn is_blob_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=128).contains(&id.len()) && id.bytes().all(is_plain)
}

fn check_count<T>(name: &'static str, items: &[T], max: usize) -> Result<(), Rejection> {
    if items.len() <= max {
        return Ok(());
    }
    let got = format_args!("{} entries", items.len());
    Err(Rejection::invalid(name, got, format_args!("at most {max} entries")))
}

/// A list of names.
impl Value for Vec<String> {
    type Limit = usize;

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        fields.strings(name)
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.strings(name, self);
    }

    fn check(&self, name: &'static str, max: &usize, _: &StaticView<'_>) -> Result<(), Rejection> {
        check_count(name, self, NAMES_MAX)?;
        for (index, entry) in self.iter().enumerate() {
            check_bytes(name, entry, 0, *max)?;
            if self.iter().take(index).any(|earlier| earlier == entry) {
                let got = format_args!("{entry:?} twice");
                return Err(Rejection::invalid(name, got, "each entry once"));
            }
        }
        Ok(())
    }
}

/// A list of accounts.
impl Value for Vec<WrittenAddress> {
    type Limit = usize;

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        let texts = fields.strings(name)?;
        let read = |text: String| match Address::parse(&text) {
            Ok(address) => Ok(WrittenAddress { address, text }),
            Err(fault) => Err(Rejection::malformed(name.to_owned(), fault.got, fault.expected)),
        };
        texts.into_iter().map(read).collect()
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        let texts: Vec<String> = self.iter().map(|address| address.text.clone()).collect();
        out.strings(name, &texts);
    }

    fn check(&self, name: &'static str, max: &usize, _: &StaticView<'_>) -> Result<(), Rejection> {
        check_count(name, self, *max)?;
        if self.is_empty() {
            return Err(Rejection::invalid(name, "empty", "at least one address"));
        }
        for (index, entry) in self.iter().enumerate() {
            if self.iter().take(index).any(|earlier| earlier.address == entry.address) {
                let got = format_args!("{} twice", entry.address);
                return Err(Rejection::invalid(name, got, "each address once"));
            }
        }
        Ok(())
    }
}

/// Bytes in base64.
impl Value for Vec<u8> {
    type Limit = ();

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        let text = fields.text(name)?;
        STANDARD.decode(text).map_err(|e| {
            let got = format_args!("{} characters with a fault: {e}", text.len());
            Rejection::malformed(name.to_owned(), got, "standard base64 with padding")
        })
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.string(name, &STANDARD.encode(self));
    }
}

/// Bytes in lowercase hex with the prefix `0x`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HexBytes(pub Vec<u8>);

impl HexBytes {
    const PREFIX: &'static str = "0x";

    /// Parses the written form; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::PREFIX)?;
        let is_lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if !digits.bytes().all(is_lower) {
            return None;
        }
        const_hex::decode(digits).ok().map(Self)
    }
}

impl std::fmt::Display for HexBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&const_hex::encode_prefixed(&self.0))
    }
}

impl Value for HexBytes {
    type Limit = usize;

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        let text = fields.text(name)?;
        Self::parse(text).ok_or_else(|| {
            let expected = "0x and an even number of lowercase hex characters";
            Rejection::malformed(name.to_owned(), format_args!("{text:?}"), expected)
        })
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.string(name, &self.to_string());
    }

    fn check(&self, name: &'static str, max: &usize, _: &StaticView<'_>) -> Result<(), Rejection> {
        let bytes = self.0.len();
        if bytes <= *max {
            return Ok(());
        }
        let expected = format_args!("at most {max} bytes");
        Err(Rejection::invalid(name, format_args!("{bytes} bytes"), expected))
    }
}

impl<T: Members> Value for T {
    type Limit = &'static [FieldSpec];

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        fields.object(name, T::read)
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.object(name, |object| {
            self.write_required(object);
            self.write_optional(object);
        });
    }

    fn check(
        &self,
        name: &'static str,
        _: &Self::Limit,
        view: &StaticView<'_>,
    ) -> Result<(), Rejection> {
        self.check_members(view).map_err(|rejection| rejection.within(name))
    }
}

impl<T: Members> Value for Vec<T> {
    type Limit = ListLimit;

    fn read(fields: &Fields<'_, '_>, name: &str) -> Result<Self, Rejection> {
        fields.objects(name, T::read)
    }

    fn write(&self, name: &str, out: &mut ObjectWriter<'_>) {
        out.objects(name, self, |item, object| {
            item.write_required(object);
            item.write_optional(object);
        });
    }

    fn check(
        &self,
        name: &'static str,
        limit: &ListLimit,
        view: &StaticView<'_>,
    ) -> Result<(), Rejection> {
        check_count(name, self, limit.max)?;
        for (index, item) in self.iter().enumerate() {
            item.check_members(view)
                .map_err(|rejection| rejection.within(format_args!("{name}[{index}]")))?;
        }
        Ok(())
    }
}
