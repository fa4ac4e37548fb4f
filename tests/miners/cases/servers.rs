//! MCP servers that others wrote: two programs in the sandbox, and one over HTTP made with the official
//! SDK for Python.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::breakpoint::Breakpoint;
use testkit::miners::{MinerHome, Requester, Wish, text};
use testkit::net::free_ports;
use testkit::node::{DevOptions, Node, wait_until};
use testkit::process::{self, Process, Signal};
use testkit::python;
use testkit::script::{Model, Question, Reply};
use types::Hash;

use crate::Extent;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/miners/python/notes_server.py");
const PACKAGES: [&str; 3] =
    ["mcp==2.3.0", "mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19"];
const MODULES: &str = "mcp, mcp_server_time, mcp_server_git";
/// What the repository's only commit says.
const SUBJECT: &str = "The first of all commits";
/// The time that the model waits with.
const HELD: &str = "16:31";
/// In the miner's environment, and never in a server's.
const SECRET: &str = "OMBRA_TEST_SECRET";

struct Scene {
    home: MinerHome,
    requester: Requester,
    /// Where the model waits when it is asked to.
    gate: Arc<Breakpoint>,
    repository: PathBuf,
    _node: Node,
    _notes: Process,
    _folder: tempfile::TempDir,
}

pub(crate) fn run(_: Extent) -> anyhow::Result<String> {
    let python = python::needed("python-mcp-servers", &PACKAGES, MODULES)?;
    let mut scene = Scene::new(&python)?;
    let told = scene.play();
    told.map_err(|fault| scene.home.explain(&fault))?;
    Ok("time, git and notes were called, died, and left nothing behind".to_owned())
}

/// A repository with one commit, the same each time.
fn repository(folder: &Path) -> anyhow::Result<PathBuf> {
    let repository = folder.join("repository");
    std::fs::create_dir(&repository)?;
    std::fs::write(repository.join("file"), "text\n")?;
    for arguments in
        [&["init", "--quiet"][..], &["add", "file"], &["commit", "--quiet", "-m", SUBJECT]]
    {
        let mut git = Command::new("git");
        git.arg("-C").arg(&repository).args(arguments);
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), "Ada")
                .env(format!("GIT_{role}_EMAIL"), "ada@example.org");
            git.env(format!("GIT_{role}_DATE"), "2026-01-01T00:00:00Z");
        }
        python::run(&mut git)?;
    }
    Ok(repository)
}

/// Calls the tool that the prompt names with the arguments after it, and then says what it was told.
fn follow(question: &Question, gate: &Breakpoint) -> Reply {
    if question.outputs > 0 {
        return Reply::said(&question.told);
    }
    let (tool, arguments) = question.prompt.split_once(' ').unwrap_or_default();
    if arguments.contains(HELD) {
        gate.pass();
    }
    Reply::calls(&[(tool, json!(arguments))], &json!({}))
}

