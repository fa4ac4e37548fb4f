//! The place of a value in a JSON text, as a JSON pointer (RFC 6901).

/// The place of a value: the steps from the outermost value to it.
#[derive(Clone, Copy, Debug)]
pub struct JsonPlace<'p> {
    parent: Option<&'p Self>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Outermost,
    Key(&'p str),
    Index(usize),
}

impl<'p> JsonPlace<'p> {
    /// The outermost value.
    pub const OUTERMOST: JsonPlace<'static> = JsonPlace { parent: None, step: Step::Outermost };

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

/// Appends a step of a JSON pointer (RFC 6901).
pub(super) fn push_key(key: &str, pointer: &mut String) {
    pointer.push('/');
    for character in key.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

#[cfg(test)]
mod tests;
