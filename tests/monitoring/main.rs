//! The monitoring suite: a real Prometheus watches a real chain and a miner on it, with the files of
//! `packaging/monitoring`, and answers all that the dashboards ask.
//!
//! It needs the program `prometheus` in the path, or in the variable `PROMETHEUS`. Where there is none
//! it says so and ends with exit code 77, which no other end has.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tests::dashboards::{Dashboard, MINERS, NODES, list, packaged};
use tests::miners::{Miner, MinerHome, Requester, Wish};
use tests::model::ModelServer;
use tests::net::{Net, free_ports};
use tests::node::wait_for;
use tests::workload::Workload;

/// What `automake` and others take for "skipped".
const SKIPPED: u8 = 77;
const VALIDATORS: usize = 4;
const FOLLOWERS: usize = 1;
/// More than are sent while Prometheus is waited for.
const TRANSFERS: usize = 5_000;
/// What is rightly empty where all is well.
const EMPTY: &[&str] = &["Restarts", "Why there is no work"];
/// Development accounts of who mines and who asks; the transfers are of the first.
const MINING: usize = 9;
const ASKING: usize = 8;

/// Says what happens, for whoever waits.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(writeln!(stdout, "{line}"));
    drop(stdout.flush());
}

fn main() -> ExitCode {
    let program = std::env::var_os("PROMETHEUS").map_or_else(|| "prometheus".into(), PathBuf::from);
    let version = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
    if !version.is_ok_and(|output| output.status.success()) {
        say(&format!("monitoring suite: SKIPPED: {} does not run", program.display()));
        return ExitCode::from(SKIPPED);
    }
    match run(&program) {
        Ok(queries) => {
            say(&format!("monitoring suite: RAN: Prometheus answered {queries} queries"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("monitoring suite: FAILED: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(program: &Path) -> anyhow::Result<usize> {
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
    let prometheus = Prometheus::start(program, [&targets, &miners], base + 1)?;
    for (job, targets) in [("ombra", targets.len()), ("ombra-miner", miners.len())] {
        wait_for(&format!("Prometheus to reach all of {job}"), || {
            // It says that it is ready a moment before it answers.
            let reached = prometheus.query(&format!("sum(up{{job=\"{job}\"}})"));
            let reached = reached.unwrap_or_default();
            let reached = reached.first().and_then(|sample| sample["value"][1].as_str());
            Ok((reached == Some(&targets.to_string())).then_some(()))
        })?;
    }
    let answered = answers_for_nodes(&prometheus, &net)?;
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

/// A Prometheus with a folder of its own. Dropping it kills it.
struct Prometheus {
    process: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Prometheus {
    fn start(program: &Path, [nodes, miners]: [&[String]; 2], port: u16) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let filled = |name, targets: &[String]| {
            Ok::<_, anyhow::Error>(packaged(name)?.replace("@TARGETS@", &targets.join(", ")))
        };
        let rules = "  - alerts.yml\n";
        let settings = filled("prometheus.yml", nodes)? + &filled("miner-scrape.yml", miners)?;
        ensure!(settings.contains(rules), "{settings}");
        let settings = settings.replace(rules, &format!("{rules}  - miner-alerts.yml\n"));
        std::fs::write(folder.path().join("prometheus.yml"), settings)?;
        for name in ["alerts.yml", "miner-alerts.yml"] {
            std::fs::write(folder.path().join(name), packaged(name)?)?;
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let log = std::fs::File::create(folder.path().join("log"))?;
        let mut command = Command::new(program);
        command.current_dir(folder.path()).arg("--config.file=prometheus.yml");
        command.arg("--storage.tsdb.path=data").arg(format!("--web.listen-address={address}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().context("starting Prometheus")?;
        let mut prometheus = Self { process, address, folder };
        wait_for("Prometheus", || {
            if let Some(status) = prometheus.process.try_wait()? {
                let log = std::fs::read_to_string(prometheus.folder.path().join("log"))?;
                bail!("Prometheus ended with {status}: {log}");
            }
            Ok(prometheus.ask("/-/ready").is_ok().then_some(()))
        })?;
        Ok(prometheus)
    }

    /// Gets a path and answers the body, whatever the status is.
    fn ask(&self, path: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        // With the older protocol the end of the stream is the end of the body.
        write!(stream, "GET {path} HTTP/1.0\r\nhost: {}\r\n\r\n", self.address)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
        Ok(body.to_owned())
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
            let query = query.replace("$node", ".*").replace("$miner", ".*");
            let query = query.replace("$__rate_interval", "20s");
            ensure!(!query.contains('$'), "{query}: a variable that nobody fills in");
            wait_for(&format!("{title}: {query}"), || {
                work()?;
                let found = self.query(&query).with_context(|| title.clone())?;
                Ok((!found.is_empty() || EMPTY.contains(&title.as_str())).then_some(()))
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

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
