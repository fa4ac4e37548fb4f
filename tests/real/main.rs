//! The built program with the real model. These tests are run only when asked for by name, and then
//! the variable `OMBRA_MODEL` names the model's file, and `OMBRA_BIN` may name the program:
//! `OMBRA_MODEL=… ./run cargo test --release --locked --workspace --test real`.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the assertion")]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use testkit::client;
use testkit::http::Connection;
use testkit::node::{DevOptions, Node, program, wait_for};
use testkit::process::{Process, Signal};
use types::Hash;

/// How long a line may take: as long as the demonstration itself waits for the model.
const LINE_TIME_MAX: Duration = Duration::from_secs(600);

/// A demonstration that runs.
struct Demo {
    process: Process,
    /// Read by a thread, so that a line that never comes ends the test.
    lines: Receiver<std::io::Result<String>>,
    printed: Vec<String>,
}

impl Demo {
    fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        anyhow::ensure!(std::env::var_os("OMBRA_MODEL").is_some(), "OMBRA_MODEL names the model");
        let mut command = program();
        command
            .args(["demo", "--rpc", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
            .args(arguments)
            // Nothing may be fetched.
            .env("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
            .stdout(Stdio::piped());
        let mut process = Process::start("the demonstration", &mut command)?;
        let printed = BufReader::new(process.child.stdout.take().context("its output")?).lines();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // Whoever has read enough is gone.
            drop(printed.into_iter().try_for_each(|line| sender.send(line)));
        });
        Ok(Self { process, lines, printed: Vec::new() })
    }

    /// Reads up to the first line that begins so.
    fn until(&mut self, beginning: &str) -> anyhow::Result<String> {
        loop {
            let line = self.lines.recv_timeout(LINE_TIME_MAX);
            let line = line.with_context(|| {
                format!("no line begins with {beginning:?}: {:#?}", self.printed)
            })??;
            self.printed.push(line.clone());
            if line.starts_with(beginning) {
                return Ok(line);
            }
        }
    }

    /// Waits until it has ended well.
    fn end(&mut self) -> anyhow::Result<()> {
        let status = wait_for("the demonstration to end", || Ok(self.process.child.try_wait()?))?;
        for line in self.lines.iter() {
            self.printed.push(line?);
        }
        anyhow::ensure!(status.success(), "{status}: {:#?}", self.printed);
        Ok(())
    }

    /// The rest of a line that was printed.
    fn told(&self, beginning: &str) -> anyhow::Result<&str> {
        let told = self.printed.iter().find_map(|line| line.strip_prefix(beginning));
        told.with_context(|| format!("no line begins with {beginning:?}: {:#?}", self.printed))
    }

    fn interrupt(&mut self) -> anyhow::Result<()> {
        self.process.signal(Signal::INT)?;
        self.end()
    }
}

/// The record that `ombra demo --exit --json` ends with.
fn settled(question: &[&str]) -> anyhow::Result<(Value, Vec<String>)> {
    let mut demo = Demo::start(&[&["--exit", "--json"], question].concat())?;
    let record = serde_json::from_str(&demo.until("{")?)?;
    demo.end()?;
    Ok((record, std::mem::take(&mut demo.printed)))
}

fn amount(run: &Value, member: &str) -> u64 {
    run[member].as_str().and_then(|text| text.parse().ok()).expect("an amount")
}

#[test]
fn the_demonstration_answers_with_the_balance_that_its_tool_has_read() -> anyhow::Result<()> {
    let (run, printed) = settled(&[])?;
    assert_eq!("completed", run["status"], "{printed:#?}");
    let parts = ["minerReward", "userRefund", "networkFee"].map(|part| amount(&run, part));
    assert_eq!(amount(&run, "maxFee"), parts.iter().sum::<u64>());
    assert!(printed.iter().any(|line| line.contains("tool chain_get_balance: ok")));
    // 1,000 OMBRA, without the escrow and the fee of the request.
    let held = 1_000_000_000 - amount(&run, "maxFee");
    let answer = run["finalAnswerInline"].as_str().unwrap();
    let told =
        answer.split(|char: char| !char.is_ascii_digit()).filter_map(|word| word.parse().ok());
    let balance = told.max().unwrap_or(0);
    assert!((held - 1_000..held).contains(&balance), "{held}: {answer}");
    Ok(())
}

#[test]
fn the_texts_that_are_shown_are_those_whose_hashes_are_on_the_chain() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().to_str().context("a path in UTF-8")?;
    let mut demo = Demo::start(&["--data-dir", data])?;
    demo.until("The node and its miners keep running")?;
    assert!(demo.told("checked")?.contains("hashes"));
    let endpoints: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("endpoints.json"))?)?;
    let mut node = Connection::open(endpoints["rpc"].as_str().unwrap().parse()?)?;
    let run = demo.told("run ")?.trim().to_owned();
    let steps = node.call("ombra_getAgentSteps", &json!([run]))?;
    let call = &steps["items"][0]["toolCalls"][0];
    assert_eq!("chain_get_balance", call["name"]);
    let result = demo.told("               -> ")?;
    assert_eq!(call["resultHash"], json!(Hash::digest(result.as_bytes())));
    let arguments = demo.told("               chain_get_balance ")?;
    assert_eq!(call["argsHash"], json!(Hash::digest(arguments.as_bytes())));
    demo.interrupt()
}

#[test]
fn a_question_of_ones_own_is_answered_with_the_tool_that_it_needs() -> anyhow::Result<()> {
    let (run, printed) = settled(&["How much is 17 * 23?"])?;
    assert_eq!("completed", run["status"], "{printed:#?}");
    let answer = run["finalAnswerInline"].as_str().unwrap();
    assert!(answer.contains("391"), "{answer}");
    Ok(())
}

#[test]
fn ctrl_c_in_the_middle_of_the_run_stops_everything_in_order() -> anyhow::Result<()> {
    let mut demo = Demo::start(&[])?;
    demo.until("requested")?;
    demo.interrupt()
}

#[test]
fn the_miner_beside_a_chain_for_one_person_works_for_whoever_asks() -> anyhow::Result<()> {
    let options = DevOptions::from_environment();
    let node = Node::start(DevOptions { more: vec!["--miner".into()], ..options })?;
    let question = ["run", "How much is 6 * 7?", "--max-fee", "10000"];
    let more = ["--dev", "0", "--json", "--timeout", "300"];
    let run = client::told(node.rpc, &[&question[..], &more].concat())?;
    let run: Value = serde_json::from_str(&run)?;
    assert!(run["finalAnswerInline"].as_str().unwrap().contains("42"), "{run}");
    // It can be asked how it is, like a miner of its own.
    let journals = node.data().join("miner").display().to_string();
    let status = client::answered(node.rpc, &["miner", "status", "--data-dir", &journals])?;
    assert_eq!(Some(node.pid().into()), status["process"]["pid"].as_u64(), "{status}");
    Ok(())
}
