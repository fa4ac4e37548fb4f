//! Where a value stands in a JSON text, as a JSON pointer (RFC 6901).

use super::push_key;

/// The place of a value: the steps that lead to it from the outermost one.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    parent: Option<&'p Self>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Outermost,
    Key(&'p str),
    Index(usize),
}

impl<'p> Place<'p> {
    /// The outermost value.
    pub const OUTERMOST: Place<'static> = Place { parent: None, step: Step::Outermost };

    /// The member `key` of the object at this place.
    #[must_use]
    pub const fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    /// The item `index` of the array at this place.
    #[must_use]
    pub const fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// The JSON pointer: `""` for the outermost value, `/abi/0/name`.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut place = Some(self);
        while let Some(Self { parent, step }) = place {
            steps.push(*step);
            place = *parent;
        }
        let mut pointer = String::new();
        for step in steps.iter().rev() {
            match step {
                Step::Outermost => {}
                Step::Key(key) => push_key(key, &mut pointer),
                Step::Index(index) => push_key(&index.to_string(), &mut pointer),
            }
        }
        pointer
    }
}

#[cfg(test)]
mod tests;
