//! Types, methods and selectors of Solidity's application binary interface, as far as agents have them
//! (docs/market.md section 4).
//!
//! A [`Type`] is one that the chain takes: at most four dimensions, tuples at most eight deep. So
//! whatever goes through one has bounded depth.

mod coding;
mod identifier;
mod name;

use std::fmt;

use sha3::{Digest, Keccak256};

pub use coding::{VALUES_BYTES_MAX, ValueError, value_names};
pub use identifier::{is_identifier, is_reserved};
pub use name::{Base, Dimension, TypeName, TypeNameError};

/// The most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 4;
/// The most elements of an array that has a fixed number.
pub const ELEMENTS_MAX: u16 = 1_024;
/// How deep tuples nest; a tuple of no tuples is 1.
pub const TUPLES_MAX: u8 = 8;

/// Keccak-256, as Ethereum has it.
#[must_use]
pub fn keccak256(bytes: &[u8]) -> [u8; 32] {
    Keccak256::digest(bytes).into()
}

/// A type of a parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Type {
    name: TypeName,
    components: Vec<Parameter>,
    tuples: u8,
}

/// Why a type cannot be made of its name and components.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TypeError {
    /// A tuple without components.
    #[error("a tuple needs components")]
    NoComponents,
    /// Components of something else.
    #[error("only a tuple has components")]
    NoTuple,
    /// Tuples nest too deep.
    #[error("tuples nest deeper than {TUPLES_MAX}")]
    Depth,
}

impl Type {
    /// The type of that name; tuples, and nothing else, have components.
    ///
    /// # Errors
    /// [`TypeError`] where name and components do not fit, or tuples nest too deep.
    pub fn new(name: TypeName, components: Vec<Parameter>) -> Result<Self, TypeError> {
        match (name.base(), components.is_empty()) {
            (Base::Tuple, true) => return Err(TypeError::NoComponents),
            (Base::Tuple, false) | (_, true) => {}
            (_, false) => return Err(TypeError::NoTuple),
        }
        let below = components.iter().map(|component| component.of_type.tuples).max();
        let tuples = below.map_or(0, |below| below.saturating_add(1));
        if tuples > TUPLES_MAX {
            return Err(TypeError::Depth);
        }
        Ok(Self { name, components, tuples })
    }

    /// The name with its dimensions: `uint256`, `tuple[2][]`.
    #[must_use]
    pub const fn name(&self) -> &TypeName {
        &self.name
    }

    /// The components of a tuple.
    #[must_use]
    pub fn components(&self) -> &[Parameter] {
        &self.components
    }
}

impl Type {
    /// Appends the canonical text.
    fn push_to(&self, out: &mut String) {
        if let Base::Tuple = self.name.base() {
            push_list(&self.components, out);
        } else {
            self.name.base().push_to(out);
        }
        self.name.dimensions().iter().for_each(|dimension| dimension.push_to(out));
    }
}

/// The canonical text, as it stands in a signature: `(address,uint256)[2]`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.push_to(&mut text);
        f.write_str(&text)
    }
}

/// An input, an output, or a component of a tuple.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name, or nothing.
    pub name: String,
    /// Its type.
    pub of_type: Type,
}

/// A method of an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub inputs: Vec<Parameter>,
    /// What it answers.
    pub outputs: Vec<Parameter>,
}

impl Method {
    /// The canonical signature: `inferChat(string[],string[],bool)`.
    #[must_use]
    pub fn signature(&self) -> String {
        let mut signature = self.name.clone();
        push_list(&self.inputs, &mut signature);
        signature
    }

    /// The types of what it answers: `(string,bytes[])`.
    #[must_use]
    pub fn answers(&self) -> String {
        let mut answers = String::new();
        push_list(&self.outputs, &mut answers);
        answers
    }

    /// The first four bytes of the signature's Keccak-256, with which the payload of a call begins.
    #[must_use]
    pub fn selector(&self) -> Selector {
        let [a, b, c, d, ..] = keccak256(self.signature().as_bytes());
        Selector([a, b, c, d])
    }
}

/// What tells a method from others in the payload of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector(pub [u8; 4]);

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(const_hex::Buffer::<4, true>::new().format(&self.0))
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Appends types between brackets.
fn push_list(parameters: &[Parameter], out: &mut String) {
    out.push('(');
    for (index, parameter) in parameters.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        parameter.of_type.push_to(out);
    }
    out.push(')');
}

#[cfg(test)]
mod tests;
