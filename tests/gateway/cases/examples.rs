//! What docs/gateway.md tells to run is taken out of the document and run. Only the address, the key, and
//! what the document says to be in a place of its own are replaced.

use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use testkit::node::binary;
use testkit::process::{lines, lines_to};
use testkit::python;
use testkit::suite::{needs, say};

use crate::document::{piece, pieces};
use crate::scene::{SETTINGS, Scene, at_home};

/// Environments with what the examples use, those of the other cases: name, packages, modules.
const PACKAGES: [(&str, &[&str], &str); 4] = [
    ("python-openai-2", &["openai==2.54.0"], "openai"),
    ("python-openai-3", &["openai==3.57.0"], "openai"),
    ("python-langchain", &["langchain-openai==1.7.4"], "langchain_openai"),
    ("python-mcp-2", &["mcp==2.3.0"], "mcp"),
];
/// Pieces of code that are not run here, each with what it has.
const ELSEWHERE: [&str; 12] = [
    "ombra dev --miner --gateway",
    "systemd-sysusers",
    "image: ombra",
    "docker compose",
    "hosts =",
    "reverse_proxy",
    "proxy_pass",
    // The cases market and mcp run these.
    "/v1/agents/ID",
    "\"agent.call\"",
    "ombra gateway tool",
    "[tools.",
    "[metrics]",
];
/// What the examples ask, and what the miner that follows a script says to that.
const ANSWER: &str = "is a nonce?";
/// Addresses, keys and files of the document.
const ADDRESS: &str = "127.0.0.1:8788";
const KEY: &str = "sk-ombra-…";
const PASSWORD_FILE: &str = "/srv/ombra/till.password";

/// A machine on which `ombra` is installed.
struct Machine {
    folder: tempfile::TempDir,
    rpc: String,
}

pub(crate) fn run() -> anyhow::Result<String> {
    let python = |(name, packages, modules)| python::needed(name, packages, modules);
    let pythons = PACKAGES.into_iter().map(python).collect::<anyhow::Result<Vec<_>>>()?;
    let [openai_2, openai_3, langchain, mcp] = pythons.try_into().ok().context("four")?;
    needs::runs("curl", "--version")?;
    // Before fork v7 a miner needs no bond, whatever a gateway asks for.
    Scene::of_chain(SETTINGS, &[], &[])?.play(|scene| {
        let machine = Machine::new(scene)?;
        for python in [openai_2, openai_3] {
            script(scene, &machine, &python, "from openai import OpenAI")?;
        }
        script(scene, &machine, &langchain, "from langchain_openai import ChatOpenAI")?;
        script(scene, &machine, &mcp, "from mcp import Client")?;
        curl(scene, &machine)?;
        machine.own_gateway()?;
        configured(scene, &machine, &mcp, "\"http\"")?;
        configured(scene, &machine, &mcp, "\"command\"")?;
        nothing_else()?;
        Ok("the examples of the document were answered".to_owned())
    })
}

/// Every other piece of code of the document is known not to be run here.
fn nothing_else() -> anyhow::Result<()> {
    let run = [
        "from openai",
        "from langchain_openai",
        "from mcp",
        "curl http://127.0.0.1:8788/v1/chat/completions",
        "\"http\"",
        "\"command\"",
        "ombra gateway fund",
    ];
    for piece in pieces()? {
        let known = run.iter().chain(&ELSEWHERE).filter(|has| piece.code.contains(**has)).count();
        ensure!(known == 1, "nobody tries this example of docs/gateway.md:\n{}", piece.code);
    }
    Ok(())
}

/// An example of the document for this scene.
fn example(scene: &Scene, language: &str, has: &str) -> anyhow::Result<String> {
    let code = piece(language, has)?;
    Ok(code.replace(ADDRESS, &scene.client.address.to_string()).replace(KEY, &scene.client.key))
}

fn is_answered(what: &str, printed: &str) -> anyhow::Result<()> {
    ensure!(printed.contains(ANSWER), "{what} printed: {printed}");
    say(&format!("   {what}"));
    Ok(())
}

