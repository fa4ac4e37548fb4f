//! Agents that want to use their members up: one that never ends, in calls that allow all the work and all
//! the time that there is, and one that gives its members as much to remember as it can. Nobody pays
//! for members that give up, so that must not cost them much, and calls of others must not wait.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::client;
use testkit::harness::{Town, User};
use testkit::metadata::method;
use testkit::miners::{Miner, MinerHome, explain_all};
use testkit::parallel::beside;
use testkit::process;
use testkit::script::{Model, Question, Reply};
use testkit::suite::say;
use testkit::workload::key;

/// Blocks and phases as short as a chain may have them.
const PARAMS: &[&str] =
    &["minBlockIntervalMs=100", "heartbeatMs=1000", "revealMs=5000", "appealMs=10000"];
/// The accounts: who publishes, the miners, who attacks, who pays, the user.
const OWNER: usize = 0;
const MINERS: [usize; 3] = [1, 2, 3];
const ATTACKER: usize = 4;
const PAYER: usize = 5;
const ACCOUNTS: usize = 7;
/// How long a miner works on one call, and on how many at once.
const WORK_MS_MAX: u64 = 2_000;
const CAPACITY: u64 = 2;
/// Calls of each.
const GREEDY: usize = 3;
const PAID: usize = 6;
/// A greedy call takes a miner's time, its two phases, and what a busy machine adds.
const GREEDY_MAX: Duration = Duration::from_secs(20);
/// What a call that pays may take: it waits at most for one greedy one.
const PAID_MAX: Duration = Duration::from_secs(15);
/// What a miner may have had of memory: 60 MiB without an attack.
const MEMORY_KB_MAX: u64 = 512 * 1_024;
/// The most fuel that a call may allow.
const FUEL: &str = "fuel=100000000000";

/// An agent that is a program, and its text.
struct Program {
    name: &'static str,
    module: String,
    tools: &'static [&'static str],
}

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::from_v8(1, ACCOUNTS, PARAMS)?;
    let rpc = town.node(0)?.rpc;
    let user = User::start(rpc, key(ACCOUNTS - 1)?);
    let folder = tempfile::tempdir()?;
    let model = Model::start(|_: &Question| Reply::said("nobody asks"))?;
    for program in [endless(), hoarding()] {
        publish(rpc, folder.path(), &program)?;
    }
    publish_file(rpc, KEYWORDS, KEYWORDS_PROGRAM, "example-keywords-1")?;
    let settings = settings(&model);
    let home = |account| MinerHome::new(folder.path(), account, rpc, &settings);
    let homes = MINERS.into_iter().map(home).collect::<anyhow::Result<Vec<_>>>()?;
    let miners = homes.iter().map(MinerHome::start).collect::<anyhow::Result<Vec<_>>>()?;
    let told = play(rpc, &miners);
    let told = told.map_err(|fault| explain_all(&homes, fault))?;
    say(&format!("   {told}"));
    miners.into_iter().try_for_each(Miner::stop)?;
    let seen = user.tell("meanwhile")?;
    seen.is_served()
}

fn play(rpc: SocketAddr, miners: &[Miner]) -> anyhow::Result<String> {
    testkit::miners::wait_for_offers(rpc, "wasm-1", MINERS.len())?;
    let (paid, greedy) = beside(|| pay(rpc), |over| attack(rpc, over))?;
    let mut peaks = Vec::new();
    for miner in miners {
        let peak = process::peak_rss_kb(miner.pid())?;
        ensure!(peak < MEMORY_KB_MAX, "a miner has had {peak} KiB");
        peaks.push(peak / 1_024);
    }
    Ok(format!(
        "greedy calls were over after {greedy:.1?}; the longest of {PAID} paid ones took {paid:.1?}; \
         miners had {peaks:?} MiB at most"
    ))
}

/// Asks for what never ends and for what is too much, until the others have what they paid for; the longest
/// that a call took.
fn attack(rpc: SocketAddr, over: &AtomicBool) -> anyhow::Result<Duration> {
    let (mut longest, mut answers) = (Duration::ZERO, 0);
    for number in 0.. {
        if over.load(Ordering::Relaxed) && number >= GREEDY {
            break;
        }
        let (name, expected) =
            if number % 2 == 0 { ("endless", "unable") } else { ("hoarding", "failure") };
        let began = Instant::now();
        let options = ["--limit", FUEL, "--timeout-ms", "600000"];
        let call = call(rpc, ATTACKER, &[name, "f"], &options)?;
        longest = longest.max(began.elapsed());
        for member in call["rounds"][0]["members"].as_array().into_iter().flatten() {
            ensure!(member["reveal"]["outcome"] == expected, "{name}: {member}");
            answers += 1;
        }
    }
    ensure!(answers > 0, "nobody was a member of a greedy call");
    ensure!(longest < GREEDY_MAX, "a greedy call took {longest:.1?}");
    Ok(longest)
}

