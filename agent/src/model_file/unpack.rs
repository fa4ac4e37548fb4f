//! Out of the archive, and into its place.
//!
//! The archive is a zip whose sha256 is known, so its form is too: the model is its first entry.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::DeflateDecoder;
use infer::Pinned;

use super::disk::{beside, blocking, hashed};
use super::error::FetchError;

/// What a zip's entry begins with.
const SIGNATURE: [u8; 4] = *b"PK\x03\x04";
/// The method "deflate".
const DEFLATED: u16 = 8;
/// Bytes of an entry's head before its name.
const HEAD_BYTES: usize = 30;

/// Compares the archive's sha256, unpacks the model beside `path`, compares its sha256, and puts it
/// in its place. The archive is gone afterwards, unless it is right and could not be unpacked.
pub(super) async fn unpack(model: &Pinned, archive: &Path, path: &Path) -> Result<(), FetchError> {
    let found = hashed(archive).await?;
    if found != model.archive_sha256 {
        // Or the next attempt would go on from it.
        remove(archive)?;
        let (archive, expected) = (model.archive.to_owned(), model.archive_sha256.to_owned());
        return Err(FetchError::ArchiveHash { archive, found, expected });
    }
    let (model, archive, path) = (*model, archive.to_owned(), path.to_owned());
    let unpacked = beside(&path, "part");
    let work = Work { model, archive, unpacked, path };
    blocking(move || work.run()).await
}

struct Work {
    model: Pinned,
    archive: PathBuf,
    unpacked: PathBuf,
    path: PathBuf,
}

impl Work {
    fn run(&self) -> Result<(), FetchError> {
        let Self { model, archive, unpacked, path } = self;
        let outcome = self.inflate().and_then(|()| {
            let found = infer::file_sha256(unpacked)
                .map_err(|source| FetchError::Read { path: unpacked.clone(), source })?;
            if found == model.sha256 {
                return Ok(());
            }
            let why = format!(
                "{} in it has sha256 {found}: expected {}",
                model.archive_entry, model.sha256
            );
            Err(FetchError::Archive { archive: archive.clone(), why })
        });
        if let Err(error) = outcome {
            // A full disk is less full so.
            drop(std::fs::remove_file(unpacked));
            return Err(error);
        }
        std::fs::rename(unpacked, path).map_err(|source| FetchError::write(path, source))?;
        remove(archive)
    }

    /// Writes the model beside its place.
    fn inflate(&self) -> Result<(), FetchError> {
        let Self { model, archive, unpacked, path: _ } = self;
        let unreadable = |source| FetchError::Read { path: archive.clone(), source };
        let strange =
            |why: &str| FetchError::Archive { archive: archive.clone(), why: why.to_owned() };
        let mut from = BufReader::new(File::open(archive).map_err(unreadable)?);
        let entry = read_head(&mut from).map_err(unreadable)?;
        let entry = entry.ok_or_else(|| strange("its first entry is not deflated"))?;
        if entry != model.archive_entry.as_bytes() {
            return Err(strange(&format!("its first entry is not {}", model.archive_entry)));
        }
        let mut from = DeflateDecoder::new(from).take(model.bytes.saturating_add(1));
        let failed = |source| FetchError::write(unpacked, source);
        let mut to = File::create(unpacked).map_err(failed)?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(strange(&error.to_string())),
            };
            to.write_all(buffer.get(..read).unwrap_or_default()).map_err(failed)?;
        }
        to.sync_all().map_err(failed)
    }
}

/// Reads the head of a zip's first entry: its name, if it is deflated.
fn read_head(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; HEAD_BYTES];
    from.read_exact(&mut head)?;
    let number = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let (method, name_bytes, extra_bytes) = (number(8), number(26), number(28));
    if !head.starts_with(&SIGNATURE) || method != DEFLATED {
        return Ok(None);
    }
    let mut name = vec![0; usize::from(name_bytes)];
    from.read_exact(&mut name)?;
    let mut extra = vec![0; usize::from(extra_bytes)];
    from.read_exact(&mut extra)?;
    Ok(Some(name))
}

fn remove(path: &Path) -> Result<(), FetchError> {
    std::fs::remove_file(path).map_err(|source| FetchError::write(path, source))
}