fn script(scene: &Scene, machine: &Machine, python: &Path, has: &str) -> anyhow::Result<()> {
    let file = machine.folder.path().join("example.py");
    std::fs::write(&file, example(scene, "python", has)?)?;
    let printed = python::run(at_home(Command::new(python).arg(file)))?;
    is_answered(has, &printed)
}

fn curl(scene: &Scene, machine: &Machine) -> anyhow::Result<()> {
    let code = example(scene, "sh", "curl http://127.0.0.1:8788/v1/chat/completions")?;
    let printed = python::run(machine.shell(&code).env("KEY", &scene.client.key))?;
    let told: Value = serde_json::from_str(&printed).with_context(|| printed.clone())?;
    let content = told["choices"][0]["message"]["content"].as_str().unwrap_or_default();
    is_answered("curl", content)
}

fn configured(scene: &Scene, machine: &Machine, python: &Path, has: &str) -> anyhow::Result<()> {
    let config = example(scene, "json", has)?;
    let config = config.replace(PASSWORD_FILE, &machine.password().display().to_string());
    let mut client = Command::new(python);
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/gateway/python/configured.py")).arg(config);
    let printed = python::run(at_home(machine.settle(&mut client)))?;
    is_answered(&format!("an MCP client with {has}"), &printed)
}

impl Machine {
    fn new(scene: &Scene) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("bin"))?;
        symlink(binary(), folder.path().join("bin/ombra"))?;
        let machine = Self { folder, rpc: format!("http://{}", scene.node.rpc) };
        std::fs::write(machine.password(), "a long password\n")?;
        Ok(machine)
    }

    fn password(&self) -> PathBuf {
        self.folder.path().join("till.password")
    }

    /// A command that finds the program, its files and its node as an owner of this machine does.
    fn settle<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let own = self.folder.path();
        let path = std::env::var("PATH").unwrap_or_default();
        for name in ["OMBRA_WALLET", "OMBRA_KEYS_DIR", "OMBRA_GATEWAY_DIR", "OMBRA_GATEWAY_CONFIG"]
        {
            command.env_remove(name);
        }
        command.env("PATH", format!("{}:{path}", own.join("bin").display()));
        command.env("HOME", own).env("OMBRA_RPC", &self.rpc).current_dir(own)
    }

    fn shell(&self, code: &str) -> Command {
        let mut shell = Command::new("bash");
        shell.args(["-euc", code]);
        self.settle(at_home(&mut shell)).env("OMBRA_PASSWORD_FILE", self.password());
        shell
    }

    /// The gateway of one's own, up to the moment when it serves clients.
    fn own_gateway(&self) -> anyhow::Result<()> {
        python::run(&mut self.shell("ombra keys new alice"))?;
        let alice = self.address("alice")?;
        python::run(&mut self.shell(&format!("ombra tx transfer {alice} 2ombra --dev 0")))?;
        let code = piece("sh", "ombra gateway fund")?;
        let (make, rest) = code.split_once('\n').context("several lines")?;
        python::run(&mut self.shell(make))?;
        let rest = rest.trim_end().replace("ADDRESS", &self.address("till")?);
        let (prepare, serve) = rest.rsplit_once('\n').context("several lines")?;
        python::run(&mut self.shell(prepare))?;
        // The shell becomes the gateway, so that it can be killed.
        let mut shell = self.shell(&format!("exec {serve}"));
        shell.env("OMBRA_GATEWAY_LISTEN", "127.0.0.1:0");
        let mut running = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let printed = lines(running.stdout.take().context("its output")?);
        let works = lines_to(&printed, "gateway ").and_then(|mut lines| lines.pop());
        // It says where it listens.
        let address = works.as_deref().and_then(|line| line.split(['/', ' ']).nth_back(1));
        let listens = address.is_some_and(|address| TcpStream::connect(address).is_ok());
        running.kill()?;
        let output = running.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(listens, "the gateway of one's own does not work: {works:?}, {said}");
        say("   a gateway of one's own");
        Ok(())
    }

    /// The address of a wallet.
    fn address(&self, wallet: &str) -> anyhow::Result<String> {
        let told = python::run(&mut self.shell(&format!("ombra keys show {wallet} --json")))?;
        let told: Value = serde_json::from_str(&told)?;
        Ok(told["address"].as_str().context("an address")?.to_owned())
    }
}
