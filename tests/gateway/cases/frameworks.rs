//! Frameworks on the official package, unmodified.

use testkit::python;
use testkit::suite::say;

use crate::scene::Scene;

/// Each in an environment of its own: its name, the package, its module, and what it is made to do.
const FRAMEWORKS: [(&str, &str, &str, &str); 2] = [
    ("python-langchain", "langchain-openai==1.7.4", "langchain_openai", "use_langchain.py"),
    ("python-litellm", "litellm==1.110.2", "litellm", "use_litellm.py"),
];

pub(crate) fn run() -> anyhow::Result<String> {
    let python = |(name, package, module, script)| {
        anyhow::Ok((python::needed(name, &[package], module)?, script))
    };
    let pythons = FRAMEWORKS.into_iter().map(python).collect::<anyhow::Result<Vec<_>>>()?;
    Scene::with_key(&["--per-request", "6000"])?.play(|scene| {
        for (python, script) in &pythons {
            let printed = scene.python(python, script)?;
            say(&format!("   {}", printed.trim()));
        }
        Ok("LangChain's OpenAI chat model and litellm were answered as they expect".to_owned())
    })
}
