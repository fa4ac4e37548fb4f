//! The image is built from what the workspace has, and the files around it fit together.

use std::collections::BTreeSet;
use std::process::Command;

use super::{Source, assert_none, exists, files, read, table_rows};

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

/// What `.dockerignore` admits, all else being ignored.
fn admitted() -> Vec<String> {
    let ignore = read(".dockerignore");
    let rules = ignore.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (admitting, ignoring): (Vec<_>, Vec<_>) = rules.partition(|rule| rule.starts_with('!'));
    assert_eq!(ignoring, ["*"], ".dockerignore ignores everything that it does not admit");
    admitting.iter().map(|rule| rule.trim_start_matches('!').to_owned()).collect()
}

/// The files that a source file includes, from the repository's top folder; none for a file whose name
/// is no literal.
fn included(source: &Source) -> Vec<Option<String>> {
    let (folder, _) = source.path.rsplit_once('/').unwrap_or_default();
    let macros = ["include!(", "include_str!(", "include_bytes!("];
    let arguments = macros.iter().flat_map(|name| source.text.split(name).skip(1));
    let literal = |text: &str| {
        let (name, _) = text.trim_start().strip_prefix('"')?.split_once('"')?;
        let mut path: Vec<&str> = folder.split('/').collect();
        for part in name.split('/') {
            if part == ".." { path.truncate(path.len().saturating_sub(1)) } else { path.push(part) }
        }
        Some(path.join("/"))
    };
    arguments.map(literal).collect()
}

#[test]
fn the_image_is_built_with_every_file_that_the_program_includes() {
    let (crates, admitted) = (crates(), admitted());
    let is_admitted = |path: &str| {
        let mut rules = admitted.iter().filter_map(|rule| path.strip_prefix(rule));
        rules.any(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut faults = Vec::new();
    let mut count = 0;
    for source in files(&[".rs"]) {
        if source.is_test() || !crates.iter().any(|name| name == source.folder()) {
            continue;
        }
        for path in included(&source) {
            count += 1;
            match path {
                Some(path) if exists(&path) && is_admitted(&path) => (),
                Some(path) => faults.push(format!("{}: {path}", source.path)),
                None => faults.push(format!("{}: a name that is no literal", source.path)),
            }
        }
    }
    assert_none(&faults, "files that .dockerignore leaves out, although the program includes them");
    assert!(count > 50, "only {count} files are included");
}

/// The files that cargo looks for because a manifest names a target without a path, without `.rs`.
fn files_of_targets(manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    for table in manifest.split("\n[").skip(1) {
        let folder = match table.lines().next() {
            Some("[bench]]") => "benches",
            Some("[bin]]") => "src/bin",
            Some("[example]]") => "examples",
            Some("[test]]") => "tests",
            _ => continue,
        };
        let value = |key| table.lines().find_map(|line| line.strip_prefix(key));
        if value("path = ").is_none() {
            let name = value("name = ").expect("a target has a name");
            found.push(format!("{folder}/{}", name.trim_matches('"')));
        }
    }
    found
}

/// Does what the Dockerfile does before it compiles the dependencies.
#[test]
fn every_target_of_a_manifest_has_a_file_where_the_image_compiles_dependencies() {
    let folder = tempfile::tempdir().expect("a folder");
    let crates = crates();
    for name in &crates {
        let of_crate = folder.path().join(name);
        std::fs::create_dir(&of_crate).expect("a folder in an empty one");
        std::fs::write(of_crate.join("Cargo.toml"), read(&format!("{name}/Cargo.toml")))
            .expect("the folder is there");
    }
    let dockerfile = read("Dockerfile");
    let (_, commands) = dockerfile.split_once("\nRUN for crate in ").expect("crates are made");
    let (stubs, _) = commands.split_once("&& cargo build").expect("and compiled");
    let mut shell = Command::new("sh");
    shell.arg("-euc").arg(format!("for crate in {stubs}")).current_dir(folder.path());
    assert!(shell.status().expect("a shell").success(), "{stubs}");

    let mut faults = Vec::new();
    let mut count = 0;
    for name in &crates {
        for file in files_of_targets(&read(&format!("{name}/Cargo.toml"))) {
            count += 1;
            let file = format!("{name}/{file}");
            let is_there = |ending| folder.path().join(format!("{file}{ending}")).exists();
            if !is_there(".rs") && !is_there("/main.rs") {
                faults.push(file);
            }
        }
    }
    assert!(folder.path().join("cli/src/main.rs").exists(), "the program");
    assert_none(&faults, "targets that a manifest names, without a file in the Dockerfile");
    assert!(count > 10, "only {count} targets are named");
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

#[test]
fn every_alert_has_a_test_and_says_in_its_document_what_to_do() {
    let documents = [
        ("alerts", "docs/operations.md"),
        ("miner-alerts", "docs/miner.md"),
        ("gateway-alerts", "docs/gateway.md"),
    ];
    let mut faults = Vec::new();
    for (name, document) in documents {
        let [rules, tests] =
            ["yml", "test.yml"].map(|end| read(&format!("packaging/monitoring/{name}.{end}")));
        let names = |text: &str, key: &str| -> BTreeSet<String> {
            text.lines()
                .filter_map(|line| line.trim().strip_prefix(key))
                .map(str::to_owned)
                .collect()
        };
        let (alerts, tested) = (names(&rules, "- alert: "), names(&tests, "alertname: "));
        assert!(!alerts.is_empty(), "{name} has alerts");
        faults
            .extend(alerts.symmetric_difference(&tested).map(|it| format!("{name}: test of {it}")));
        let document = read(document);
        let told: BTreeSet<_> = table_rows(&document).into_iter().map(|row| row[0]).collect();
        let missing = alerts.iter().filter(|it| !told.contains(format!("`{it}`").as_str()));
        faults.extend(missing.map(|it| format!("{name}: what to do about {it}")));
    }
    assert_none(&faults, "what alerts lack");
}
