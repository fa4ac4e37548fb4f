//! What is wrong with a genesis: all of it, each fault with its place.

use std::fmt;

use types::text::shorten;

/// How many faults are told.
pub const FAULTS_MAX: usize = 100;

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GenesisFault {
    /// Where: `accounts[3].balance`; empty for the file as a whole.
    pub path: String,
    /// What stands there, shortened.
    pub got: String,
    /// What would be right.
    pub expected: String,
}

impl fmt::Display for GenesisFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, got, expected } = self;
        let path = if path.is_empty() { "the file" } else { path };
        write!(f, "{path}: {got}, expected {expected}")
    }
}

/// Everything that is wrong, in the order of the file's table, at most [`FAULTS_MAX`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults(Vec<GenesisFault>);

impl Faults {
    /// The faults.
    #[must_use]
    pub fn as_slice(&self) -> &[GenesisFault] {
        &self.0
    }

    pub(crate) fn add(
        &mut self,
        path: impl Into<String>,
        got: impl fmt::Display,
        expected: impl fmt::Display,
    ) {
        if self.0.len() < FAULTS_MAX {
            let (got, expected) = (shorten(&got.to_string()), expected.to_string());
            self.0.push(GenesisFault { path: path.into(), got, expected });
        }
    }

    /// Adds those whose place, or a part of it, has no fault yet.
    pub(crate) fn add_unless_told(&mut self, more: Self) {
        let told: Vec<String> = self.0.iter().map(|fault| fault.path.clone()).collect();
        for GenesisFault { path, got, expected } in more.0 {
            if !told.iter().any(|place| place.starts_with(&path)) {
                self.add(path, got, expected);
            }
        }
    }

    pub(crate) fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
