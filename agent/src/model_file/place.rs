//! Where the model file is kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use infer::Pinned;

/// The variable that names the model file.
pub const FILE_VARIABLE: &str = "OMBRA_MODEL";
/// Where model files are kept, below the user's home.
const FOLDER: &str = ".cache/ombra/models";

/// There is no place for model files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HOME is not set, so there is no place for the model file: set {FILE_VARIABLE} to one")]
pub struct NoPlace;

/// Where the file of a model is looked for and kept unless a setting says otherwise: what
/// `OMBRA_MODEL` names, or else a file of the model's name in `~/.cache/ombra/models`.
///
/// # Errors
/// If neither `OMBRA_MODEL` nor `HOME` is set.
pub fn default_path(model: &Pinned) -> Result<PathBuf, NoPlace> {
    place(model, std::env::var_os(FILE_VARIABLE), std::env::var_os("HOME"))
}

pub(super) fn place(
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
