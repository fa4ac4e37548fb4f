//! Metrics and health of a running gateway, and the alerts and the dashboard that are made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use serde_json::{Value, json};
use testkit::chat::{Client, chat, stream};
use testkit::dashboards::{GATEWAYS, OF_PROMETHEUS, names_in};
use testkit::gateway::{Gateway, Home};
use testkit::http::Connection;
use testkit::miners::{Miner, MinerHome};
use testkit::model::ModelServer;
use testkit::net::free_ports;
use testkit::node::{DevOptions, Node, wait_for};

use crate::support::{dev, samples};

/// What clients of streamable HTTP take.
const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
/// The account that mines; that of the gateway is the one after it.
const MINING: usize = 1;
/// A miner that asks for no bond, on a chain with fees.
const SETTINGS: &str = "claim_bond_micro = 0\nclaim_wait_ms = 60000\n";

struct Scene {
    node: Node,
    home: Home,
    client: Client,
    metrics: SocketAddr,
    _gateway: Gateway,
    _miner: Miner,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new(settings: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let node = Node::start(DevOptions { accounts: 4, ..dev(&["--v7", "0"]) })?;
        let model = ModelServer::start("none", &json!({}))?;
        let miner = MinerHome::new(folder.path(), MINING, node.rpc, &model.settings())?.start()?;
        let port = free_ports(2)?;
        let [address, metrics] =
            [port, port + 1].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let home = Home::new(folder.path(), (node.rpc, address), settings)?;
        let key = home.new_key("test", &[])?;
        let gateway = home.start_with(&[("OMBRA_GATEWAY_METRICS", &metrics.to_string())])?;
        let client = Client { address, key };
        let scene =
            Self { node, home, client, metrics, _gateway: gateway, _miner: miner, _folder: folder };
        scene.until("the gateway to open", |samples| samples.get("open") == Some(&1.0))?;
        Ok(scene)
    }

    /// A client of a name, who has no money to ask for anything.
    fn poor(&self, name: &str) -> anyhow::Result<Client> {
        Ok(Client { key: self.home.new_key(name, &["--budget", "1"])?, ..self.client.clone() })
    }

    fn get(&self, path: &str) -> anyhow::Result<String> {
        Connection::open(self.metrics)?.get_any(path)
    }

    /// Every sample by its name without what all of them begin with, and by its labels.
    fn samples(&self) -> anyhow::Result<BTreeMap<String, f64>> {
        samples(&self.get("/metrics")?, "ombra_gateway_")
    }

    fn until(
        &self,
        what: &str,
        is_so: impl Fn(&BTreeMap<String, f64>) -> bool,
    ) -> anyhow::Result<BTreeMap<String, f64>> {
        wait_for(what, || {
            let samples = self.samples()?;
            Ok(is_so(&samples).then_some(samples))
        })
    }

    /// The outcomes of the checks of `/readyz` by their names.
    fn checks(&self) -> anyhow::Result<BTreeMap<String, bool>> {
        let told: Value = serde_json::from_str(&self.get("/readyz")?)?;
        let checks = told["checks"].as_array().context("checks")?;
        let check = |it: &Value| Some((it["name"].as_str()?.to_owned(), it["ok"].as_bool()?));
        checks.iter().map(check).collect::<Option<_>>().context("a name and an outcome")
    }
}

