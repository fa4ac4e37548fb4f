//! Agents of the market: their ids and their metadata (docs/market.md).
//!
//! [`Document::read`] and [`Document::check`] apply the rules that the text alone decides.
//! [`Checked::pending`] lists the conditions that need the state; AGENT_REGISTER checks them.

mod describe;
mod executor;
mod fault;
mod limits;
mod metadata;
mod methods;
mod pending;
mod reference;
mod run;
mod version;

pub use executor::{BUILT_IN_TOOLS, Executor, ExecutorId, Tool};
pub use fault::MetadataFault;
pub use limits::{
    METADATA_BYTES_MAX, NESTING_MAX, PROGRAM_BYTES_MAX, REGISTER_FEE, REGISTER_FEE_PER_BYTE,
    ROYALTY_MAX,
};
pub use metadata::{Checked, Document, Metadata, ModelWork};
pub use pending::{Pending, Question};
pub use reference::is_image;
pub use version::{Version, VersionError};

#[cfg(test)]
mod tests;
