//! The dashboards and alerts of `packaging/monitoring`, and what they ask Prometheus.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

/// The dashboard of a chain and its nodes.
pub const NODES: &str = "grafana/ombra.json";
/// The dashboard of miners.
pub const MINERS: &str = "grafana/ombra-miner.json";
/// The dashboard of gateways.
pub const GATEWAYS: &str = "grafana/ombra-gateway.json";
/// What Prometheus itself makes.
pub const OF_PROMETHEUS: &[&str] = &["up"];

/// Where a file of `packaging/monitoring` is.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/monitoring").join(name)
}

/// The text of a file of `packaging/monitoring`.
pub fn packaged(name: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(path(name)).with_context(|| name.to_owned())
}

/// The elements of a list of JSON; none if it is something else.
pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A dashboard.
#[derive(Debug)]
pub struct Dashboard(pub Value);

impl Dashboard {
    /// The one in a file of `packaging/monitoring`.
    pub fn read(name: &str) -> anyhow::Result<Self> {
        Ok(Self(serde_json::from_str(&packaged(name)?)?))
    }

    /// Its panels, rows among them.
    pub fn panels(&self) -> impl Iterator<Item = &Value> {
        list(&self.0["panels"])
    }

    /// Everything that its panels and annotations ask, with the title of who asks it.
    pub fn queries(&self) -> anyhow::Result<Vec<(String, String)>> {
        let panels = self.panels().flat_map(|panel| {
            list(&panel["targets"]).map(move |target| (&panel["title"], &target["expr"]))
        });
        let annotations = list(&self.0["annotations"]["list"]).map(|it| (&it["name"], &it["expr"]));
        let text = |value: &Value| value.as_str().map(str::to_owned).context("a text");
        panels.chain(annotations).map(|(title, expr)| Ok((text(title)?, text(expr)?))).collect()
    }

    /// What fills its variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        list(&self.0["templating"]["list"]).filter_map(|it| it["query"]["query"].as_str())
    }
}

/// What the rules of a file with alerts ask.
pub fn alert_queries(name: &str) -> anyhow::Result<Vec<String>> {
    let text = packaged(name)?;
    let queries = text.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    Ok(queries.map(str::to_owned).collect())
}

/// The words of a query that can be names of metrics, texts in quotes left out.
pub fn names(query: &str) -> impl Iterator<Item = &str> {
    let unquoted = query.split('"').step_by(2);
    let words = unquoted.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with("ombra_") || OF_PROMETHEUS.contains(word))
}

/// The names of metrics on a dashboard and in a file with alerts.
///
/// # Errors
/// When one cannot be read, or asks so little that something was not found in it.
pub fn names_in(dashboard: &str, alerts: &str) -> anyhow::Result<BTreeSet<String>> {
    let dashboard = Dashboard::read(dashboard)?;
    let (shown, alerting) = (dashboard.queries()?, alert_queries(alerts)?);
    anyhow::ensure!(
        shown.len() >= 30 && alerting.len() >= 5,
        "the dashboard asks {} times, the alerts {} times",
        shown.len(),
        alerting.len()
    );
    let queries = shown.iter().map(|(_, query)| query.as_str()).chain(dashboard.variables());
    let queries = queries.chain(alerting.iter().map(String::as_str));
    Ok(queries.flat_map(names).map(str::to_owned).collect())
}
