//! The Docker engine of this machine.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::process::run;
use crate::suite::Missing;

/// Runs `docker` and answers what it printed.
pub fn docker(arguments: &[&str]) -> anyhow::Result<String> {
    run(Command::new("docker").args(arguments).stdin(Stdio::null()))
}

/// The version of the engine; one that does not answer is [`Missing`].
pub fn engine() -> anyhow::Result<String> {
    let version = docker(&["version", "--format", "{{.Server.Version}}"]);
    Ok(version.map_err(|error| Missing(format!("no Docker engine answers: {error:#}")))?)
}

/// Makes an image of these files of a folder, as `tar` names them, and applies these changes of `docker import`;
/// answers its id.
pub fn import(
    folder: &Path,
    files: &[&str],
    tag: &str,
    changes: &[&str],
) -> anyhow::Result<String> {
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder).arg("-c").args(files);
    let mut packed = tar.stdout(Stdio::piped()).spawn().context("tar")?;
    let output = packed.stdout.take().context("tar has an output")?;
    let mut import = Command::new("docker");
    import.arg("import").args(changes.iter().flat_map(|change| ["--change", change]));
    let id = run(import.args(["-", tag]).stdin(output))?;
    ensure!(packed.wait()?.success(), "tar failed");
    Ok(id)
}
