//! Files that a command writes and that must not exist yet.

use std::path::Path;

use super::client::CliError;

/// Writes a file that must not exist yet, whole or not at all; its folder is made.
pub(super) fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    let failed = |source| CliError::File { what: path.display().to_string(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    wallet::write_new_file(path, text.as_bytes(), 0o644).map_err(failed)
}