impl Scene {
    fn new(python: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let repository = repository(folder.path())?;
        let port = free_ports(1)?;
        let mut notes = Command::new(python);
        notes.arg(SCRIPT).arg(port.to_string()).env("PYTHONDONTWRITEBYTECODE", "1");
        let notes = Process::start("the server", notes.stdin(Stdio::null()).stdout(Stdio::null()))?;
        wait_until("the server over HTTP to listen", || {
            Ok(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
        })?;

        let gate = Arc::new(Breakpoint::default());
        let holding = Arc::clone(&gate);
        let model = Model::start(move |question: &Question| follow(question, &holding))?;
        let node = Node::start(DevOptions { accounts: 2, ..DevOptions::from_environment() })?;
        let base = "import sys; print(sys.base_prefix)";
        let base = python::run(Command::new(python).args(["-c", base]))?;
        let environment = python.ancestors().nth(2).context("an environment")?;
        let program = |name: &str, module: &str, more: &str, read: &[&Path]| {
            let read = [&[environment, Path::new(base.trim())], read].concat();
            format!(
                "[[tools.mcp]]\nname = \"{name}\"\ncommand = [{python:?}, \"-m\", \"{module}\"{more}]\n\
                 environment = {{ PYTHONDONTWRITEBYTECODE = \"1\" }}\n\
                 [tools.mcp.sandbox]\nread = {read:?}\n"
            )
        };
        let settings = [
            model.settings(""),
            "[engine]\npoll_ms = 300\npause_ms = 50\n[policy]\nclaim_jitter_ms = 0\n".to_owned(),
            program("time", "mcp_server_time", ", \"--local-timezone\", \"UTC\"", &[]),
            program("git", "mcp_server_git", "", &[&repository]),
            format!("[[tools.mcp]]\nname = \"notes\"\nurl = \"http://127.0.0.1:{port}/mcp\"\n"),
        ];
        let home = MinerHome::new(folder.path(), 1, node.rpc, &settings.concat())?;
        let requester = Requester::new(0, node.rpc)?;
        Ok(Self { home, requester, gate, repository, _node: node, _notes: notes, _folder: folder })
    }

    fn play(&mut self) -> anyhow::Result<()> {
        let miner = self.home.start_with(&[(SECRET, "word")])?;
        let times = json!({
            "source_timezone": "Asia/Kolkata", "time": "16:30", "target_timezone": "Asia/Tokyo",
        });
        let told = self.called("time__convert_time", &times, true)?;
        ensure!(told.contains("+3.5h"), "the time is {told}");
        let mut nowhere = times.clone();
        nowhere["source_timezone"] = json!("Mars");
        let told = self.called("time__convert_time", &nowhere, false)?;
        ensure!(told.starts_with("failed: "), "the time on Mars is {told}");
        let log = json!({ "repo_path": self.repository, "max_count": 1 });
        let told = self.called("git__git_log", &log, true)?;
        ensure!(told.contains(SUBJECT) && told.contains("Ada"), "the log is {told}");
        let told = self.called("notes__reverse", &json!({ "text": "desserts" }), true)?;
        ensure!(told == "stressed", "turned around it is {told}");
        self.is_confined(&miner)?;

        // The program dies while the model thinks; the server over HTTP in the call.
        let mut held = times.clone();
        held["time"] = json!(HELD);
        let run = self.ask("time__convert_time", &held)?;
        self.gate.reached("the model to be asked")?;
        let programs = self.programs("time")?;
        ensure!(!programs.is_empty(), "no program of the server runs");
        programs.iter().try_for_each(|pid| process::signal(*pid, Signal::KILL))?;
        self.gate.open();
        let told = self.told(&run, false)?;
        ensure!(told.starts_with("transport: ") || told.starts_with("unknown_tool: "), "{told}");
        let told = self.called("notes__die", &json!({}), false)?;
        ensure!(told.starts_with("transport: "), "{told}");
        // It is started again, and works.
        let told = self.called("time__convert_time", &times, true)?;
        ensure!(told.contains("+3.5h"), "the time is {told}");

        ensure!(!self.programs("")?.is_empty(), "no program runs");
        miner.stop()?;
        ensure!(self.programs("")?.is_empty(), "programs are left: {:?}", self.programs("")?);
        let mut miner = self.home.start()?;
        wait_until("the programs to run", || Ok(self.programs("")?.len() >= 2))?;
        miner.kill()?;
        wait_until("the programs to see it and leave", || Ok(self.programs("")?.is_empty()))?;
        Ok(())
    }

    /// Asks for a run in which this tool is called.
    fn ask(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Hash> {
        self.requester.ask(&Wish::new(format!("{tool} {arguments}"), &[tool]))
    }

    /// The result of a call that a run makes.
    fn called(&mut self, tool: &str, arguments: &Value, ok: bool) -> anyhow::Result<String> {
        let run = self.ask(tool, arguments)?;
        self.told(&run, ok)
    }

    /// What the model of a run was told; its hash is on the chain.
    fn told(&self, run: &Hash, ok: bool) -> anyhow::Result<String> {
        let record = self.requester.settled(run)?;
        ensure!(text(&record, "status") == "completed", "{record}");
        let steps = self.requester.steps(run)?;
        let call = steps.first().context("a step")?["toolCalls"][0].clone();
        let told = text(&record, "finalAnswerInline").to_owned();
        ensure!(call["ok"] == json!(ok), "{call}: {told}");
        let hash = Hash::digest(told.as_bytes()).to_string();
        ensure!(text(&call, "resultHash") == hash, "{call} is not of {told:?}");
        Ok(told)
    }

    /// Processes whose folder is that of a server, or of any of them.
    fn programs(&self, server: &str) -> anyhow::Result<Vec<u32>> {
        process::of_folder(&self.home.data().join("mcp").join(server))
    }

    /// The environment of the servers has nothing of the miner's.
    fn is_confined(&self, miner: &testkit::miners::Miner) -> anyhow::Result<()> {
        let own = process::environment(miner.pid())?;
        ensure!(own.contains(SECRET), "the miner has no secret");
        for server in ["time", "git"] {
            let programs = self.programs(server)?;
            let pid = programs.first().with_context(|| format!("{server} does not run"))?;
            let environment = process::environment(*pid)?;
            let names: Vec<_> =
                environment.split('\0').filter_map(|it| it.split_once('=')).collect();
            let allowed = ["PATH", "LANG", "HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE"];
            let more: Vec<_> = names.iter().filter(|(name, _)| !allowed.contains(name)).collect();
            ensure!(more.is_empty(), "{server} has {more:?} in its environment");
        }
        Ok(())
    }
}
