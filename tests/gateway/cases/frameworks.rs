//! Frameworks on the official package, unmodified.

use testkit::python;
use testkit::suite::{Outcome, say};

use super::passed;
use crate::scene::Scene;

/// Each in an environment of its own: its name, the package, its module, and what it is made to do.
const FRAMEWORKS: [(&str, &str, &str, &str); 2] = [
    ("python-langchain", "langchain-openai==1.7.4", "langchain_openai", "use_langchain.py"),
    ("python-litellm", "litellm==1.110.2", "litellm", "use_litellm.py"),
];

pub(crate) fn run() -> anyhow::Result<Outcome> {
    let mut pythons = Vec::new();
    for (name, package, module, script) in FRAMEWORKS {
        match python::with_packages(name, &[package], module) {
            Ok(python) => pythons.push((python, script)),
            Err(why) => return Ok(Outcome::Skipped(format!("not to be had from PyPI: {why:#}"))),
        }
    }
    let scene = Scene::with_key(&["--per-request", "6000"])?;
    let told = scene.play(|scene| {
        for (python, script) in &pythons {
            let printed = scene.python(python, script)?;
            say(&format!("   {}", printed.trim()));
        }
        Ok(())
    })?;
    Ok(passed(&told, "LangChain's OpenAI chat model and litellm were answered as they expect"))
}
