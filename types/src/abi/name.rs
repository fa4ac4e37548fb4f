//! Names of types: an elementary type or `tuple`, and the dimensions of an array behind it.

use std::fmt;

use super::{DIMENSIONS_MAX, ELEMENTS_MAX};

/// What a type is without its dimensions.
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
    /// `uint8` to `uint256`: its bits.
    Uint(u16),
    /// `int8` to `int256`: its bits.
    Int(u16),
    /// `bytes1` to `bytes32`: its bytes.
    FixedBytes(u16),
    /// `tuple`, whose components stand beside it.
    Tuple,
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Bool => f.write_str("bool"),
            Self::Address => f.write_str("address"),
            Self::Uint(bits) => write!(f, "uint{bits}"),
            Self::Int(bits) => write!(f, "int{bits}"),
            Self::FixedBytes(bytes) => write!(f, "bytes{bytes}"),
            Self::Tuple => f.write_str("tuple"),
        }
    }
}

/// A dimension of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dimension {
    /// `[]`: as many elements as there are.
    Any,
    /// `[N]`: so many.
    Fixed(u16),
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("[]"),
            Self::Fixed(elements) => write!(f, "[{elements}]"),
        }
    }
}

/// What is wrong with the name of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TypeNameError {
    /// No type has that name.
    #[error(
        "string, bytes, bool, address, uint8 to uint256, int8 to int256, bytes1 to bytes32 or tuple"
    )]
    Base,
    /// What follows the type is no dimension of an array.
    #[error("[] or [1] to [{ELEMENTS_MAX}] after the type")]
    Dimension,
    /// There are more dimensions than an array may have.
    #[error("at most {DIMENSIONS_MAX} dimensions of an array")]
    Dimensions,
}

/// The name of a type that the chain takes: `uint256`, `tuple[2][]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeName {
    base: Base,
    dimensions: Vec<Dimension>,
}

impl TypeName {
    /// Reads a name. `uint` and `int` are `uint256` and `int256`.
    ///
    /// # Errors
    /// [`TypeNameError`] says what was expected.
    pub fn parse(text: &str) -> Result<Self, TypeNameError> {
        let end = text.find('[').unwrap_or(text.len());
        let (base, mut rest) = text.split_at_checked(end).ok_or(TypeNameError::Base)?;
        let base = parse_base(base).ok_or(TypeNameError::Base)?;
        let mut dimensions = Vec::new();
        while !rest.is_empty() {
            let (elements, behind) = rest
                .strip_prefix('[')
                .and_then(|open| open.split_once(']'))
                .ok_or(TypeNameError::Dimension)?;
            if dimensions.len() >= DIMENSIONS_MAX {
                return Err(TypeNameError::Dimensions);
            }
            dimensions.push(match elements {
                "" => Dimension::Any,
                _ => number(elements, ELEMENTS_MAX)
                    .map(Dimension::Fixed)
                    .ok_or(TypeNameError::Dimension)?,
            });
            rest = behind;
        }
        Ok(Self { base, dimensions })
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

    /// The dimensions in the order of the text; the last one is the outermost.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.base, f)?;
        self.dimensions.iter().try_for_each(|dimension| fmt::Display::fmt(dimension, f))
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
