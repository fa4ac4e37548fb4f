//! What is wrong with the settings of the tools.

use std::fmt;

use super::tool::shortened;

/// One fault of the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is {value}: expected {expected}")]
pub struct ConfigFault {
    /// The setting, as it is written in the file, without the section that holds all of them.
    pub setting: String,
    /// What it is.
    pub value: String,
    /// What was expected.
    pub expected: String,
}

/// Every fault of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFaults(pub Vec<ConfigFault>);

impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "tools.{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigFaults {}

/// Collects faults.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<ConfigFault>);

impl Faults {
    /// All of them.
    ///
    /// # Errors
    /// When there is one.
    pub(super) fn end(self) -> Result<(), ConfigFaults> {
        if self.0.is_empty() { Ok(()) } else { Err(ConfigFaults(self.0)) }
    }

    /// One more.
    pub(super) fn add(
        &mut self,
        setting: impl Into<String>,
        value: impl ToString,
        expected: impl Into<String>,
    ) {
        let (setting, value) = (setting.into(), value.to_string());
        self.0.push(ConfigFault { setting, value, expected: expected.into() });
    }
}

/// A text as it stands in a message.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}
