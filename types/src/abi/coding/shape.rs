//! A type as writing and reading walk through it.

use super::super::{Base, Dimension, Parameter, Type};

/// The bytes of a word.
pub(super) const WORD: usize = 32;

/// A type, of whose dimensions some may have been walked through.
#[derive(Clone, Copy)]
pub(super) struct Shape<'t> {
    of_type: &'t Type,
    dimensions: &'t [Dimension],
}

/// What a value of a shape is made of.
pub(super) enum Form<'t> {
    Text,
    Bytes,
    Bool,
    Address,
    /// Its bits.
    Uint(u16),
    /// Its bits.
    Int(u16),
    /// Its bytes.
    FixedBytes(u16),
    Tuple(&'t [Parameter]),
    Array(Shape<'t>, Dimension),
}

impl<'t> Shape<'t> {
    pub(super) fn of(of_type: &'t Type) -> Self {
        Self { of_type, dimensions: of_type.name().dimensions() }
    }

    pub(super) fn form(self) -> Form<'t> {
        if let Some((outermost, dimensions)) = self.dimensions.split_last() {
            return Form::Array(Self { dimensions, ..self }, *outermost);
        }
        match self.of_type.name().base() {
            Base::String => Form::Text,
            Base::Bytes => Form::Bytes,
            Base::Bool => Form::Bool,
            Base::Address => Form::Address,
            Base::Uint(bits) => Form::Uint(bits),
            Base::Int(bits) => Form::Int(bits),
            Base::FixedBytes(bytes) => Form::FixedBytes(bytes),
            Base::Tuple => Form::Tuple(self.of_type.components()),
        }
    }

    /// Whether its values have no fixed number of words: a head has the place of such a value alone.
    pub(super) fn is_dynamic(self) -> bool {
        match self.form() {
            Form::Text | Form::Bytes | Form::Array(_, Dimension::Any) => true,
            Form::Bool | Form::Address | Form::Uint(_) | Form::Int(_) | Form::FixedBytes(_) => {
                false
            }
            Form::Tuple(components) => {
                components.iter().any(|component| Self::of(&component.of_type).is_dynamic())
            }
            Form::Array(element, Dimension::Fixed(_)) => element.is_dynamic(),
        }
    }

    /// How many words a value takes in a head: at least one.
    fn words(self) -> usize {
        if self.is_dynamic() {
            return 1;
        }
        match self.form() {
            Form::Text
            | Form::Bytes
            | Form::Bool
            | Form::Address
            | Form::Uint(_)
            | Form::Int(_)
            | Form::FixedBytes(_)
            | Form::Array(_, Dimension::Any) => 1,
            Form::Tuple(components) => Items::Each(components).head_words(),
            Form::Array(element, Dimension::Fixed(count)) => {
                element.words().saturating_mul(usize::from(count))
            }
        }
    }
}

/// Values that stand together: a head with a place for each, and what the places lead to.
#[derive(Clone, Copy)]
pub(super) enum Items<'t> {
    /// Parameters, or the components of a tuple.
    Each(&'t [Parameter]),
    /// The elements of an array.
    Same(Shape<'t>, usize),
}

impl<'t> Items<'t> {
    /// How many there are.
    pub(super) const fn count(self) -> usize {
        match self {
            Self::Each(parameters) => parameters.len(),
            Self::Same(_, count) => count,
        }
    }

    /// Their shapes in order.
    pub(super) fn shapes(self) -> impl Iterator<Item = Shape<'t>> {
        let (each, same) = match self {
            Self::Each(parameters) => (parameters, None),
            Self::Same(shape, count) => (Default::default(), Some((shape, count))),
        };
        let each = each.iter().map(|parameter| Shape::of(&parameter.of_type));
        each.chain(same.into_iter().flat_map(|(shape, count)| std::iter::repeat_n(shape, count)))
    }

    /// How many words their head has.
    pub(super) fn head_words(self) -> usize {
        match self {
            Self::Each(parameters) => {
                let words = parameters.iter().map(|it| Shape::of(&it.of_type).words());
                words.fold(0, usize::saturating_add)
            }
            Self::Same(shape, count) => shape.words().saturating_mul(count),
        }
    }
}
