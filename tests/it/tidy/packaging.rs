//! The image is built from what the workspace has, and the files around it fit together.

use super::{assert_none, exists, read};

/// The crates of the workspace, by their folders.
fn crates() -> Vec<String> {
    let manifest = read("Cargo.toml");
    let line = manifest.lines().find_map(|line| line.strip_prefix("members = ["));
    let names = line.and_then(|line| line.split(']').next()).expect("the workspace has members");
    names.split(", ").map(|name| name.trim_matches('"').to_owned()).collect()
}

#[test]
fn the_image_is_built_from_every_crate() {
    let (dockerfile, ignore) = (read("Dockerfile"), read(".dockerignore"));
    let mut faults = Vec::new();
    for name in crates() {
        if !dockerfile.contains(&format!("COPY {name}/Cargo.toml {name}/\n")) {
            faults.push(format!("Dockerfile does not copy {name}/Cargo.toml"));
        }
        let admitted = ignore
            .lines()
            .any(|line| line == format!("!{name}") || line == format!("!{name}/Cargo.toml"));
        if !admitted {
            faults.push(format!(".dockerignore leaves {name} out"));
        }
        let is_library = exists(&format!("{name}/src/lib.rs"));
        let stubs = dockerfile.lines().find(|line| line.contains("for crate in"));
        let is_stub = stubs.is_some_and(|line| line.split([' ', ';']).any(|word| word == name));
        if is_library != is_stub {
            faults.push(format!("Dockerfile: the empty crates do not match {name}"));
        }
    }
    assert_none(&faults, "crates and the image");
}

#[test]
fn the_image_is_built_with_the_oldest_compiler_that_is_promised() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.expect("the workspace names its compiler").trim_matches('"');
    let builder = format!("ARG BUILDER_IMAGE=rust:{version}-bookworm\n");
    assert!(read("Dockerfile").contains(&builder), "{builder}");
}

#[test]
fn a_stop_for_safety_is_not_followed_by_a_start() {
    let unit = read("packaging/systemd/ombra.service");
    assert!(unit.contains("\nRestartPreventExitStatus=5\n"), "systemd");
    assert!(read("Dockerfile").contains(r#"CMD ["start", "--hold-unsafe"]"#), "the image");
    let compose = read("cli/src/testnet/compose/compose.yaml");
    assert!(compose.contains(r#"command: ["start", "--hold-unsafe"]"#), "compose");
}

#[test]
fn a_miner_as_a_service_may_confine_servers_of_tools() {
    let unit = read("packaging/systemd/ombra-miner.service");
    // No group of system calls that the unit admits has these.
    let calls = "landlock_create_ruleset landlock_add_rule landlock_restrict_self";
    assert!(unit.contains(&format!("\nSystemCallFilter={calls}\n")), "{unit}");
    let limits = unit.find("\nSystemCallFilter=prlimit64 setrlimit\n").expect("limits are set");
    let refused = unit.find("\nSystemCallFilter=~").expect("some groups are refused");
    assert!(refused < limits, "what is admitted comes after the group that has it");
}
