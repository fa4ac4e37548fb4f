//! The official client of the Model Context Protocol, unmodified, over both transports and in each
//! version of the protocol.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::chat::Client;
use testkit::node::program;
use testkit::parallel::joined;
use testkit::process::{ended, lines};
use testkit::python;
use testkit::suite::say;

use crate::committee::Committee;
use crate::scene::{MARKET, Scene, at_home};

/// Environments with the package, and the versions of the protocol that it speaks and no older one
/// does: name, packages, versions.
const PACKAGES: [(&str, &[&str], &[&str]); 2] = [
    // This one does not go with later versions of pydantic.
    ("python-mcp-1", &["mcp==1.19.0", "pydantic==2.11.10"], &["2025-06-18"]),
    ("python-mcp-2", &["mcp==2.3.0"], &["2025-11-25", "2026-07-28"]),
];
/// The account that pays for what is asked over standard input.
const STDIO_ACCOUNT: &str = "3";
/// The tool that the settings make of the agent.
const TOOL: &str = "judge_review";
/// What one request may cost, so that a larger one is refused.
const LIMITS: [&str; 2] = ["--per-request", "10000"];

pub(crate) fn run() -> anyhow::Result<String> {
    let python =
        |(name, packages, versions)| anyhow::Ok((python::needed(name, packages, "mcp")?, versions));
    let pythons = PACKAGES.into_iter().map(python).collect::<anyhow::Result<Vec<_>>>()?;
    // Nobody else takes the run back that a client takes back.
    let settings = "claim_bond_micro = 0\nclaim_wait_ms = 60000\n";
    Scene::of_chain(settings, &LIMITS, &MARKET)?.play(|scene| {
        let committee = Committee::start(scene.node.rpc)?;
        let agent = committee.model();
        let mut command = program();
        command.args(["gateway", "tool", &agent, "judge", "--name", TOOL, "--rpc"]);
        let tool = python::run(command.arg(format!("http://{}", scene.node.rpc)))?;
        std::fs::write(scene.home.settings(), format!("{settings}{tool}"))?;
        scene.kill_and_restart()?;
        doors(&scene.client)?;
        for (python, versions) in &pythons {
            for version in *versions {
                for transport in ["http", "stdio"] {
                    talk(scene, &committee, (python, version, transport))?;
                    say(&format!("   {version} over {transport}"));
                }
            }
        }
        books_of_stdio(scene)?;
        Ok("three versions over two transports were answered as the client expects".to_owned())
    })
}

/// Nobody comes in without a key, from another page, or by another name.
fn doors(client: &Client) -> anyhow::Result<()> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let accept = ("accept", "application/json, text/event-stream");
    let of_nobody = Client { key: "sk-ombra-00".to_owned(), ..client.clone() };
    let answer = of_nobody.post("/mcp", &body, &[accept])?;
    ensure!(answer.fault() == (401, "invalid_api_key".to_owned()), "{answer:?}");
    ensure!(answer.header("www-authenticate") == Some("Bearer"), "{answer:?}");
    let answer = client.post("/mcp", &body, &[accept, ("origin", "https://evil.example")])?;
    ensure!(answer.status == 403, "{answer:?}");
    let answer = client.post("/mcp", &body, &[accept])?;
    ensure!(answer.status == 200 && answer.text.contains("\"ask\""), "{answer:?}");
    Ok(())
}

/// Has a client talk with the gateway, and the miner let go what the client says.
fn talk(
    scene: &Scene,
    committee: &Committee,
    (python, version, transport): (&Path, &str, &str),
) -> anyhow::Result<()> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/gateway/python/mcp_client.py");
    let mut command = Command::new(python);
    command.args([script, version, transport]);
    command.env("MCP_URL", format!("http://{}/mcp", scene.client.address));
    command.env("MCP_KEY", &scene.client.key);
    command.env("MCP_AGENT", committee.model()).env("MCP_TOOL", TOOL);
    command.env("MCP_COMMAND", json!(stdio_command(scene, "mcp")).to_string());
    at_home(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = command.spawn().context("a client")?;
    let printed = lines(client.stdout.take().context("its output")?);
    let ending = std::thread::spawn(move || ended(client));
    let mut is_done = false;
    for line in printed {
        if let Some(name) = line.strip_prefix("let go ") {
            scene.worker.let_go(name);
            committee.let_go(name);
        }
        is_done |= line.starts_with("done ");
    }
    let output = joined(ending.join(), "the client's thread")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(is_done && output.status.success(), "{version} over {transport}: {said}");
    Ok(())
}

/// What the books of the gateway on standard input say.
fn books_of_stdio(scene: &Scene) -> anyhow::Result<()> {
    let mut command = stdio_command(scene, "gateway");
    command.insert(2, "check".to_owned());
    let (program, arguments) = command.split_first().context("a command")?;
    let told = python::run(Command::new(program).args(arguments).arg("--json"))?;
    let told: Value = serde_json::from_str(&told)?;
    ensure!(told["faults"] == json!([]) && told["open"] == 0, "{told}");
    ensure!(told["escrowedMicro"] == 0, "an escrow is forgotten: {told}");
    Ok(())
}

/// `ombra mcp`, or another command on the same store.
fn stdio_command(scene: &Scene, name: &str) -> Vec<String> {
    let program: PathBuf = program().get_program().into();
    let mut command = vec![program.display().to_string(), name.to_owned()];
    let (rpc, data) = (format!("http://{}", scene.node.rpc), scene.home.other_data());
    let data = data.display().to_string();
    command.extend(["--dev", STDIO_ACCOUNT, "--rpc", &rpc, "--data-dir", &data].map(str::to_owned));
    if name == "mcp" {
        let settings = scene.home.settings().display().to_string();
        let more = ["--config", &settings, "--balance-max", "10000ombra"];
        command.extend(LIMITS.into_iter().chain(more).map(str::to_owned));
    }
    command
}
