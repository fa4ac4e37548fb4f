//! Files beside the model file, and what is in them.

use std::path::{Path, PathBuf};

use infer::file_sha256;

use super::FetchError;

/// The sha256 of a file, on a thread where it holds up nobody.
pub(super) async fn hashed(path: &Path) -> Result<String, FetchError> {
    let file = path.to_owned();
    blocking(move || file_sha256(&file).map_err(|source| FetchError::Read { path: file, source }))
        .await
}

/// Works on a thread where it holds up nobody.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
        Err(_) => Err(FetchError::Stopped),
    }
}

/// The file of the same name with another ending after its own.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}
