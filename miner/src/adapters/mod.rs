//! Where the parts meet: the engine's ports over the agent methods, the toolbox and the model inside
//! the process.

mod agents;
mod courses;
mod embedded;
mod hands;
mod served;

pub use agents::RunAgents;
pub use courses::Understanding;
pub use embedded::{Embedded, EmbeddedConfig, EmbeddedError, MarketModel};
pub use hands::Hands;
pub use served::ServedModel;

use crate::ports::Grant;
use crate::tools;

/// The same grant in the toolbox's words.
fn granted(grant: &Grant) -> tools::Grant {
    let Grant { tools, servers, is_reproducible } = grant.clone();
    tools::Grant { tools, servers, is_reproducible }
}
