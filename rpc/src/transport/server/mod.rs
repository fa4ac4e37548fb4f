//! Listeners: binding, serving, stopping in order, and who is let in.

mod admin_socket;
mod clients;
mod error;
mod frames;
mod io;
mod listener;
mod local;
mod monitoring;
mod origin_check;
mod pace;
mod parts;
mod routes;
mod run;
mod start;
mod write_timeout;

pub use error::StartError;
pub use local::Local;
pub use monitoring::serve_monitoring;
pub use run::Server;
pub use start::start;
