//! What the engine is asked to make for a call: the container of the relay, and that of the agent in its
//! namespaces.
//!
//! Invariant: both have a read-only root, no capabilities, no way to get any, a user who is not root, no
//! swap, and no output that the engine keeps.

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    ResourcesUlimits,
};

use super::ContainersConfig;

/// Names the miner to whom a container belongs.
pub(super) const OWNER_LABEL: &str = "ombra.miner";
/// Until when it may be needed, milliseconds since 1970.
pub(super) const UNTIL_LABEL: &str = "ombra.until";

/// Where the relay is in its image.
pub(super) const RELAY_PATH: &str = "/relay";
/// The users of the two containers, who are not the same: the agent must not reach into the relay.
const AGENT_USER: &str = "65534:65534";
const RELAY_USER: &str = "65533:65533";

const MIB: i64 = 1_024 * 1_024;
/// What the relay needs, with room for what starts it.
const RELAY_MIB: i64 = 32;
const RELAY_PIDS: i64 = 16;
const FILES_MAX: i64 = 1_024;

/// Who a container is for.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    pub(super) owner: String,
    pub(super) until_ms: u64,
}

/// The container of the relay: process 1 of both, so that they end together.
pub(super) fn relay(
    config: &ContainersConfig,
    image: &str,
    wall_ms: u64,
    tag: &Tag,
) -> ContainerCreateBody {
    let network = config.network.as_deref().unwrap_or("none");
    let host = HostConfig {
        memory: Some(RELAY_MIB.saturating_mul(MIB)),
        memory_swap: Some(RELAY_MIB.saturating_mul(MIB)),
        pids_limit: Some(RELAY_PIDS),
        network_mode: Some(network.to_owned()),
        ..confined()
    };
    ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(vec![RELAY_PATH.to_owned(), wall_ms.to_string()]),
        user: Some(RELAY_USER.to_owned()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        open_stdin: Some(true),
        // So that it ends with whoever is attached.
        stdin_once: Some(true),
        ..common(host, tag)
    }
}

/// The container of the agent, in the namespaces of a relay.
pub(super) fn agent(
    config: &ContainersConfig,
    image: &str,
    relay: &str,
    tag: &Tag,
) -> ContainerCreateBody {
    let memory = signed(config.memory_mib_max).saturating_mul(MIB);
    let tmp = config.tmp_mib_max.min(config.memory_mib_max);
    let host = HostConfig {
        memory: Some(memory),
        memory_swap: Some(memory),
        nano_cpus: Some(signed(config.cpus).saturating_mul(1_000_000_000)),
        pids_limit: Some(signed(config.pids_max)),
        network_mode: Some(format!("container:{relay}")),
        pid_mode: Some(format!("container:{relay}")),
        shm_size: Some(signed(tmp).saturating_mul(MIB)),
        tmpfs: Some(
            [("/tmp".to_owned(), format!("rw,nosuid,nodev,mode=1777,size={tmp}m"))]
                .into_iter()
                .collect(),
        ),
        ..confined()
    };
    ContainerCreateBody {
        image: Some(image.to_owned()),
        user: Some(AGENT_USER.to_owned()),
        ..common(host, tag)
    }
}

fn confined() -> HostConfig {
    HostConfig {
        readonly_rootfs: Some(true),
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ulimits: Some(vec![ulimit("core", 0), ulimit("nofile", FILES_MAX)]),
        ..HostConfig::default()
    }
}

fn common(host: HostConfig, tag: &Tag) -> ContainerCreateBody {
    let labels = [
        (OWNER_LABEL.to_owned(), tag.owner.clone()),
        (UNTIL_LABEL.to_owned(), tag.until_ms.to_string()),
    ];
    ContainerCreateBody {
        labels: Some(labels.into_iter().collect()),
        // An image may say what is run to see whether it is well.
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

fn ulimit(name: &str, most: i64) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(name.to_owned()), soft: Some(most), hard: Some(most) }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    //! What containers are never without.

    use super::*;

    fn tag() -> Tag {
        Tag { owner: "someone".to_owned(), until_ms: 7 }
    }

    #[test]
    fn both_containers_are_confined() {
        let config = ContainersConfig::default();
        for body in [relay(&config, "r", 1_000, &tag()), agent(&config, "a", "r1", &tag())] {
            let host = body.host_config.expect("settings of the host");
            assert_eq!(host.readonly_rootfs, Some(true));
            assert_eq!(host.privileged, Some(false));
            assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
            assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
            assert!(host.memory.is_some_and(|bytes| bytes > 0));
            assert_eq!(host.memory, host.memory_swap, "no swap");
            assert!(host.pids_limit.is_some_and(|most| most > 0));
            assert_eq!(host.binds, None);
            assert_eq!(host.log_config.and_then(|it| it.typ).as_deref(), Some("none"));
            assert!(body.user.is_some_and(|user| !user.starts_with('0')));
            let labels = body.labels.expect("labels");
            assert_eq!(labels.get(OWNER_LABEL).map(String::as_str), Some("someone"));
            assert_eq!(labels.get(UNTIL_LABEL).map(String::as_str), Some("7"));
        }
    }

    #[test]
    fn a_relay_has_no_network_unless_the_operator_names_one_and_the_agent_has_that_of_the_relay() {
        let mut config = ContainersConfig::default();
        let network = |config: &ContainersConfig| {
            relay(config, "r", 1_000, &tag()).host_config.and_then(|it| it.network_mode)
        };
        assert_eq!(network(&config).as_deref(), Some("none"));
        config.network = Some("agents".to_owned());
        assert_eq!(network(&config).as_deref(), Some("agents"));
        let host = agent(&config, "a", "r1", &tag()).host_config.expect("settings of the host");
        assert_eq!(host.network_mode.as_deref(), Some("container:r1"));
        assert_eq!(host.pid_mode.as_deref(), Some("container:r1"));
    }
}
