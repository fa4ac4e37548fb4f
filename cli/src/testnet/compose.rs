//! What `docker compose` needs to run the nodes of a testnet, and to watch them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use genesis::Genesis;

use super::layout::Layout;
use super::member::Member;
use crate::client::CliError;
use crate::new_file::write_new;

const COMPOSE: &str = include_str!("compose/compose.yaml");
const HOMES: &str = include_str!("compose/homes.sh");
const README: &str = include_str!("compose/README.md");
const PROMETHEUS: &str = include_str!("../../../packaging/monitoring/prometheus.yml");
const ALERTS: &str = include_str!("../../../packaging/monitoring/alerts.yml");
const DATASOURCES: &str = include_str!("../../../packaging/monitoring/grafana/datasources.yaml");
const DASHBOARDS: &str = include_str!("../../../packaging/monitoring/grafana/dashboards.yaml");
const DASHBOARD: &str = include_str!("../../../packaging/monitoring/grafana/ombra.json");

/// The file that says that a folder holds a testnet; it is written last.
pub(super) const MARK: &str = "compose.yaml";

/// Where metrics are within the network of the containers.
const METRICS_PORT: u16 = 9777;

/// A chain whose nodes run in containers.
pub(super) struct Compose<'a> {
    pub(super) layout: &'a Layout,
    pub(super) members: &'a [Member],
    pub(super) genesis: &'a Genesis,
    /// The folder of a clone of the repository, from which the image can be built.
    pub(super) source: Option<PathBuf>,
}

impl Compose<'_> {
    /// Writes everything besides the homes into the folder `out`.
    pub(super) fn write(&self, out: &Path) -> Result<(), CliError> {
        write_new(&out.join("homes.sh"), HOMES)?;
        write_new(&out.join("README.md"), &self.readme())?;
        write_secret(&out.join(".env"), &self.environment()?)?;
        let monitoring = out.join("monitoring");
        for (name, text) in [
            ("prometheus/prometheus.yml", self.prometheus().as_str()),
            ("prometheus/alerts.yml", ALERTS),
            ("grafana/provisioning/datasources/ombra.yaml", DATASOURCES),
            ("grafana/provisioning/dashboards/ombra.yaml", DASHBOARDS),
            ("grafana/dashboards/ombra.json", DASHBOARD),
        ] {
            write_public(&monitoring, name, text)?;
        }
        write_new(&out.join(MARK), &self.compose())
    }

    fn lines(&self, line: impl Fn(&Member) -> String) -> String {
        self.members.iter().map(line).collect()
    }

    fn compose(&self) -> String {
        let [prometheus, grafana] = self.layout.monitoring();
        let nodes = self.lines(|member| {
            let (name, port) = (&member.place.name, member.place.rpc.port());
            format!(
                "\n  {name}:\n    <<: *node\n    hostname: {name}\n    \
                 ports: [\"127.0.0.1:{port}:8777\"]\n    \
                 volumes: [\"{name}:/var/lib/ombra\"]\n"
            )
        });
        let homes = self.lines(|member| {
            let name = &member.place.name;
            format!("      - {name}:/homes/{name}\n")
        });
        let volumes = self.lines(|member| format!("  {}:\n", member.place.name));
        COMPOSE
            .replace("@BUILD@", &self.source.as_deref().map_or_else(String::new, build))
            .replace("@HOMES@\n", &homes)
            .replace("@NODES@\n", &nodes)
            .replace("@VOLUMES@", &volumes)
            .replace("@PROMETHEUS_PORT@", &prometheus.to_string())
            .replace("@GRAFANA_PORT@", &grafana.to_string())
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
    }

    fn readme(&self) -> String {
        let [prometheus, grafana] = self.layout.monitoring();
        let table = self.lines(|member| {
            let role = if member.validator.is_some() { "votes" } else { "follows" };
            format!("| `{}` | {role} | <http://{}> |\n", member.place.name, member.place.rpc)
        });
        let first = self.members.first().map(|member| member.place.rpc.port());
        let image = if self.source.is_some() {
            "If there is no image, the first `up` builds it from the repository, which takes a \
             while."
        } else {
            "Build it in a clone of the repository: `docker build -t ombra:@VERSION@ .`"
        };
        README
            .replace("@IMAGE@", image)
            .replace("@TABLE@\n", &table)
            .replace("@CHAIN@", self.genesis.chain_id())
            .replace("@GENESIS@", &self.genesis.hash().to_string())
            .replace("@RPC_PORT@", &first.unwrap_or_default().to_string())
            .replace("@PROMETHEUS_PORT@", &prometheus.to_string())
            .replace("@GRAFANA_PORT@", &grafana.to_string())
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
    }

    fn prometheus(&self) -> String {
        let targets: Vec<String> = self
            .members
            .iter()
            .map(|member| format!("\"{}:{METRICS_PORT}\"", member.place.name))
            .collect();
        PROMETHEUS.replace("@TARGETS@", &targets.join(", "))
    }

    /// Two testnets in folders of the same name must not share volumes: the project carries the
    /// genesis hash.
    fn environment(&self) -> Result<String, CliError> {
        let mut secret = [0_u8; 16];
        getrandom::fill(&mut secret)
            .map_err(|error| CliError::Failed(format!("cannot get random numbers: {error}")))?;
        let hash = self.genesis.hash().to_string();
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let chain: String = self
            .genesis
            .chain_id()
            .to_ascii_lowercase()
            .chars()
            .map(|letter| if plain(letter) { letter } else { '-' })
            .collect();
        Ok(format!(
            "# Read by docker compose.\nCOMPOSE_PROJECT_NAME=n-{chain}-{}\nGRAFANA_PASSWORD={}\n",
            hash.get(..8).unwrap_or(&hash),
            const_hex::encode(secret),
        ))
    }
}

/// The part of a service that says how its image is built.
fn build(source: &Path) -> String {
    // JSON is YAML; a dollar begins a variable.
    let context = serde_json::Value::from(source.display().to_string()).to_string();
    format!(
        "    build:\n      context: {}\n      args: [BUILDER_IMAGE, RUNTIME_IMAGE]\n",
        context.replace('$', "$$")
    )
}

/// Writes a file that the user of another container reads, whatever the mask of this process.
fn write_public(folder: &Path, name: &str, text: &str) -> Result<(), CliError> {
    let path = folder.join(name);
    write_new(&path, text)?;
    set_mode(&path, 0o644)?;
    for above in path.ancestors().skip(1).take_while(|above| above.starts_with(folder)) {
        set_mode(above, 0o755)?;
    }
    Ok(())
}

fn write_secret(path: &Path, text: &str) -> Result<(), CliError> {
    wallet::write_new_file(path, text.as_bytes(), 0o600)
        .map_err(|source| CliError::File { what: path.display().to_string(), source })
}

fn set_mode(path: &Path, mode: u32) -> Result<(), CliError> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|source| CliError::File { what: path.display().to_string(), source })
}
