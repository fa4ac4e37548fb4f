//! The Docker engine, Compose, and the image around the program that was built.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use testkit::docker::{self, docker};
use testkit::node::binary;
use testkit::process::run;
use testkit::suite::{Missing, say};

/// The base that users get.
const PUBLIC_BASE: &str = "debian:bookworm-slim";
/// The base that is made here where the public one cannot be had.
const OWN_BASE: &str = "ombra-base:bookworm";
/// Everything but the program.
const RUNTIME: &str = "ombra-suite:runtime";
/// What is tested.
const IMAGE: &str = "ombra-suite:node";

/// An engine that answers, and a Compose that works with it.
#[derive(Debug)]
pub(crate) struct Engine {
    /// `docker compose`, or the older `docker-compose`.
    compose: Vec<&'static str>,
}

impl Engine {
    /// Looks for both; says what is missing.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let server = docker::engine()?;
        let candidates: [(Vec<&'static str>, &[&str]); 2] = [
            (vec!["docker", "compose"], &["compose", "version", "--short"]),
            (vec!["docker-compose"], &["version", "--short"]),
        ];
        for (compose, version) in candidates {
            let program = compose.first().copied().unwrap_or_default();
            if let Ok(version) = run(Command::new(program).args(version).stdin(Stdio::null())) {
                say(&format!("Docker engine {server}, {} {version}", compose.join(" ")));
                return Ok(Self { compose });
            }
        }
        bail!(Missing("the Docker engine answers, but there is no Compose".to_owned()))
    }

    /// Compose, for the file in a folder.
    pub(crate) fn compose(&self, folder: &Path, image: &str) -> Command {
        let (program, more) = self.compose.split_first().expect("Compose was found");
        let mut command = Command::new(program);
        command.args(more).arg("-f").arg(folder.join("compose.yaml"));
        command.env("OMBRA_IMAGE", image).stdin(Stdio::null());
        command
    }

    /// Builds the image around the program and answers its name.
    pub(crate) fn image(&self) -> anyhow::Result<String> {
        let base = base()?;
        say(&format!("building the image on {base}"));
        let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut runtime = Command::new("docker");
        runtime.args(["build", "--quiet", "--target", "runtime", "--tag", RUNTIME]);
        runtime.arg("--build-arg").arg(format!("RUNTIME_IMAGE={base}")).arg(&repository);
        run(&mut runtime)?;

        let context = tempfile::tempdir()?;
        std::fs::copy(binary(), context.path().join("ombra")).context("the built program")?;
        let mut image = Command::new("docker");
        image.args(["build", "--quiet", "--tag", IMAGE, "--build-arg"]);
        image.arg(format!("RUNTIME={RUNTIME}")).arg("--file");
        image.arg(repository.join("packaging/docker/Dockerfile")).arg(context.path());
        run(&mut image)?;
        Ok(IMAGE.to_owned())
    }
}

/// A base that is there, can be had, or can be made.
fn base() -> anyhow::Result<String> {
    if let Some(chosen) = std::env::var("RUNTIME_IMAGE").ok().filter(|name| !name.is_empty()) {
        return Ok(chosen);
    }
    let is_there = |name: &str| docker(&["image", "inspect", name]).is_ok();
    for base in [PUBLIC_BASE, OWN_BASE] {
        if is_there(base) {
            return Ok(base.to_owned());
        }
    }
    if docker(&["pull", "--quiet", PUBLIC_BASE]).is_ok() {
        return Ok(PUBLIC_BASE.to_owned());
    }
    say(&format!("{PUBLIC_BASE} cannot be had; making a base with debootstrap"));
    let folder = tempfile::tempdir()?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", "--include=ca-certificates", "bookworm"]);
    run(debootstrap.arg(folder.path()))
        .context("no base: install debootstrap, or name one in RUNTIME_IMAGE")?;
    let files = ["--exclude=./var/cache/apt/archives/*.deb", "."];
    docker::import(folder.path(), &files, OWN_BASE, &[])?;
    Ok(OWN_BASE.to_owned())
}
