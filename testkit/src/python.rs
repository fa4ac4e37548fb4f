//! A Python with packages from `PyPI`, in an environment beside the compile outputs, made once.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;

pub use crate::process::run;
use crate::suite::Missing;

/// Held by the test that makes an environment; the others wait for it.
static MAKING: Mutex<()> = Mutex::new(());

/// The interpreter of the environment with this name, which has the packages; `modules` are what
/// they bring, with commas between them.
pub fn with_packages(name: &str, packages: &[&str], modules: &str) -> anyhow::Result<PathBuf> {
    let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let environment = target()?.join(name);
    let python = environment.join("bin/python");
    let has_packages = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if !has_packages.is_ok_and(|output| output.status.success()) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--no-compile"])
            .args(packages))?;
    }
    Ok(python)
}

/// The same, but packages that cannot be had are [`Missing`]: the machine lacks them, and nothing has failed.
pub fn needed(name: &str, packages: &[&str], modules: &str) -> anyhow::Result<PathBuf> {
    with_packages(name, packages, modules).map_err(missing)
}

/// Something cannot be had from `PyPI`, for this reason.
pub fn missing(why: anyhow::Error) -> anyhow::Error {
    Missing(format!("not to be had from PyPI: {why:#}")).into()
}

/// The folder of the compile outputs, which what was once got is kept in.
pub fn target() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    // Tests are in target/*/deps, other programs beside the node.
    let mut folders = program.ancestors().skip(1);
    let profile = folders.find(|folder| !folder.ends_with("deps")).context("a folder")?;
    Ok(profile.parent().context("a program is in target/*")?.to_owned())
}
