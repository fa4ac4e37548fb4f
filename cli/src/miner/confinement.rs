//! Confined programs: this program starts itself in their place, confines itself, and becomes them.

use std::ffi::OsString;

use agent::tools::sandbox::{self, Wrapper};

use crate::client::CliError;

/// Becomes a confined program; answers only why not.
pub(crate) fn confine(arguments: Vec<OsString>) -> CliError {
    match sandbox::enter(arguments) {
        Ok(never) => match never {},
        Err(error) => CliError::Failed(error.to_string()),
    }
}

/// How this program confines others.
pub(crate) fn wrapper() -> Result<Wrapper, CliError> {
    let program = std::env::current_exe()
        .map_err(|source| CliError::File { what: "this program".to_owned(), source })?;
    Ok(Wrapper { program, arguments: vec!["miner".into(), "sandbox".into()] })
}
