//! The settings of a model file: names with values.

use std::collections::BTreeMap;
use std::io::Read;

use super::Source;
use crate::error::FileError;

/// The space to which tensors are aligned where the file does not say.
const ALIGNMENT: u64 = 32;
/// The largest alignment that makes sense.
const ALIGNMENT_MAX: u64 = 64 * 1024;

/// The most elements of a list; vocabularies seen have some hundred thousand.
const LIST_MAX: u64 = 1 << 22;

/// One setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Integer(i128),
    Float(f64),
    Bool(bool),
    Text(String),
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

impl Value {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a floating-point number",
            Self::Bool(_) => "true or false",
            Self::Text(_) => "a text",
            Self::Integers(_) => "a list of whole numbers",
            Self::Floats(_) => "a list of floating-point numbers",
            Self::Texts(_) => "a list of texts",
        }
    }
}

/// The settings by name.
#[derive(Debug, Default)]
pub(crate) struct Metadata(BTreeMap<String, Value>);

impl Metadata {
    pub(super) fn read<R: Read>(source: &mut Source<R>, count: u64) -> Result<Self, FileError> {
        let mut settings = BTreeMap::new();
        for _ in 0..count {
            let offset = source.position();
            let name = source.name("the name of a setting")?;
            let value = read_value(source)?;
            if settings.insert(name.clone(), value).is_some() {
                return Err(FileError::Twice { offset, name });
            }
        }
        Ok(Self(settings))
    }

    pub(crate) fn optional(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    fn wrong(name: &str, value: Option<&Value>, expected: &'static str) -> FileError {
        let found = value.map_or("nothing", Value::kind);
        FileError::Setting { name: name.to_owned(), expected, found }
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str, FileError> {
        match self.optional(name) {
            Some(Value::Text(text)) => Ok(text),
            value => Err(Self::wrong(name, value, "a text")),
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Result<&[String], FileError> {
        match self.optional(name) {
            Some(Value::Texts(texts)) => Ok(texts),
            value => Err(Self::wrong(name, value, "a list of texts")),
        }
    }

    pub(crate) fn integers(&self, name: &str) -> Result<&[i64], FileError> {
        match self.optional(name) {
            Some(Value::Integers(integers)) => Ok(integers),
            value => Err(Self::wrong(name, value, "a list of whole numbers")),
        }
    }

    /// A finite number above 0.
    pub(crate) fn positive(&self, name: &str) -> Result<f64, FileError> {
        match self.optional(name) {
            Some(Value::Float(float)) if float.is_finite() && *float > 0.0 => Ok(*float),
            value => Err(Self::wrong(name, value, "a finite floating-point number above 0")),
        }
    }

    /// A whole number in `min..=max`.
    pub(crate) fn number(&self, name: &str, min: u32, max: u32) -> Result<usize, FileError> {
        let value = match self.optional(name) {
            Some(Value::Integer(value)) => *value,
            value => return Err(Self::wrong(name, value, "a whole number")),
        };
        if !(i128::from(min)..=i128::from(max)).contains(&value) {
            return Err(FileError::Range { name: name.to_owned(), value, min, max });
        }
        Ok(value as usize)
    }

    pub(super) fn alignment(&self) -> Result<u64, FileError> {
        const NAME: &str = "general.alignment";
        if self.optional(NAME).is_none() {
            return Ok(ALIGNMENT);
        }
        let alignment = self.number(NAME, 8, ALIGNMENT_MAX as u32)? as u64;
        if !alignment.is_power_of_two() {
            return Err(FileError::Alignment { found: alignment });
        }
        Ok(alignment)
    }
}

/// The numbers that stand for types in the file.
#[derive(Clone, Copy)]
enum Scalar {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    U64,
    I64,
    F64,
}

const ARRAY: u32 = 9;

impl Scalar {
    fn of(number: u32, offset: u64) -> Result<Self, FileError> {
        Ok(match number {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::Text,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            found => return Err(FileError::ValueType { offset, found }),
        })
    }

    /// The fewest bytes of a value.
    const fn bytes_min(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::Text | Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    fn read<R: Read>(self, source: &mut Source<R>) -> Result<Value, FileError> {
        const WHAT: &str = "a value";
        let offset = source.position();
        Ok(match self {
            Self::U8 => Value::Integer(u8::from_le_bytes(source.array(WHAT)?).into()),
            Self::I8 => Value::Integer(i8::from_le_bytes(source.array(WHAT)?).into()),
            Self::U16 => Value::Integer(u16::from_le_bytes(source.array(WHAT)?).into()),
            Self::I16 => Value::Integer(i16::from_le_bytes(source.array(WHAT)?).into()),
            Self::U32 => Value::Integer(u32::from_le_bytes(source.array(WHAT)?).into()),
            Self::I32 => Value::Integer(i32::from_le_bytes(source.array(WHAT)?).into()),
            Self::U64 => Value::Integer(u64::from_le_bytes(source.array(WHAT)?).into()),
            Self::I64 => Value::Integer(i64::from_le_bytes(source.array(WHAT)?).into()),
            Self::F32 => Value::Float(f32::from_le_bytes(source.array(WHAT)?).into()),
            Self::F64 => Value::Float(f64::from_le_bytes(source.array(WHAT)?)),
            Self::Text => Value::Text(source.text(WHAT)?),
            Self::Bool => match source.array(WHAT)? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                [found] => return Err(FileError::NotBool { offset, found }),
            },
        })
    }
}

fn read_value<R: Read>(source: &mut Source<R>) -> Result<Value, FileError> {
    let offset = source.position();
    let number = source.u32("the type of a setting")?;
    if number == ARRAY { read_array(source) } else { Scalar::of(number, offset)?.read(source) }
}

fn read_array<R: Read>(source: &mut Source<R>) -> Result<Value, FileError> {
    let offset = source.position();
    let scalar = Scalar::of(source.u32("the type of a list")?, offset)?;
    let count = source.count("elements of a list", LIST_MAX)?;
    let count = source.bounded("a list", count, scalar.bytes_min())?;
    let mut list = match scalar {
        Scalar::F32 | Scalar::F64 => Value::Floats(Vec::with_capacity(count)),
        Scalar::Text => Value::Texts(Vec::with_capacity(count)),
        Scalar::U8
        | Scalar::I8
        | Scalar::U16
        | Scalar::I16
        | Scalar::U32
        | Scalar::I32
        | Scalar::U64
        | Scalar::I64
        | Scalar::Bool => Value::Integers(Vec::with_capacity(count)),
    };
    for _ in 0..count {
        let offset = source.position();
        match (&mut list, scalar.read(source)?) {
            (Value::Texts(texts), Value::Text(text)) => texts.push(text),
            (Value::Floats(floats), Value::Float(float)) => floats.push(float),
            (Value::Integers(integers), Value::Bool(value)) => integers.push(value.into()),
            (Value::Integers(integers), Value::Integer(value)) => {
                let value = i64::try_from(value);
                integers.push(value.map_err(|source| FileError::ListValue { offset, source })?);
            }
            _ => return Err(FileError::ValueType { offset, found: ARRAY }),
        }
    }
    Ok(list)
}
