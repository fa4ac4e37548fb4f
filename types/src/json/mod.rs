//! JSON as the protocol needs it (docs/protocol.md section 3): it keeps the order of keys and the
//! literal text of numbers, rejects duplicate keys, and has exactly one written form.

mod parse;
mod place;
mod reader;
mod repeats;
mod tape;
mod value;
mod write;

pub(crate) use parse::{Bounds, parse_canonical};
pub use parse::{JsonError, parse};
pub use place::JsonPlace;
pub use reader::{Located, Manner, parse_tape};
pub(crate) use repeats::Repeats;
pub use tape::{Items, Members, Tape, Value};
pub use value::Json;
pub use write::{ObjectWriter, write_string};

#[cfg(test)]
mod tests;
