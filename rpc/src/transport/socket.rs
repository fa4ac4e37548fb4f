//! A Unix socket that only its user may open.

use std::fs::{self, DirBuilder, Permissions};
use std::io::Error as IoError;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// A bound socket; its file goes with it, unless another process has taken its place.
#[derive(Debug)]
pub struct PrivateSocket {
    listener: UnixListener,
    path: PathBuf,
    file: FileId,
}

/// The device and the number of a file.
type FileId = (u64, u64);

impl PrivateSocket {
    /// Makes the socket with mode 0600, in place of a stale one. Its folder must exist.
    ///
    /// # Errors
    /// The system's; a path of more than about 100 bytes is one.
    pub fn bind(path: PathBuf) -> Result<Self, IoError> {
        let (listener, file) = make(&path)?;
        Ok(Self { listener, path, file })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection.
    ///
    /// # Errors
    /// The system's.
    pub async fn accept(&self) -> Result<UnixStream, IoError> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        if id(&self.path).is_ok_and(|there| there != self.file) {
            return;
        }
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the socket was gone already");
        }
    }
}

/// Binds in a private folder and moves the finished socket into place, so that it never exists
/// there with wider permissions.
fn make(path: &Path) -> Result<(UnixListener, FileId), IoError> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or_else(|| Path::new(".")).join(format!(".{}", std::process::id()));
    DirBuilder::new().mode(0o700).recursive(true).create(&folder)?;
    let made = || {
        let inside = folder.join(name);
        if inside.exists() {
            fs::remove_file(&inside)?;
        }
        let listener = UnixListener::bind(&inside)?;
        fs::set_permissions(&inside, Permissions::from_mode(0o600))?;
        let file = id(&inside)?;
        fs::rename(&inside, path)?;
        Ok((listener, file))
    };
    let made = made();
    fs::remove_dir_all(&folder)?;
    made
}

fn id(path: &Path) -> Result<FileId, IoError> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    //! Whose file it is.

    use super::PrivateSocket;

    #[tokio::test]
    async fn a_socket_takes_its_file_away_and_not_that_of_who_took_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it.sock");
        let first = PrivateSocket::bind(path.clone()).unwrap();
        let second = PrivateSocket::bind(path.clone()).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }
}
