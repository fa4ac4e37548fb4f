//! Frameworks on the official package, unmodified.

use testkit::python;
use testkit::suite::{Outcome, say};

use super::passed;
use crate::scene::Scene;

const PACKAGES: [&str; 2] = ["langchain-openai==1.7.4", "litellm==1.110.2"];

pub(crate) fn run() -> anyhow::Result<Outcome> {
    let modules = "langchain_openai, litellm";
    let python = match python::with_packages("python-frameworks", &PACKAGES, modules) {
        Ok(python) => python,
        Err(why) => return Ok(Outcome::Skipped(format!("not to be had from PyPI: {why:#}"))),
    };
    let scene = Scene::with_key(&["--per-request", "6000"])?;
    let told = scene.play(|scene| {
        let printed = scene.python(&python, "frameworks.py")?;
        say(&format!("   {}", printed.trim()));
        Ok(())
    })?;
    Ok(passed(&told, "LangChain's OpenAI chat model and litellm were answered as they expect"))
}
