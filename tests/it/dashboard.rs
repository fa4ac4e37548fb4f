//! Grafana's own models of a dashboard know what ours says.
//!
//! They are installed from `PyPI` into an environment beside the compile outputs, once.

use std::process::Command;

use testkit::dashboards::{self, GATEWAYS, MINERS, NODES};
use testkit::python;

/// The models of the Grafana that `ombra testnet` starts.
const GRAFANA: &str = "11.6.0";
const MODELS: &str = "grafana-foundation-sdk==1769699379!11.6.0";
/// What Grafana reads and the models leave out: the title of a Prometheus annotation, and the text of
/// a query as the list of variables shows it.
const LEFT_OUT: [&str; 2] = [".annotations.list[0].titleFormat", ".templating.list[0].definition"];

#[test]
fn the_models_of_grafana_know_everything_in_the_dashboards() -> anyhow::Result<()> {
    let compose = include_str!("../../cli/src/testnet/compose/compose.yaml");
    assert!(MODELS.ends_with(GRAFANA) && compose.contains(&format!("grafana:{GRAFANA}}}")));

    let module = "grafana_foundation_sdk.models.dashboard";
    let python = python::with_packages("python-grafana", &[MODELS], module)?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/sdk/dashboard.py");
    for name in [NODES, MINERS, GATEWAYS] {
        let dashboard = dashboards::path(name);
        let printed = python::run(Command::new(&python).arg(script).arg(dashboard))?;
        let lost: Vec<String> = serde_json::from_str(&printed)?;
        assert_eq!(LEFT_OUT.as_slice(), lost, "{name}");
    }
    Ok(())
}
