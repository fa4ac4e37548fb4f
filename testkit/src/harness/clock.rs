//! A wrong clock for a node: a library that is compiled here and loaded before the program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::ensure;

use crate::process::output;
use crate::suite::needs::COMPILER;

/// Compiles the library that gives a process another time of day.
pub fn compile(folder: &Path) -> anyhow::Result<PathBuf> {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    std::fs::write(&source, include_str!("clock.c"))?;
    let mut compiler = Command::new(COMPILER);
    compiler.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library);
    let compiled = output(compiler.arg(&source).arg("-ldl"))?;
    let said = String::from_utf8_lossy(&compiled.stderr);
    ensure!(compiled.status.success(), "the clock cannot be compiled: {said}");
    Ok(library)
}

/// The environment of a process whose clock is so many seconds ahead, or behind. Only the clock that
/// people set is wrong; time goes by as for everybody.
pub fn wrong_by(library: &Path, seconds: i64) -> Vec<(String, String)> {
    [
        ("LD_PRELOAD", library.display().to_string()),
        ("OMBRA_TEST_CLOCK_OFFSET_S", seconds.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// The time of the machine, in milliseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the machine's clock is what the chain is compared with"
)]
pub fn now_ms() -> anyhow::Result<u64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(u64::try_from(since.as_millis())?)
}
