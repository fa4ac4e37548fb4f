//! A Python with a package from `PyPI`, in an environment beside the compile outputs, made once.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

/// The interpreter of the environment with this name, which has the package; `module` is what the
/// package brings.
pub fn with_package(name: &str, package: &str, module: &str) -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let target = test.ancestors().nth(3).context("tests are in target/*/deps")?;
    let environment = target.join(name);
    let python = environment.join("bin/python");
    let has_package = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if !has_package.is_ok_and(|output| output.status.success()) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", package]))?;
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
