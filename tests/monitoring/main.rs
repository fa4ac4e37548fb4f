//! The monitoring suite: a real Prometheus watches a real chain, a miner and a gateway on it, with the
//! files of `packaging/monitoring`, and answers all that the dashboards ask.
//!
//! It needs the program `prometheus` in the path, or in the variable `PROMETHEUS`. Where there is none
//! it says so and ends with exit code 77, which no other end has.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use testkit::chat::{Client, chat, stream};
use testkit::dashboards::{Dashboard, GATEWAYS, MINERS, NODES, list, packaged};
use testkit::gateway::{Gateway, Home};
use testkit::miners::{Miner, MinerHome, Requester, Wish};
use testkit::model::ModelServer;
use testkit::net::{Net, free_ports};
use testkit::node::{wait_for, wait_until};
use testkit::process::Process;
use testkit::suite::{self, Outcome, needs};
use testkit::workload::Workload;

const VALIDATORS: usize = 4;
const FOLLOWERS: usize = 1;
/// More than are sent while Prometheus is waited for.
const TRANSFERS: usize = 5_000;
/// What is rightly empty where all is well.
const EMPTY: &[&str] = &["Restarts", "Why there is no work"];
/// Development accounts of who mines and who asks; the transfers are of the first.
const MINING: usize = 9;
const ASKING: usize = 8;

fn main() -> ExitCode {
    suite::conclude("monitoring", run())
}

fn run() -> anyhow::Result<Outcome> {
    let program = std::env::var_os("PROMETHEUS").map_or_else(|| "prometheus".into(), PathBuf::from);
    needs::runs(&program, "--version")?;
    let queries = watch(&program)?;
    Ok(Outcome::Passed(format!("Prometheus answered {queries} queries")))
}

/// Watches the chain until everything has an answer; answers how many queries those were.
fn watch(program: &Path) -> anyhow::Result<usize> {
    let base = free_ports(2)?;
    let mut net = Net::make(VALIDATORS, FOLLOWERS)?;
    let mut targets = Vec::new();
    for (host, member) in (1..).zip(&mut net.members) {
        // A host each: the label `instance` is the target without its port.
        let listen = SocketAddr::from(([127, 0, 0, host], base));
        member.start_with(&[("OMBRA__RPC__METRICS_LISTEN", listen.to_string())])?;
        targets.push(format!("\"{listen}\""));
    }
    let host = u8::try_from(targets.len() + 1)?;
    let miner = Mining::start(net.members[0].rpc, SocketAddr::from(([127, 0, 0, host], base)))?;
    let miners = [format!("\"{}\"", miner.metrics)];
    let gateway = Asking::start(
        net.members[0].rpc,
        SocketAddr::from(([127, 0, 0, host.checked_add(1).context("a host")?], base)),
    )?;
    let gateways = [format!("\"{}\"", gateway.metrics)];
    let prometheus = Prometheus::start(program, [&targets, &miners, &gateways], base + 1)?;
    let jobs = [
        ("ombra", targets.len()),
        ("ombra-miner", miners.len()),
        ("ombra-gateway", gateways.len()),
    ];
    for (job, targets) in jobs {
        wait_for(&format!("Prometheus to reach all of {job}"), || {
            // It says that it is ready a moment before it answers.
            let reached = prometheus.query(&format!("sum(up{{job=\"{job}\"}})"));
            let reached = reached.unwrap_or_default();
            let reached = reached.first().and_then(|sample| sample["value"][1].as_str());
            Ok((reached == Some(&targets.to_string())).then_some(()))
        })?;
    }
    let answered = answers_for_nodes(&prometheus, &net)?;
    let answered = answered + answers_for_gateways(&prometheus, gateway)?;
    let answered = answered + answers_for_miners(&prometheus, miner)?;
    prometheus.has_no_alarm()?;
    Ok(answered)
}

/// All that the dashboard of nodes asks has an answer.
fn answers_for_nodes(prometheus: &Prometheus, net: &Net) -> anyhow::Result<usize> {
    let mut work = Workload::transfers(TRANSFERS, 1)?.waves.into_iter();
    let texts = work.next().context("a wave")?.by_sender.into_iter().next().context("a sender")?;
    let mut texts = texts.into_iter();
    prometheus.answers(NODES, || {
        // Something for each figure: a transfer, and a call that is refused.
        drop(net.members[VALIDATORS].send(&texts.next().context("enough transfers")?)?);
        drop(net.members[0].call("ombra_getBlock", &json!(["no height"])));
        Ok(())
    })
}

/// The same for miners.
fn answers_for_miners(prometheus: &Prometheus, miner: Mining) -> anyhow::Result<usize> {
    let Mining { mut requester, process, .. } = miner;
    let wish = Wish::new("How much is 17 times 23?", &["math_eval"]);
    let answered = prometheus.answers(MINERS, || {
        let run = requester.ask(&wish)?;
        requester.settled(&run)?;
        Ok(())
    })?;
    process.stop()?;
    Ok(answered)
}

/// The same for gateways.
fn answers_for_gateways(prometheus: &Prometheus, gateway: Asking) -> anyhow::Result<usize> {
    let Asking { client, poor, process, .. } = gateway;
    let mut number = 0;
    let answered = prometheus.answers(GATEWAYS, || {
        // Answers, whole and as streams, and a key without money.
        number += 1;
        let question = format!("Question {number}");
        let answer = client.ask(&chat(&question), &[])?;
        ensure!(answer.content()? == "Hello.", "{answer:?}");
        let streamed = client.ask(&stream(&question), &[])?;
        ensure!(streamed.text.ends_with("data: [DONE]\n\n"), "{streamed:?}");
        let refused = poor.ask(&chat(&question), &[])?;
        ensure!(refused.code() == "insufficient_quota", "{refused:?}");
        Ok(())
    })?;
    process.stop()?;
    Ok(answered)
}

