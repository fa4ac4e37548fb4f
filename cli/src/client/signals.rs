//! Signals that end the wait of a command.

use super::CliError;

/// What a future answers, or nothing if ctrl-C comes first: also while a call to the node runs.
pub(super) async fn until_interrupted<T>(
    work: impl Future<Output = T>,
) -> Result<Option<T>, CliError> {
    tokio::select! {
        answer = work => Ok(Some(answer)),
        signal = tokio::signal::ctrl_c() => {
            signal.map_err(|source| CliError::file("listening for ctrl-C", source))?;
            Ok(None)
        }
    }
}
