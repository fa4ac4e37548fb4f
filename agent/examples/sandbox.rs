//! Confines itself and becomes another program, as `ombra miner sandbox` does: the tests start MCP
//! servers through it.

use std::convert::Infallible;

use agent::tools::sandbox::{SandboxError, enter};

fn main() -> Result<Infallible, SandboxError> {
    enter(std::env::args_os().skip(1))
}
