//! The dashboard and the alerts name only what the nodes measure.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use tests::http::Connection;
use tests::net::Net;

/// What Prometheus itself makes.
const OF_PROMETHEUS: &[&str] = &["up"];

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/monitoring");
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn dashboard() -> Value {
    serde_json::from_str(&read("grafana/ombra.json")).expect("the dashboard is JSON")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Everything that the dashboard asks Prometheus.
fn dashboard_queries() -> Vec<String> {
    let dashboard = dashboard();
    let targets = list(&dashboard["panels"]).flat_map(|panel| list(&panel["targets"]));
    let annotations = list(&dashboard["annotations"]["list"]);
    let variables = list(&dashboard["templating"]["list"]).map(|it| &it["query"]["query"]);
    let queries = targets.chain(annotations).map(|it| &it["expr"]).chain(variables);
    queries.map(|text| text.as_str().expect("a query is a text").to_owned()).collect()
}

fn alert_queries() -> Vec<String> {
    let text = read("alerts.yml");
    let queries = text.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    queries.map(str::to_owned).collect()
}

/// The words of a query that can be names of metrics, texts in quotes left out.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let unquoted = query.split('"').step_by(2);
    let words = unquoted.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with("ombra_") || OF_PROMETHEUS.contains(word))
}

/// The names of all samples that a node tells.
fn measured(net: &Net) -> anyhow::Result<BTreeSet<String>> {
    let member = &net.members[0];
    member.call("ombra_chainInfo", &json!([]))?;
    let text = Connection::open(member.metrics()?)?.get("/metrics")?;
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    Ok(samples.filter_map(|line| line.split([' ', '{']).next()).map(str::to_owned).collect())
}

#[test]
fn every_metric_of_the_dashboard_and_of_the_alerts_is_measured() -> anyhow::Result<()> {
    let net = Net::start(2, 0)?;
    let measured = measured(&net)?;
    let (shown, alerting) = (dashboard_queries(), alert_queries());
    assert!(shown.len() >= 40 && alerting.len() >= 8, "{} and {}", shown.len(), alerting.len());
    for query in shown.iter().chain(&alerting) {
        let mut named = names(query).peekable();
        assert!(named.peek().is_some(), "{query} names no metric");
        for name in named {
            assert!(
                OF_PROMETHEUS.contains(&name) || measured.contains(name),
                "{query}: no node measures {name}"
            );
        }
    }
    Ok(())
}

#[test]
fn the_panels_of_the_dashboard_fit_together() {
    let dashboard = dashboard();
    let panels: Vec<_> = list(&dashboard["panels"]).collect();
    let mut ids = BTreeSet::new();
    let mut places = BTreeSet::new();
    for panel in &panels {
        let title = &panel["title"];
        assert!(ids.insert(panel["id"].as_u64()), "{title}: its id is another panel's, too");
        let place = |key: &str| panel["gridPos"][key].as_u64().expect("a panel has a place");
        assert!(place("x") + place("w") <= 24, "{title} is too wide");
        for cell in (0..place("w")).flat_map(|x| (0..place("h")).map(move |y| (x, y))) {
            let cell = (cell.0 + place("x"), cell.1 + place("y"));
            assert!(places.insert(cell), "{title} lies over another panel");
        }
        if panel["type"] != "row" {
            assert_eq!("prometheus", panel["datasource"]["uid"], "{title}");
            assert!(list(&panel["targets"]).count() > 0, "{title} asks nothing");
        }
        let mut letters = BTreeSet::new();
        for target in list(&panel["targets"]) {
            assert!(letters.insert(target["refId"].as_str()), "{title}: a letter stands twice");
        }
    }
    assert!(panels.len() >= 20);
    let sources = read("grafana/datasources.yaml");
    assert!(sources.contains("uid: prometheus\n"), "the source that the panels name is provided");
}
