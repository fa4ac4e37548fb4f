//! The official packages, unmodified.

use crate::scene::Scene;
use testkit::python;
use testkit::suite::say;

/// Environments with the packages: name, packages, modules.
const PACKAGES: [(&str, &[&str], &str); 2] = [
    ("python-openai-2", &["openai==2.54.0"], "openai"),
    ("python-openai-3", &["openai==3.57.0"], "openai"),
];

pub(crate) fn run() -> anyhow::Result<String> {
    let python =
        |(name, packages, modules)| anyhow::Ok((name, python::needed(name, packages, modules)?));
    let pythons = PACKAGES.into_iter().map(python).collect::<anyhow::Result<Vec<_>>>()?;
    // A run whose miner idles is over soon.
    Scene::of_short_claims(&["--per-request", "6000"])?.play(|scene| {
        for (name, python) in &pythons {
            let printed = scene.python(python, "official.py")?;
            say(&format!("   {name}: {}", printed.trim()));
        }
        Ok("the packages 2 and 3 were answered as they expect".to_owned())
    })
}
