//! Files that appear whole or not at all.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a new file and does not return before it is on the disk, its name too. Its folder must
/// exist; of `mode` the bits that the process's umask forbids are left out.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] when there is a file of this name: it is never overwritten. After
/// any other error nothing is left behind either.
pub fn write_new_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".new-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|refused| refused.error)?;
    File::open(folder)?.sync_all()
}
