//! The official packages, unmodified.

use super::passed;
use crate::scene::Scene;
use testkit::python;
use testkit::suite::{Outcome, say};

/// Environments with the packages: name, packages, modules.
const PACKAGES: [(&str, &[&str], &str); 2] = [
    ("python-openai-2", &["openai==2.54.0"], "openai"),
    ("python-openai-3", &["openai==3.57.0"], "openai"),
];

pub(crate) fn run() -> anyhow::Result<Outcome> {
    let mut pythons = Vec::new();
    for (name, packages, modules) in PACKAGES {
        match python::with_packages(name, packages, modules) {
            Ok(python) => pythons.push((name, python)),
            Err(why) => return Ok(Outcome::Skipped(format!("not to be had from PyPI: {why:#}"))),
        }
    }
    // A run whose miner idles is over soon.
    let scene = Scene::of_short_claims(&["--per-request", "6000"])?;
    let told = scene.play(|scene| {
        for (name, python) in &pythons {
            let printed = scene.python(python, "official.py")?;
            say(&format!("   {name}: {}", printed.trim()));
        }
        Ok(())
    })?;
    Ok(passed(&told, "the packages 2 and 3 were answered as they expect"))
}
