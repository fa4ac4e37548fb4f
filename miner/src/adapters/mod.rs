//! Where the parts meet: the engine's ports over the agent methods and the toolbox, and agents of the
//! market as tools.

mod agents;
mod sessions;
mod tool_runner;

pub use agents::RunAgents;
pub use sessions::Understanding;
pub use tool_runner::ToolRunner;
