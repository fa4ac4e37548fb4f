//! Conditions of an agent's metadata that only the state decides.

use std::fmt;

use super::Version;
use super::limits::{NESTING_MAX, PROGRAM_BYTES_MAX};
use crate::Hash;

/// A condition that only the state can decide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// A JSON pointer to the place that the condition comes from.
    pub path: String,
    /// The rule of docs/market.md section 3 that is broken if the condition does not hold.
    pub rule: u8,
    /// The condition.
    pub question: Question,
}

/// A condition that only the state can decide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Question {
    /// The version has precedence over every earlier version of the agent.
    Newer(Version),
    /// The blob is final and not too large for a program.
    Program {
        /// The id of the blob.
        blob_id: String,
    },
    /// The agent has that version, the version is deterministic, and it nests so that the new
    /// version nests at most [`NESTING_MAX`] deep.
    Nested {
        /// The id of the agent.
        id: Hash,
        /// The version of the agent.
        version: Version,
    },
}

/// The condition in words.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer(version) => {
                write!(f, "{version} is greater than every earlier version of this agent")
            }
            Self::Program { blob_id } => {
                write!(f, "the blob {blob_id} is final, of at most {PROGRAM_BYTES_MAX} bytes")
            }
            Self::Nested { id, version } => write!(
                f,
                "the agent {id} has the version {version}, which is deterministic, and agents nest at \
                 most {NESTING_MAX} deep with this one"
            ),
        }
    }
}
