//! A Python with packages from `PyPI`, in an environment beside the compile outputs, made once.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};

/// Held by the test that makes an environment; the others wait for it.
static MAKING: Mutex<()> = Mutex::new(());

/// The interpreter of the environment with this name, which has the packages; `modules` are what
/// they bring, with commas between them.
pub fn with_packages(name: &str, packages: &[&str], modules: &str) -> anyhow::Result<PathBuf> {
    let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let test = std::env::current_exe()?;
    let target = test.ancestors().nth(3).context("tests are in target/*/deps")?;
    let environment = target.join(name);
    let python = environment.join("bin/python");
    let has_packages = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if !has_packages.is_ok_and(|output| output.status.success()) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
    }
    Ok(python)
}

/// Runs a command to its end and answers what it printed.
pub fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