/// A gateway, and two who ask it, one of them without money.
struct Asking {
    client: Client,
    poor: Client,
    process: Gateway,
    metrics: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Asking {
    fn start(rpc: SocketAddr, metrics: SocketAddr) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_ports(1)?));
        let settings = "public_prompts = true\nclaim_wait_ms = 60000\n";
        let home = Home::new(folder.path(), (rpc, address), settings)?;
        let [client, poor] = [("client", "1ombra"), ("poor", "1")].map(|(name, budget)| {
            let key = home.new_key(name, &["--budget", budget]);
            key.map(|key| Client { address, key })
        });
        let process = home.start_with(&[("OMBRA_GATEWAY_METRICS", &metrics.to_string())])?;
        Ok(Self { client: client?, poor: poor?, process, metrics, _folder: folder })
    }
}

/// A miner whose model follows a rule, and who asks it.
struct Mining {
    requester: Requester,
    process: Miner,
    metrics: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Mining {
    fn start(rpc: SocketAddr, metrics: SocketAddr) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let model = ModelServer::start("math_eval", &json!({ "expression": "17*23" }))?;
        let home = MinerHome::new(folder.path(), MINING, rpc, &model.settings())?;
        let process = home.start_with(&[("OMBRA_MINER_METRICS", &metrics.to_string())])?;
        let requester = Requester::new(ASKING, rpc)?;
        Ok(Self { requester, process, metrics, _folder: folder })
    }
}

/// A Prometheus with a folder of its own.
struct Prometheus {
    process: Process,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Prometheus {
    fn start(
        program: &Path,
        [nodes, miners, gateways]: [&[String]; 3],
        port: u16,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let filled = |name, targets: &[String]| {
            Ok::<_, anyhow::Error>(packaged(name)?.replace("@TARGETS@", &targets.join(", ")))
        };
        let rules = "  - alerts.yml\n";
        let more = filled("miner-scrape.yml", miners)? + &filled("gateway-scrape.yml", gateways)?;
        let settings = filled("prometheus.yml", nodes)? + &more;
        ensure!(settings.contains(rules), "{settings}");
        let more = "  - miner-alerts.yml\n  - gateway-alerts.yml\n";
        let settings = settings.replace(rules, &format!("{rules}{more}"));
        std::fs::write(folder.path().join("prometheus.yml"), settings)?;
        for name in ["alerts.yml", "miner-alerts.yml", "gateway-alerts.yml"] {
            std::fs::write(folder.path().join(name), packaged(name)?)?;
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let log = std::fs::File::create(folder.path().join("log"))?;
        let mut command = Command::new(program);
        command.current_dir(folder.path()).arg("--config.file=prometheus.yml");
        command.arg("--storage.tsdb.path=data").arg(format!("--web.listen-address={address}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = Process::start("Prometheus", &mut command)?;
        let mut prometheus = Self { process, address, folder };
        wait_for("Prometheus", || {
            if let Some(status) = prometheus.process.child.try_wait()? {
                let log = std::fs::read_to_string(prometheus.folder.path().join("log"))?;
                bail!("Prometheus ended with {status}: {log}");
            }
            Ok(prometheus.ask("/-/ready").is_ok().then_some(()))
        })?;
        Ok(prometheus)
    }

    /// Gets a path and answers the body, whatever the status is.
    fn ask(&self, path: &str) -> anyhow::Result<String> {
        let client = Client { address: self.address, key: String::new() };
        Ok(client.get(path, &[])?.text)
    }

    /// The samples that an expression has now.
    fn query(&self, query: &str) -> anyhow::Result<Vec<Value>> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = self.ask(&format!("/api/v1/query?query={encoded}"))?;
        let mut answer: Value = serde_json::from_str(&answer).context(answer)?;
        ensure!(answer["status"] == "success", "{query}: {answer}");
        serde_json::from_value(answer["data"]["result"].take()).context("a list of samples")
    }

    /// Waits until everything that a dashboard asks has an answer; `work` gives it something to show.
    fn answers(
        &self,
        dashboard: &str,
        mut work: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        let queries = Dashboard::read(dashboard)?.queries()?;
        for (title, query) in &queries {
            // The variables filled in as Grafana would.
            let query = ["$node", "$miner", "$gateway"]
                .into_iter()
                .fold(query.clone(), |query, variable| query.replace(variable, ".*"));
            let query = query.replace("$__rate_interval", "20s");
            ensure!(!query.contains('$'), "{query}: a variable that nobody fills in");
            wait_until(&format!("{title}: {query}"), || {
                work()?;
                let found = self.query(&query).with_context(|| title.clone())?;
                Ok(!found.is_empty() || EMPTY.contains(&title.as_str()))
            })?;
        }
        Ok(queries.len())
    }

    /// All rules were evaluated without an error, and none of them is an alarm.
    fn has_no_alarm(&self) -> anyhow::Result<()> {
        let answer: Value = serde_json::from_str(&self.ask("/api/v1/rules")?)?;
        let rules: Vec<_> =
            list(&answer["data"]["groups"]).flat_map(|group| list(&group["rules"])).collect();
        ensure!(!rules.is_empty(), "no alert was loaded: {answer}");
        for rule in rules {
            ensure!(rule["health"] == "ok" && rule["state"] != "firing", "{rule}");
        }
        Ok(())
    }
}
