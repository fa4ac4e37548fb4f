//! Chunks that were fetched, in files named by their hashes, until all are there. What is in the
//! folder is found again after a crash, and what a newer snapshot has in common with an older one is
//! not fetched again.
//!
//! Nothing here waits for the disk. After a crash of the machine a file may be gone or have other
//! bytes; each is checked again when it is read, and what does not pass is fetched again. What has to
//! be on the disk is the database that [`super::import`] makes, before it gets its name.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use types::Hash;

use super::chunk;
use super::error::{ImportError, OfferError, file};
use super::manifest::{Extra, Manifest, Part};

/// A chunk or an extra that is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Want {
    /// What to ask for.
    pub hash: Hash,
    /// How many bytes it is said to have.
    pub bytes: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Part { bits: usize, leaves: u64 },
    Extra,
}

impl From<&Part> for Want {
    fn from(part: &Part) -> Self {
        let Part { bits: _, hash, leaves, bytes } = *part;
        Self { hash, bytes, kind: Kind::Part { bits: part.bits(), leaves } }
    }
}

impl From<&Extra> for Want {
    fn from(extra: &Extra) -> Self {
        let Extra { hash, bytes } = *extra;
        Self { hash, bytes, kind: Kind::Extra }
    }
}

impl Want {
    /// Compares what a chunk has with what the manifest says.
    fn says(&self, what: &'static str, found: u64, said: u64) -> Result<(), ImportError> {
        if found == said {
            return Ok(());
        }
        let hash = self.hash;
        Err(ImportError::Manifest(OfferError::Numbers { hash, what, found, said }))
    }
}

/// The folder of the chunks of one offer.
#[derive(Debug)]
pub struct Intake {
    folder: PathBuf,
    wants: Vec<Want>,
}

impl Intake {
    /// The chunks of a manifest in `folder`, which is made if need be. Files of others are removed.
    ///
    /// # Errors
    /// [`ImportError::File`].
    pub fn open(folder: &Path, manifest: &Manifest) -> Result<Self, ImportError> {
        let parts = manifest.parts.iter().filter(|part| part.leaves > 0).map(Want::from);
        let extras = manifest.extras.iter().map(Want::from);
        let wants: Vec<Want> = parts.chain(extras).collect();
        let intake = Self { folder: folder.to_path_buf(), wants };
        fs::create_dir_all(folder).map_err(file(folder))?;
        let names: BTreeSet<String> =
            intake.wants.iter().map(|want| want.hash.to_string()).collect();
        for entry in fs::read_dir(folder).map_err(file(folder))? {
            let path = entry.map_err(file(folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if !name.is_some_and(|name| names.contains(name)) {
                fs::remove_file(&path).map_err(file(&path))?;
            }
        }
        Ok(intake)
    }

    /// What is not there yet.
    #[must_use]
    pub fn missing(&self) -> Vec<Want> {
        self.wants.iter().filter(|want| !self.path(&want.hash).exists()).copied().collect()
    }

    /// Checks a chunk and keeps it.
    ///
    /// # Errors
    /// [`ImportError::Offer`] if it is not what was wanted, which is the sender's fault, and
    /// [`ImportError::Manifest`] if it is and the manifest lies about it; nothing is written then.
    pub fn keep(&self, want: &Want, bytes: &[u8]) -> Result<(), ImportError> {
        Self::check(want, bytes)?;
        let path = self.path(&want.hash);
        let fresh = path.with_extension("part");
        fs::write(&fresh, bytes).map_err(file(&fresh))?;
        fs::rename(&fresh, &path).map_err(file(&path))
    }

    /// Whoever sends bytes with the right hash is right, whatever a manifest says of their number.
    fn check(want: &Want, bytes: &[u8]) -> Result<(), ImportError> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        match want.kind {
            Kind::Part { bits, leaves } => {
                let chunk = chunk::check(bytes, bits, want.hash)?;
                let rows = u64::try_from(chunk.leaves.len()).unwrap_or(u64::MAX);
                want.says("rows", rows, leaves)?;
            }
            Kind::Extra => {
                let found = Hash::digest(bytes);
                if found != want.hash {
                    return Err(OfferError::Chunk { found, expected: want.hash }.into());
                }
                chunk::extra_rows(bytes).map_err(ImportError::Manifest)?;
            }
        }
        want.says("bytes", length, want.bytes)
    }

    /// The bytes of a chunk that was kept. A file that was damaged since is removed.
    pub(super) fn read(&self, want: &Want) -> Result<Vec<u8>, ImportError> {
        let missing = ImportError::Missing { hash: want.hash };
        let path = self.path(&want.hash);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing),
            Err(source) => return Err(file(&path)(source)),
        };
        if Self::check(want, &bytes).is_err() {
            fs::remove_file(&path).map_err(file(&path))?;
            return Err(missing);
        }
        Ok(bytes)
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        self.folder.join(hash.to_string())
    }
}