/// Asks for little work and pays for it; the longest that a call took.
fn pay(rpc: SocketAddr) -> anyhow::Result<Duration> {
    let mut longest = Duration::ZERO;
    for _ in 0..PAID {
        let began = Instant::now();
        let call = call(rpc, PAYER, &["Keywords", "classify", "I love it"], &[])?;
        ensure!(call["status"] == "success", "a call that pays was not answered: {call}");
        longest = longest.max(began.elapsed());
    }
    ensure!(longest < PAID_MAX, "a call that pays took {longest:.1?}");
    Ok(longest)
}

/// A call of a committee of all miners, once it is decided.
fn call(rpc: SocketAddr, account: usize, what: &[&str], more: &[&str]) -> anyhow::Result<Value> {
    let options = ["--dev", &account.to_string(), "--anyway"];
    client::answered(rpc, &[&["call"], what, &options, more].concat())
}

const KEYWORDS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/agents/keywords/agent.json");
const KEYWORDS_PROGRAM: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/agents/built/keywords.wasm");

fn publish(rpc: SocketAddr, folder: &Path, agent: &Program) -> anyhow::Result<()> {
    let Program { name, module, tools } = agent;
    let (wasm, metadata) = (folder.join(name), folder.join(format!("{name}.json")));
    std::fs::write(&wasm, wat::parse_str(module)?)?;
    let blob = format!("blob-{name}");
    let text = json!({
        "name": name, "description": "Wants all.", "version": "1.0.0",
        "container_image": format!("ombra-blob:{blob}"),
        "executor": { "kind": "wasm", "blobId": blob, "runtime": "wasm-1", "tools": tools },
        "royalty": "0",
        "abi": [method("f", &[], &[])],
    });
    std::fs::write(&metadata, text.to_string())?;
    let path = |path: &Path| path.to_str().map(str::to_owned).context("a path");
    publish_file(rpc, &path(&metadata)?, &path(&wasm)?, &blob)
}

fn publish_file(rpc: SocketAddr, metadata: &str, wasm: &str, blob: &str) -> anyhow::Result<()> {
    let owner = OWNER.to_string();
    let stored = client::told(rpc, &["tx", "blob", wasm, "--id", blob, "--dev", &owner])?;
    ensure!(stored.contains("can be referenced"), "{stored}");
    let published = client::told(rpc, &["agents", "register", metadata, "--dev", &owner])?;
    ensure!(published.contains("AGENT_REGISTER"), "{published}");
    Ok(())
}

/// Does nothing for ever.
fn endless() -> Program {
    let module = program_of("", "(loop $again (br $again)) unreachable");
    Program { name: "endless", module, tools: &[] }
}

/// Calls a tool as often as a program may, each time with ten thousand empty arrays as arguments.
fn hoarding() -> Program {
    let arguments = "[],".repeat(10_000);
    let ask = format!(r#"{{"name":"math_eval","arguments":{{"a":[{arguments}[]]}}}}"#);
    let bytes: String = ask.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let imports = format!(
        "(import \"ombra\" \"tool\" (func $tool (param i32 i32) (result i64)))
         (data (i32.const 8192) \"{bytes}\")"
    );
    let body = format!(
        "(local $n i32)
         (loop $again
           (drop (call $tool (i32.const 8192) (i32.const {})))
           (local.set $n (i32.add (local.get $n) (i32.const 1)))
           (br_if $again (i32.lt_u (local.get $n) (i32.const 1000))))
         i64.const 0",
        ask.len()
    );
    Program { name: "hoarding", module: program_of(&imports, &body), tools: &["math_eval"] }
}

fn program_of(imports: &str, body: &str) -> String {
    format!(
        "(module {imports} (memory (export \"memory\") 4)
           (func (export \"alloc\") (param i32) (result i32) i32.const 4096)
           (func (export \"handle\") (param i32 i32) (result i64) {body}))"
    )
}

fn settings(model: &Model) -> String {
    format!(
        "{}[engine]\npoll_ms = 500\npause_ms = 50\n[policy]\nclaiming = false\n\
         [market]\nwork_ms_max = {WORK_MS_MAX}\n[[market.offers]]\nexecutor = \"wasm-1\"\n\
         capacity = {CAPACITY}\nper_call_micro = 1000\n",
        model.settings("")
    )
}
