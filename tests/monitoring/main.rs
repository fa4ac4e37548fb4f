//! The monitoring suite: a real Prometheus watches a real chain, with the files of
//! `packaging/monitoring`, and answers all that the dashboard asks.
//!
//! It needs the program `prometheus` in the path, or in the variable `PROMETHEUS`. Where there is none
//! it says so and ends with exit code 77, which no other end has.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tests::net::{Net, free_ports};
use tests::node::wait_for;
use tests::workload::Workload;

/// What `automake` and others take for "skipped".
const SKIPPED: u8 = 77;
const VALIDATORS: usize = 4;
const FOLLOWERS: usize = 1;
/// More than are sent while Prometheus is waited for.
const TRANSFERS: usize = 5_000;
/// What is rightly empty on a chain on which all is well.
const EMPTY: &[&str] = &["Restarts"];

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
    let prometheus = Prometheus::start(program, &targets, base + 1)?;
    wait_for("Prometheus to reach all nodes", || {
        let reached = prometheus.query("sum(up{job=\"ombra\"})").unwrap_or_default();
        let reached =
            reached.first().and_then(|sample| sample["value"][1].as_str().map(str::to_owned));
        Ok((reached == Some(targets.len().to_string())).then_some(()))
    })?;
    let queries = dashboard_queries()?;
    let mut work = Workload::transfers(TRANSFERS, 1)?.waves.into_iter();
    let texts = work.next().context("a wave")?.by_sender.into_iter().next().context("a sender")?;
    let mut texts = texts.into_iter();
    for (title, query) in &queries {
        wait_for(&format!("{title}: {query}"), || {
            // Something for each figure: a transfer, and a call that is refused.
            drop(net.members[VALIDATORS].send(&texts.next().context("enough transfers")?)?);
            drop(net.members[0].call("ombra_getBlock", &json!(["no height"])));
            let found = prometheus.query(query).with_context(|| title.clone())?;
            let is_there = !found.is_empty() || EMPTY.contains(&title.as_str());
            Ok(is_there.then_some(()))
        })?;
    }
    prometheus.has_no_alarm()?;
    Ok(queries.len())
}

/// The file of `packaging/monitoring` with this name.
fn packaged(name: &str) -> anyhow::Result<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/monitoring");
    std::fs::read_to_string(folder.join(name)).with_context(|| name.to_owned())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Everything that the dashboard asks, with who asks it and the variables filled in as Grafana would.
fn dashboard_queries() -> anyhow::Result<Vec<(String, String)>> {
    let dashboard: Value = serde_json::from_str(&packaged("grafana/ombra.json")?)?;
    let panels = list(&dashboard["panels"]).flat_map(|panel| {
        list(&panel["targets"]).map(move |target| (&panel["title"], &target["expr"]))
    });
    let annotations = list(&dashboard["annotations"]["list"]).map(|it| (&it["name"], &it["expr"]));
    let text = |value: &Value| value.as_str().map(str::to_owned).context("a text");
    let queries = panels.chain(annotations).map(|(title, expr)| {
        let expr = text(expr)?.replace("$node", ".*").replace("$__rate_interval", "20s");
        ensure!(!expr.contains('$'), "{expr}: a variable that nobody fills in");
        Ok((text(title)?, expr))
    });
    queries.collect()
}

/// A Prometheus with a folder of its own. Dropping it kills it.
struct Prometheus {
    process: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Prometheus {
    fn start(program: &Path, targets: &[String], port: u16) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let settings = packaged("prometheus.yml")?.replace("@TARGETS@", &targets.join(", "));
        std::fs::write(folder.path().join("prometheus.yml"), settings)?;
        std::fs::write(folder.path().join("alerts.yml"), packaged("alerts.yml")?)?;
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
