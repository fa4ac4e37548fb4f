//! Key files: the 32 bytes of a seed as 64 lowercase hex characters and a line end, readable by
//! their owner only.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wallet::Zeroizing;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read or written.
    #[error("key file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It does not hold a key.
    #[error("key file {} does not hold 64 lowercase hex characters", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// Others may read it.
    #[error("key file {} can be read by others (mode {mode:03o}); set it to 600", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system has no randomness.
    #[error("cannot get random bytes for a new key: {0}")]
    Random(getrandom::Error),
}

/// Reads the seed in `path`.
///
/// # Errors
/// [`KeyFileError`].
pub fn read(path: &Path) -> Result<[u8; 32], KeyFileError> {
    let io = |source| KeyFileError::Io { path: path.to_owned(), source };
    let mode = std::fs::metadata(path).map_err(io)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed { path: path.to_owned(), mode });
    }
    let text = std::fs::read_to_string(path).map_err(io)?;
    types::Hash::parse(text.trim_end())
        .map(|seed| *seed.as_bytes())
        .map_err(|_not_hex| KeyFileError::Malformed { path: path.to_owned() })
}

/// Makes a new key and writes it to `path`, which must not exist; its folder is made. The file
/// appears whole or not at all.
///
/// # Errors
/// [`KeyFileError`].
pub fn create(path: &Path) -> Result<[u8; 32], KeyFileError> {
    let io = |source| KeyFileError::Io { path: path.to_owned(), source };
    let mut seed = [0_u8; 32];
    getrandom::fill(&mut seed).map_err(KeyFileError::Random)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(io)?;
    }
    let text = Zeroizing::new(format!("{}\n", types::Hash::new(seed)));
    wallet::write_new_file(path, text.as_bytes(), 0o600).map_err(io)?;
    Ok(seed)
}

/// The key in `path`, made if there is none.
///
/// # Errors
/// [`KeyFileError`].
pub fn read_or_create(path: &Path) -> Result<[u8; 32], KeyFileError> {
    if is_there(path)? { read(path) } else { create(path) }
}

/// Whether there is a key file. One that the process may not look for is an error: it is not the same
/// as none.
///
/// # Errors
/// [`KeyFileError::Io`].
pub fn is_there(path: &Path) -> Result<bool, KeyFileError> {
    path.try_exists().map_err(|source| KeyFileError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    //! Key files are private, whole, and never replaced.

    use std::os::unix::fs::PermissionsExt;

    use super::{KeyFileError, create, read, read_or_create};

    #[test]
    fn a_key_is_made_once_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys/node.key");
        let seed = read_or_create(&path).unwrap();
        assert_eq!(seed, read_or_create(&path).unwrap());
        assert!(matches!(create(&path), Err(KeyFileError::Io { .. })));
        assert_eq!(seed, read(&path).unwrap());
        assert_eq!(0o600, std::fs::metadata(&path).unwrap().permissions().mode() & 0o777);
        assert_eq!(1, std::fs::read_dir(path.parent().unwrap()).unwrap().count());
    }
}
