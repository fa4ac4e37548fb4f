//! The dashboard and the alerts name only what the nodes measure, and validators that do not sign are seen.

use std::collections::BTreeSet;

use serde_json::json;
use testkit::dashboards::{
    Dashboard, GATEWAYS, MINERS, NODES, OF_PROMETHEUS, alert_queries, list, names, packaged,
};
use testkit::http::Connection;
use testkit::net::Net;
use testkit::node::wait_until;

use crate::support::chain;

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
    let dashboard = Dashboard::read(NODES)?;
    let (shown, alerting) = (dashboard.queries()?, alert_queries("alerts.yml")?);
    assert!(shown.len() >= 40 && alerting.len() >= 8, "{} and {}", shown.len(), alerting.len());
    let shown = shown.iter().map(|(_, query)| query.as_str()).chain(dashboard.variables());
    for query in shown.chain(alerting.iter().map(String::as_str)) {
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
fn every_node_counts_the_turns_of_a_validator_that_runs_without_its_key() -> anyhow::Result<()> {
    const LOST: usize = 3;
    let mut net = Net::make_as(&chain(4, 0, &["minBlockIntervalMs=50", "heartbeatMs=400"]))?;
    let addresses = net.members.iter().map(|member| Ok(member.validator_key()?.address()));
    let addresses: Vec<_> = addresses.collect::<anyhow::Result<_>>()?;
    std::fs::remove_file(net.members[LOST].home().join("keys/validator.key"))?;
    net.start_all()?;
    let of = |what: &str, at: usize| {
        format!("ombra_validator_{what}{{validator=\"{}\"}}", addresses[at])
    };
    for member in [&net.members[0], &net.members[LOST]] {
        wait_until("missed turns", || Ok(member.metric(&of("missed_total", LOST))? > 2))?;
        assert_eq!(member.metric(&of("proposed_total", LOST))?, 0);
        assert!(member.metric(&of("proposed_total", 0))? > 0);
    }
    let power = net.members[0].metric(&of("power", LOST))?;
    let own = |at: usize| net.members[at].metric("ombra_validator_own_power");
    assert_eq!((own(0)?, own(LOST)?), (power, 0));
    assert!(power > 0);
    Ok(())
}

/// The panels of a dashboard have ids, places and letters of their own, and ask the one source.
fn fits_together(name: &str, panels_min: usize) -> anyhow::Result<()> {
    let dashboard = Dashboard::read(name)?;
    let panels: Vec<_> = dashboard.panels().collect();
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
    assert!(panels.len() >= panels_min, "{name}: {}", panels.len());
    Ok(())
}

#[test]
fn the_panels_of_the_dashboards_fit_together() -> anyhow::Result<()> {
    fits_together(NODES, 20)?;
    fits_together(MINERS, 20)?;
    fits_together(GATEWAYS, 20)?;
    let sources = packaged("grafana/datasources.yaml")?;
    assert!(sources.contains("uid: prometheus\n"), "the source that the panels name is provided");
    Ok(())
}
