//! `ombra run` and `ombra chat` for the person who pays, and programs that ask for agent methods:
//! a real node, and a real miner or one that the test plays by hand.

mod by_hand;
mod interrupted;
mod methods;

use std::io::{BufReader, Bytes, Read as _, Write as _};
use std::process::{ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use testkit::miners::{Miner, MinerHome, micro, text};
use testkit::model::ModelServer;
use testkit::node::{DevOptions, Node, program};
use testkit::process::{Process, Signal, ended, output};
use testkit::workload::key;

use crate::support::printed;

/// Who pays, and how much at most.
const PAYS: [&str; 4] = ["--dev", "0", "--max-fee", "10000"];

/// A node and a folder for files.
struct Scene {
    node: Node,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> anyhow::Result<Self> {
        Self::with(DevOptions::from_environment())
    }

    fn with(options: DevOptions) -> anyhow::Result<Self> {
        Ok(Self { node: Node::start(options)?, folder: tempfile::tempdir()? })
    }

    fn url(&self) -> String {
        format!("http://{}", self.node.rpc)
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<String> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    /// Starts a miner on account 1, whose model wants to know how many apples there are, and waits
    /// until it works.
    fn mine(&self) -> anyhow::Result<Miner> {
        let model = ModelServer::start("stock_of", &json!({ "item": "apples" }))?;
        // Room for the longest requests of these tests.
        let settings =
            model.settings().replace("tool_form", "context_tokens_max = 32768\ntool_form");
        MinerHome::new(self.folder.path(), 1, self.node.rpc, &settings)?.start()
    }

    /// A command that talks to the node.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.args(arguments).env("OMBRA_RPC", self.url());
        command
    }

    fn ombra(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        output(&mut self.command(arguments))
    }

    /// What a command prints, which must succeed.
    fn done(&self, arguments: &[&str]) -> anyhow::Result<String> {
        printed(self.ombra(arguments)?).with_context(|| format!("{arguments:?}"))
    }

    /// The same for one that account 0 pays for.
    fn done_for_money(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.done(&[arguments, &PAYS].concat())
    }

    /// A run of account 0 to its settlement: the record with everything that belongs to it. The command
    /// succeeds only if the run is completed.
    fn run(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let more = ["--timeout", "50", "--json"];
        let output = self.ombra(&[&["run"], arguments, &PAYS, &more].concat())?;
        let log = self.folder.path().join("miner-1/log");
        let log = std::fs::read_to_string(log).unwrap_or_default();
        let run: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{}\n{log}", errors(&output)))?;
        let code = i32::from(run["status"] != "completed");
        assert_eq!(Some(code), output.status.code(), "{run}");
        Ok(run)
    }

    /// `ombra run` of account 0, as far as the line that begins with `word`: the run's id.
    fn begin(&self, arguments: &[&str], word: &str) -> anyhow::Result<Begun> {
        self.watch(&[&["run"], arguments, &PAYS].concat(), word)
    }

    /// The same for any command.
    fn watch(&self, arguments: &[&str], word: &str) -> anyhow::Result<Begun> {
        let mut begun = Begun::of(piped(&mut self.command(arguments)))?;
        begun.read_to(word)?;
        Ok(begun)
    }

    /// What account `index` has.
    fn balance(&self, index: usize) -> anyhow::Result<u64> {
        let account = json!([key(index)?.address()]);
        micro(&self.node.call("ombra_getAccount", &account)?, "balance")
    }
}

/// A command that has not ended.
struct Begun {
    process: Process,
    /// Read by a thread, so that a line that never comes ends the test and not its patience.
    lines: Receiver<anyhow::Result<String>>,
    printed: Vec<String>,
}

/// How long a line may take.
const LINE_TIME_MAX: Duration = Duration::from_secs(60);
/// What erases a terminal's line before another is written over it.
const ERASED: &str = "\u{1b}[2K";

/// Lines as a terminal shows them: one that is written over, and so ends with a carriage return, is a
/// line too.
struct TerminalLines(Bytes<BufReader<ChildStdout>>);

impl Iterator for TerminalLines {
    type Item = anyhow::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        loop {
            match self.0.next() {
                Some(Ok(b'\n' | b'\r')) => break,
                Some(Ok(byte)) => line.push(byte),
                Some(Err(error)) => return Some(Err(error.into())),
                None if line.is_empty() => return None,
                None => break,
            }
        }
        let line = String::from_utf8(line).map_err(Into::into);
        Some(line.map(|line| line.trim_start_matches(ERASED).to_owned()))
    }
}

impl Begun {
    fn of(command: &mut Command) -> anyhow::Result<Self> {
        let mut process = Process::start("the program", command)?;
        let output = BufReader::new(process.child.stdout.take().context("its output")?);
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // Whoever has read enough is gone.
            drop(TerminalLines(output.bytes()).try_for_each(|line| sender.send(line)));
        });
        Ok(Self { process, lines, printed: Vec::new() })
    }

    /// Reads lines until one begins like this.
    fn read_to(&mut self, word: &str) -> anyhow::Result<()> {
        self.read_until(word, |line| line.starts_with(word))
    }

    /// Reads lines until one holds this.
    fn read_to_part(&mut self, part: &str) -> anyhow::Result<()> {
        self.read_until(part, |line| line.contains(part))
    }

    fn read_until(&mut self, what: &str, is_it: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        loop {
            let line = self.lines.recv_timeout(LINE_TIME_MAX);
            let line =
                line.with_context(|| format!("no line {what:?} in {:?}", self.printed))??;
            let is_it = is_it(&line);
            self.printed.push(line);
            if is_it {
                return Ok(());
            }
        }
    }

    /// The run that it asked for.
    fn run(&self) -> anyhow::Result<String> {
        let named = self.printed.iter().find_map(|line| line.strip_prefix("run "));
        Ok(named.context("a run")?.trim().to_owned())
    }

    fn interrupt(&self) -> anyhow::Result<()> {
        self.process.signal(Signal::INT)
    }

    /// Everything that was printed until it ended with this code.
    fn ends_with(self, expected: i32) -> anyhow::Result<String> {
        let (code, printed) = self.end()?;
        assert_eq!(Some(expected), code, "{printed}");
        Ok(printed)
    }

    /// Exit code, and everything that was printed.
    fn end(mut self) -> anyhow::Result<(Option<i32>, String)> {
        loop {
            match self.lines.recv_timeout(LINE_TIME_MAX) {
                Ok(line) => self.printed.push(line?),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => bail!("it does not end: {:?}", self.printed),
            }
        }
        let errors = self.process.child.stderr.take().map(std::io::read_to_string).transpose()?;
        let status = self.process.child.wait()?;
        Ok((status.code(), self.printed.join("\n") + "\n" + &errors.unwrap_or_default()))
    }
}

/// A command that nobody types into, and whose output is read.
fn piped(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A text has all these parts.
fn assert_has(printed: &str, parts: &[&str]) {
    for part in parts {
        assert!(printed.contains(part), "{printed}\nhas not: {part}");
    }
}

/// Types lines into a command and answers what it printed.
fn typed(mut command: Command, lines: &str) -> anyhow::Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn()?;
    process.stdin.take().context("its input")?.write_all(lines.as_bytes())?;
    printed(ended(process)?)
}
