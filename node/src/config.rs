//! The node's settings, and where each value came from.
//!
//! A flag beats the environment (`OMBRA__SECTION__KEY`), which beats `config.toml`, which beats the
//! default of the command, which beats the default. A key that nobody knows is an error. Rules of
//! consensus are never here: they are in genesis.

mod check;
mod file;
mod home;
mod layers;
mod meanings;
mod settings;

pub use file::file_text;
pub use home::Home;
pub use layers::{
    CommandDefault, ConfigError, ConfigErrors, Effective, FlagValue, Origin, load, variables,
};
pub use meanings::MEANINGS;
pub use settings::{
    Config, Consensus, Log, LogFormat, P2p, Shutdown, Snapshots, Storage, Sync, Trusted,
};