/// A call of the tool `ask`.
fn tool(prompt: &str) -> String {
    let params = json!({ "name": "ask", "arguments": { "prompt": prompt } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

fn has(samples: &BTreeMap<String, f64>, expected: &[(&str, f64)]) {
    for (name, value) in expected {
        assert_eq!(Some(value), samples.get(*name), "{name}");
    }
}

#[test]
fn a_request_is_measured_and_an_absent_node_is_told() -> anyhow::Result<()> {
    let mut scene = Scene::new(SETTINGS)?;
    let before =
        scene.until("the wallet to be looked at", |it| it.contains_key("balance_micro"))?;
    let answer = scene.client.ask(&chat("Hi"), &[])?;
    assert_eq!("Hello.", answer.content()?);
    let cost_micro = answer.json()?["usage"]["cost_micro"].as_f64().context("a cost")?;
    let streamed = scene.client.ask(&stream("Hi"), &[])?;
    assert!(streamed.text.ends_with("data: [DONE]\n\n"), "{streamed:?}");
    let refused = scene.poor("poor")?.ask(&chat("Hi"), &[])?;
    assert_eq!((429, "insufficient_quota".to_owned()), refused.fault());
    let unknown = Client { key: "sk-ombra-no".to_owned(), ..scene.client.clone() };
    assert_eq!(401, unknown.ask(&chat("Hi"), &[])?.status);
    let told = scene.client.post("/mcp", &tool("Hi"), &[ACCEPT])?;
    assert!(told.text.contains("Hello."), "{told:?}");
    assert_eq!(401, unknown.post("/mcp", &tool("Hi"), &[ACCEPT])?.status);
    let spent = |it: &BTreeMap<String, f64>| it["balance_micro"] < before["balance_micro"];
    let measured = scene.until("the spent money to be seen", |it| {
        spent(it)
            && it.get("ended_total{outcome=\"paid\"}") == Some(&3.0)
            && it["outbox"] == 0.0
            && it.get("open_requests{phase=\"running\"}") == Some(&0.0)
            && it["streams"] == 0.0
    })?;
    has(
        &measured,
        &[
            ("requests_total{interface=\"chat\",outcome=\"answered\"}", 2.0),
            ("requests_total{interface=\"chat\",outcome=\"insufficient_quota\"}", 1.0),
            ("requests_total{interface=\"chat\",outcome=\"invalid_api_key\"}", 1.0),
            ("refusals_total{limit=\"budget\"}", 1.0),
            ("requests_total{interface=\"mcp\",outcome=\"answered\"}", 1.0),
            ("requests_total{interface=\"mcp\",outcome=\"invalid_api_key\"}", 1.0),
            ("ended_total{outcome=\"paid\"}", 3.0),
            ("request_seconds_count", 3.0),
            ("outbox_oldest_seconds", 0.0),
            ("node_ready", 1.0),
            ("balance_micro_min", 50_000.0),
        ],
    );
    assert!(measured["request_seconds_sum"] > 0.0);
    // Places in blocks differ a little with the length of a request.
    let apart = measured["spent_micro_total"] - 3.0 * cost_micro;
    assert!(apart.abs() < 30.0, "{apart}");
    let checks = scene.checks()?;
    assert!(checks.values().all(|is_ok| *is_ok), "{checks:?}");

    scene.node.kill()?;
    let measured = scene.until("the node to be missed", |it| {
        it["node_ready"] == 0.0 && it["node_failures_total"] > 0.0
    })?;
    assert!(measured["balance_micro"] > 0.0, "what the node said last is kept");
    let failing: Vec<_> =
        scene.checks()?.into_iter().filter_map(|(name, is_ok)| (!is_ok).then_some(name)).collect();
    assert_eq!(vec!["node".to_owned()], failing);
    Ok(())
}

#[test]
fn what_waits_is_seen_with_its_money() -> anyhow::Result<()> {
    // Nobody mines for such a model, so the run waits until it is taken back.
    let scene =
        Scene::new("claim_bond_micro = 0\nclaim_wait_ms = 8000\nescrow_micro_min = 3000\n")?;
    let mut body = stream("Hi");
    body["model"] = json!("ombra:no-such-model");
    let waiting = scene.client.begin(&body, &[])?;
    let measured =
        scene.until("the run to wait", |it| it["open_requests{phase=\"sent\"}"] == 1.0)?;
    assert!(measured["reserved_micro"] > 3_000.0, "{measured:?}");
    has(&measured, &[("escrowed_micro", 3_000.0)]);
    assert!(measured["connections"] >= 1.0);
    assert!(measured["left_micro"] < measured["balance_micro"]);
    body["messages"][0]["content"] = json!("Bye");
    let leaving = scene.client.begin(&body, &[])?;
    scene.until("both to wait", |it| it["open_requests{phase=\"sent\"}"] == 2.0)?;
    drop(leaving);
    let hung_up = "requests_total{interface=\"chat\",outcome=\"hung_up\"}";
    scene.until("the lost client to be counted", |it| it.get(hung_up) == Some(&1.0))?;
    let answer = testkit::chat::read(waiting)?;
    assert_eq!((503, "no_miner".to_owned()), answer.fault());
    let measured = scene.until("the escrows to come back", |it| {
        let ended = it.get("ended_total{outcome=\"no_miner\"}");
        it["escrowed_micro"] == 0.0 && ended == Some(&2.0)
    })?;
    has(
        &measured,
        &[
            ("ended_total{outcome=\"no_miner\"}", 2.0),
            ("requests_total{interface=\"chat\",outcome=\"no_miner\"}", 1.0),
            ("open_requests{phase=\"sent\"}", 0.0),
            ("reserved_micro", 0.0),
        ],
    );
    Ok(())
}

#[test]
fn metrics_do_not_grow_with_the_number_of_keys() -> anyhow::Result<()> {
    let scene = Scene::new(SETTINGS)?;
    let count = || Ok::<_, anyhow::Error>(scene.samples()?.len());
    scene.until("the wallet to be looked at", |it| it.contains_key("left_micro"))?;
    let before = count()?;
    for number in 0..30 {
        let client = scene.poor(&format!("key-{number}"))?;
        assert_eq!(429, client.ask(&chat("Hi"), &[])?.status);
    }
    // One for the outcome, one for the limit.
    assert_eq!(before + 2, count()?);
    Ok(())
}

#[test]
fn every_metric_of_the_alerts_and_of_the_dashboard_is_measured() -> anyhow::Result<()> {
    let scene = Scene::new(SETTINGS)?;
    scene.client.ask(&chat("Hi"), &[])?.content()?;
    scene.poor("poor")?.ask(&chat("Hi"), &[])?;
    let name =
        |sample: &String| format!("ombra_gateway_{}", sample.split('{').next().unwrap_or_default());
    let samples = scene.until("the wallet to be looked at", |it| it.contains_key("left_micro"))?;
    let measured: BTreeSet<_> = samples.keys().map(name).collect();
    let known = |name: &String| OF_PROMETHEUS.contains(&name.as_str()) || measured.contains(name);
    let unknown: Vec<_> =
        names_in(GATEWAYS, "gateway-alerts.yml")?.into_iter().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "no gateway measures {unknown:?}");
    Ok(())
}
