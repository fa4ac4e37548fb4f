//! One process at a time in a home.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};

use node::config::Home;

use super::client::CliError;

/// More than any process id.
const HOLDER_BYTES_MAX: u64 = 32;

/// Keeps every other process out of a home until it is dropped. The lock is the system's and ends
/// with the process; the file stays, with the id of the process that held it last.
#[derive(Debug)]
pub(super) struct HomeLock(#[expect(dead_code, reason = "the lock ends when it is closed")] File);

impl HomeLock {
    /// Takes the lock of a home, whose folder must exist.
    pub(super) fn take(home: &Home) -> Result<Self, CliError> {
        let path = home.lock();
        let failed = |source| CliError::File { what: path.display().to_string(), source };
        let opened =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(|source| {
            if source.kind() == ErrorKind::NotFound {
                CliError::Usage(format!("there is no folder {}", home.directory().display()))
            } else {
                failed(source)
            }
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Self::held(home, file)),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self(file))
    }

    fn held(home: &Home, file: File) -> CliError {
        let mut holder = String::new();
        let read = file.take(HOLDER_BYTES_MAX).read_to_string(&mut holder);
        let holder = match (read, holder.trim()) {
            (Ok(_), id) if !id.is_empty() => format!("process {id}"),
            _ => "another process".to_owned(),
        };
        CliError::Failed(format!("{} is in use by {holder}", home.directory().display()))
    }
}

#[cfg(test)]
mod tests {
    //! A home has one user.

    use super::HomeLock;
    use node::config::Home;

    #[test]
    fn a_home_in_use_is_refused_with_its_users_process() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        let held = HomeLock::take(&home).unwrap();
        let refused = HomeLock::take(&home).unwrap_err().to_string();
        let user = format!("in use by process {}", std::process::id());
        assert!(refused.ends_with(&user), "{refused}");
        drop(held);
        HomeLock::take(&home).unwrap();
    }

    #[test]
    fn a_home_that_is_not_there_is_wrong_usage() {
        let refused = HomeLock::take(&Home::new("/nowhere/home".into())).unwrap_err();
        assert_eq!(2, refused.exit_code());
    }
}
