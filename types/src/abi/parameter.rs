//! Types of parameters, and parameters: an array of tuples has parameters in it again.

use std::fmt;

use super::name::{Base, TypeName};

/// How deep tuples can nest; a tuple that contains no tuple counts as 1.
pub const TUPLES_MAX: u8 = 8;

/// The type of a parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Type {
    name: TypeName,
    components: Vec<Parameter>,
    tuples: u8,
}

/// Why a name and components do not make a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TypeError {
    /// A tuple without components.
    #[error("a tuple needs components")]
    NoComponents,
    /// Components of a type that is not a tuple.
    #[error("only a tuple has components")]
    NoTuple,
    /// Tuples that nest too deep.
    #[error("tuples nest deeper than {TUPLES_MAX}")]
    Depth,
}

impl Type {
    /// The type with this name. Tuples have components; other types have none.
    ///
    /// # Errors
    /// [`TypeError`] if the name and the components do not match, or if tuples nest too deep.
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

    /// The name, including the dimensions: `uint256`, `tuple[2][]`.
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

/// The canonical text, as a signature contains it: `(address,uint256)[2]`.
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
    /// Its name. Empty if it has none.
    pub name: String,
    /// Its type.
    pub of_type: Type,
}

/// Appends types between brackets.
pub(super) fn push_list(parameters: &[Parameter], out: &mut String) {
    out.push('(');
    for (index, parameter) in parameters.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        parameter.of_type.push_to(out);
    }
    out.push(')');
}
