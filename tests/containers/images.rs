//! Programs without a loader and libraries, and images that have nothing but them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use testkit::docker::{self, docker};
use testkit::process::run;

/// The images, by the names that metadata have for them.
#[derive(Debug)]
pub(crate) struct Images {
    /// Does what it is told.
    pub(crate) rogue: String,
    /// Never listens.
    pub(crate) never: String,
    /// Ends at once.
    pub(crate) end: String,
    /// Has nothing that could be started.
    pub(crate) empty: String,
    /// Declares a volume.
    pub(crate) volume: String,
    /// The example of this repository.
    pub(crate) example: String,
    /// Images of nobody else.
    all: Vec<String>,
}

impl Images {
    /// Compiles the programs and makes the images.
    pub(crate) fn make() -> anyhow::Result<Self> {
        docker::engine()?;
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir()?;
        let rogue = program(&own.join("containers/rogue.rs"), folder.path(), "rogue")?;
        let example = own.join("../examples/agents/container-json/main.rs");
        let example = program(&example, folder.path(), "agent")?;
        let mut all = Vec::new();
        let mut image = |program: &Path, name: &str, change: &[&str]| {
            let (tag, image) = import(program, name, change)?;
            all.push(tag);
            anyhow::Ok(image)
        };
        let start = "ENTRYPOINT [\"/rogue\"]";
        Ok(Self {
            rogue: image(&rogue, "rogue", &[start])?,
            never: image(&rogue, "never", &["ENTRYPOINT [\"/rogue\", \"never\"]"])?,
            end: image(&rogue, "end", &["ENTRYPOINT [\"/rogue\", \"end\"]"])?,
            empty: image(&rogue, "empty", &["ENTRYPOINT [\"/nothing\"]"])?,
            volume: image(&rogue, "volume", &[start, "VOLUME /data"])?,
            example: image(&example, "example", &["ENTRYPOINT [\"/agent\"]"])?,
            all,
        })
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        for tag in &self.all {
            drop(docker(&["image", "rm", "--force", tag]));
        }
    }
}

/// Compiles a program that needs nothing around it.
fn program(source: &Path, folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let program = folder.join(name);
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-O"]);
    rustc.args(["-C", "target-feature=+crt-static", "-C", "strip=symbols"]);
    run(rustc.arg("-o").arg(&program).arg(source))?;
    Ok(program)
}

/// Makes an image of a program: its tag, and its name by its id.
fn import(program: &Path, name: &str, changes: &[&str]) -> anyhow::Result<(String, String)> {
    let tag = format!("ombra-suite-agent:{name}-{}", std::process::id());
    let folder = program.parent().context("a folder")?;
    let file = program.file_name().and_then(OsStr::to_str).context("a name")?;
    let id = docker::import(folder, &[file], &tag, changes)?;
    let name = format!("ombra-suite-agent@{id}");
    Ok((tag, name))
}
