//! Settings of agents in containers.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use types::Hash;
use types::agent::{ExecutorId, is_image};

/// Which agents may run in containers, and what they may take of this machine; the table
/// `[market.containers]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContainersConfig {
    /// The Unix socket of the engine, Docker's or Podman's.
    pub socket: PathBuf,
    /// The images that may run, as metadata name them: with the digest.
    pub images: Vec<String>,
    /// Whether the engine gets images that it does not have.
    pub pull: bool,
    /// The network of the engine that agents are in; none if not given.
    pub network: Option<String>,
    /// The memory of one container, and no swap besides.
    pub memory_mib_max: u64,
    /// How many processors one container may keep busy.
    pub cpus: u64,
    /// The processes and threads of one container.
    pub pids_max: u64,
    /// The bytes in `/tmp`, which are part of the memory.
    pub tmp_mib_max: u64,
    /// How long one call may take, from the first request to the engine on.
    pub wall_ms_max: u64,
}

const IMAGES_MAX: usize = 256;
/// Below that, engines do not start a container.
const MEMORY_MIB_MIN: u64 = 16;
/// A tebibyte.
const MEMORY_MIB_MAX: u64 = 1_048_576;
const CPUS_MAX: u64 = 1_024;
/// What starts a container has some threads of its own.
const PIDS_MIN: u64 = 16;
const PIDS_MAX: u64 = 32_768;
const WALL_MS_MIN: u64 = 1_000;
/// The longest that members of a call have.
const WALL_MS_MAX: u64 = 600_000;
/// What engines take for no name, or that would give an agent the network of something else.
const OTHER_NETWORKS: [&str; 3] = ["host", "default", "none"];

impl Default for ContainersConfig {
    fn default() -> Self {
        Self {
            socket: PathBuf::from("/var/run/docker.sock"),
            images: Vec::new(),
            pull: false,
            network: None,
            memory_mib_max: 512,
            cpus: 1,
            pids_max: 64,
            tmp_mib_max: 64,
            wall_ms_max: 60_000,
        }
    }
}

impl ContainersConfig {
    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Everything that is wrong with the values, as sentences that name the setting.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.socket.is_absolute() {
            faults.push(format!(
                "market.containers.socket is {:?}; expected an absolute path",
                self.socket.display().to_string()
            ));
        }
        let count = self.images.len();
        if count > IMAGES_MAX {
            faults.push(format!(
                "market.containers.images has {count} images; expected at most {IMAGES_MAX}"
            ));
        }
        for image in self.images.iter().filter(|image| !is_image(image)) {
            faults.push(format!(
                "market.containers.images has {image:?}; expected an image with its digest, \
                 NAME@sha256:HEX"
            ));
        }
        if let Some(network) = self.network.as_deref().filter(|name| !is_network(name)) {
            faults.push(format!(
                "market.containers.network is {network:?}; expected the name of a network that was \
                 made for this"
            ));
        }
        let mut within = |field: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                faults.push(format!(
                    "market.containers.{field} is {value}; expected {low} to {high}"
                ));
            }
        };
        within("memory_mib_max", self.memory_mib_max, MEMORY_MIB_MIN, MEMORY_MIB_MAX);
        within("cpus", self.cpus, 1, CPUS_MAX);
        within("pids_max", self.pids_max, PIDS_MIN, PIDS_MAX);
        within("tmp_mib_max", self.tmp_mib_max, 1, MEMORY_MIB_MAX);
        within("wall_ms_max", self.wall_ms_max, WALL_MS_MIN, WALL_MS_MAX);
        faults
    }
}

/// The executor of agents whose metadata name this image.
#[must_use]
pub fn executor_of(image: &str) -> ExecutorId {
    ExecutorId::Container { image: Hash::digest(image.as_bytes()) }
}

/// A name, and none of those that have a colon or a meaning of their own: `container:` would be the network
/// of another container, and `host` that of the machine.
fn is_network(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=64).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !OTHER_NETWORKS.contains(&name)
}

#[cfg(test)]
mod tests {
    //! What may stand in the table.

    use super::*;

    const IMAGE: &str = "agents/echo@sha256:\
                         0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn read(text: &str) -> Result<ContainersConfig, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_table_has_no_network_no_images_and_pulls_nothing() {
        let config = read("").expect("a table");
        assert_eq!(config, ContainersConfig::default());
        assert_eq!((config.pull, &config.network, config.images.len()), (false, &None, 0));
        assert_eq!(config.faults(), [""; 0]);
    }

    #[test]
    fn a_setting_that_nobody_knows_is_refused() {
        let error = read("privileged = true").expect_err("no such setting");
        assert!(error.contains("unknown field `privileged`"), "{error}");
    }

    #[test]
    fn every_value_out_of_its_bounds_is_a_fault_that_names_it() {
        let text = format!(
            "socket = \"docker.sock\"\nimages = [{IMAGE:?}, \"echo:latest\"]\nnetwork = \"host\"\n\
             memory_mib_max = 15\ncpus = 0\npids_max = 15\ntmp_mib_max = 0\nwall_ms_max = 600001"
        );
        let faults = read(&text).expect("a table").faults();
        let all = faults.join("\n");
        for named in [
            "socket is \"docker.sock\"; expected an absolute path",
            "images has \"echo:latest\"; expected an image with its digest",
            "network is \"host\"; expected the name",
            "memory_mib_max is 15; expected 16 to 1048576",
            "cpus is 0; expected 1 to 1024",
            "pids_max is 15; expected 16 to 32768",
            "tmp_mib_max is 0; expected 1 to 1048576",
            "wall_ms_max is 600001; expected 1000 to 600000",
        ] {
            assert!(all.contains(&format!("market.containers.{named}")), "{named} in {all}");
        }
        assert_eq!(faults.len(), 8, "{all}");
    }

    #[test]
    fn a_network_is_none_of_another_container_or_of_the_machine() {
        for name in ["host", "none", "default", "container:abc", "", "a b"] {
            assert!(!is_network(name), "{name:?}");
        }
        assert!(is_network("agents_out"));
    }

    #[test]
    fn an_executor_is_known_by_the_hash_of_the_image_s_name() {
        let ExecutorId::Container { image } = executor_of(IMAGE) else { panic!("a container") };
        assert_eq!(image, Hash::digest(IMAGE.as_bytes()));
    }
}
