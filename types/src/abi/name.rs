//! Names of types: an elementary type or `tuple`, followed by the dimensions of an array.

use std::fmt;

/// The most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 4;
/// The most elements of an array of fixed length.
pub const ELEMENTS_MAX: u16 = 1_024;

/// A type without its array dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `bool`.
    Bool,
    /// `address`.
    Address,
    /// `uint8` to `uint256`, with the number of bits.
    Uint(u16),
    /// `int8` to `int256`, with the number of bits.
    Int(u16),
    /// `bytes1` to `bytes32`, with the number of bytes.
    FixedBytes(u16),
    /// `tuple`; its components are not part of the name.
    Tuple,
}

impl Base {
    /// The name without the size, and the size.
    const fn parts(self) -> (&'static str, Option<u16>) {
        match self {
            Self::String => ("string", None),
            Self::Bytes => ("bytes", None),
            Self::Bool => ("bool", None),
            Self::Address => ("address", None),
            Self::Uint(bits) => ("uint", Some(bits)),
            Self::Int(bits) => ("int", Some(bits)),
            Self::FixedBytes(bytes) => ("bytes", Some(bytes)),
            Self::Tuple => ("tuple", None),
        }
    }

    /// Appends the name. Signatures use this instead of [`fmt::Display`], because a signature can
    /// have thousands of types.
    pub(super) fn push_to(self, out: &mut String) {
        let (name, size) = self.parts();
        out.push_str(name);
        if let Some(size) = size {
            push_number(size, out);
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, size) = self.parts();
        f.write_str(name)?;
        size.map_or(Ok(()), |size| write!(f, "{size}"))
    }
}

/// Appends a number of at most four digits.
fn push_number(number: u16, out: &mut String) {
    let digits = [number / 1_000, number / 100, number / 10, number];
    let is_written = |digit: &&u16| **digit > 0;
    for digit in digits.iter().filter(is_written) {
        out.extend(char::from_digit(u32::from(digit % 10), 10));
    }
}

/// A dimension of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dimension {
    /// `[]`: any number of elements.
    Any,
    /// `[N]`: exactly this many elements.
    Fixed(u16),
}

impl Dimension {
    /// Appends the dimension as it is written.
    pub(super) fn push_to(self, out: &mut String) {
        out.push('[');
        if let Self::Fixed(elements) = self {
            push_number(elements, out);
        }
        out.push(']');
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("[]"),
            Self::Fixed(elements) => write!(f, "[{elements}]"),
        }
    }
}

/// Why a text is not the name of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TypeNameError {
    /// There is no type with this name.
    #[error(
        "string, bytes, bool, address, uint8 to uint256, int8 to int256, bytes1 to bytes32 or tuple"
    )]
    Base,
    /// The text after the type is not an array dimension.
    #[error("[] or [1] to [{ELEMENTS_MAX}] after the type")]
    Dimension,
    /// The array has too many dimensions.
    #[error("at most {DIMENSIONS_MAX} dimensions of an array")]
    Dimensions,
}

/// The name of a type that the chain accepts: `uint256`, `tuple[2][]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeName {
    base: Base,
    /// The unused dimensions at the end are [`Dimension::Any`].
    dimensions: [Dimension; DIMENSIONS_MAX],
    count: u8,
}

impl TypeName {
    /// Parses a name. `uint` and `int` mean `uint256` and `int256`.
    ///
    /// # Errors
    /// [`TypeNameError`] says what was expected.
    pub fn parse(text: &str) -> Result<Self, TypeNameError> {
        let end = text.find('[').unwrap_or(text.len());
        let (base, mut rest) = text.split_at_checked(end).ok_or(TypeNameError::Base)?;
        let base = parse_base(base).ok_or(TypeNameError::Base)?;
        let mut dimensions = [Dimension::Any; DIMENSIONS_MAX];
        let mut count: u8 = 0;
        while !rest.is_empty() {
            let (elements, behind) = rest
                .strip_prefix('[')
                .and_then(|open| open.split_once(']'))
                .ok_or(TypeNameError::Dimension)?;
            let place = dimensions.get_mut(usize::from(count)).ok_or(TypeNameError::Dimensions)?;
            *place = match elements {
                "" => Dimension::Any,
                _ => number(elements, ELEMENTS_MAX)
                    .map(Dimension::Fixed)
                    .ok_or(TypeNameError::Dimension)?,
            };
            count = count.saturating_add(1);
            rest = behind;
        }
        Ok(Self { base, dimensions, count })
    }

    /// The type of the elements.
    #[must_use]
    pub const fn base(&self) -> Base {
        self.base
    }

    /// Whether it is a tuple, or an array of tuples.
    #[must_use]
    pub const fn is_tuple(&self) -> bool {
        matches!(self.base, Base::Tuple)
    }

    /// The dimensions in the order of the text. The last one is the outermost.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        self.dimensions.get(..usize::from(self.count)).unwrap_or_default()
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.base, f)?;
        self.dimensions().iter().try_for_each(|dimension| fmt::Display::fmt(dimension, f))
    }
}

fn parse_base(text: &str) -> Option<Base> {
    match text {
        "string" => Some(Base::String),
        "bytes" => Some(Base::Bytes),
        "bool" => Some(Base::Bool),
        "address" => Some(Base::Address),
        "tuple" => Some(Base::Tuple),
        "uint" => Some(Base::Uint(256)),
        "int" => Some(Base::Int(256)),
        _ => {
            let bits = |text| number(text, 256).filter(|bits| bits % 8 == 0);
            if let Some(digits) = text.strip_prefix("uint") {
                bits(digits).map(Base::Uint)
            } else if let Some(digits) = text.strip_prefix("int") {
                bits(digits).map(Base::Int)
            } else {
                number(text.strip_prefix("bytes")?, 32).map(Base::FixedBytes)
            }
        }
    }
}

/// A number from 1 to `max` in its shortest form.
fn number(digits: &str, max: u16) -> Option<u16> {
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok()?;
    (is_plain && (1..=max).contains(&number)).then_some(number)
}
