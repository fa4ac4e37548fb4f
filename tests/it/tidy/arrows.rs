//! Which crate may depend on which, and which crate alone may use a library.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use testkit::dashboards::list;

use super::root;

/// The arrows: a crate, and the crates of this workspace that it may know, with spaces between them.
const ARROWS: &[(&str, &str)] = &[
    ("types", ""),
    ("state", "types"),
    ("store", "types state"),
    ("genesis", "types state"),
    ("txpool", "types"),
    ("consensus", "types"),
    ("p2p", "types"),
    ("rpc", "types"),
    ("wallet", "types"),
    ("infer", ""),
    ("agent", "types wallet infer"),
    ("miner", "types wallet agent"),
    ("gateway", "types wallet agent miner"),
    ("node", "types state store genesis txpool consensus p2p rpc wallet"),
    ("allocator", ""),
    (
        "cli",
        "types state store genesis consensus rpc wallet infer agent miner gateway node allocator",
    ),
    ("fixtures", "types"),
    ("testkit", "types state wallet consensus fixtures"),
    (
        "tests",
        "types state store genesis txpool consensus p2p rpc wallet infer agent miner gateway node allocator cli fixtures testkit",
    ),
];

/// What the tests of every crate may know besides: the rules of the ledger, which run in memory, so
/// that no test imitates them, and the transactions of tests.
const FOR_TESTS: &[&str] = &["types", "state", "fixtures"];

/// What the tests of one crate may know besides: the crate, the other one, and why.
const FOR_TESTS_OF: &[(&str, &str, &str)] =
    &[("state", "store", "the random models run over a database that restarts")];

/// Libraries with one user, or a few: the library, its users, and why.
const USERS: &[(&str, &[&str], &str)] = &[
    ("rocksdb", &["store"], "nobody above the tables sees raw keys"),
    ("jmt", &["store"], "the authenticated state has one home"),
    ("bincode", &["types"], "types/src/codec.rs is the one place that knows the binary form"),
    ("curve25519-dalek", &["types"], "randomness is proved and checked in types/src/vrf.rs"),
    ("ed25519-dalek", &["types"], "keys are made and used in types/src/keys.rs"),
    ("ed25519-zebra", &["types"], "there is one signature rule"),
    (
        "sha2",
        &["types", "state", "store", "infer"],
        "hashing is Hash::digest; blobs and the state tree want the hasher itself; infer does not know types",
    ),
    ("sha3", &["types"], "selectors are made in types/src/abi/method.rs"),
    (
        "borsh",
        &["consensus", "store"],
        "validators' messages have this form, and so do the tree library's inner nodes",
    ),
    ("libp2p", &["p2p"], "transactions travel in p2p; the engine has a network of its own"),
    (
        "axum",
        &["rpc", "gateway", "cli"],
        "HTTP is served by rpc and gateway; cli serves control sockets",
    ),
    ("clap", &["cli"], "the command line is in the binary"),
    ("tracing-subscriber", &["node"], "libraries emit, the binary decides where to"),
    ("anyhow", &["store"], "libraries have error enums; jmt's traits want anyhow"),
    ("bip39", &["wallet"], "mnemonics are the wallet's"),
    ("bip32", &["wallet"], "derivation is the wallet's"),
    ("aes-gcm", &["wallet"], "encrypted files are the wallet's"),
    ("pbkdf2", &["wallet"], "encrypted files are the wallet's"),
    ("rmcp", &["agent", "gateway"], "MCP servers are tools of models; the gateway is one"),
    (
        "reqwest",
        &["agent", "miner"],
        "only agents ask servers that are no nodes; the miner gets blobs",
    ),
    ("bollard", &["agent"], "agents in containers run in agent/src/executor/container/"),
    ("jsonschema", &["agent"], "arguments of tools are checked in agent/src/tools/arguments.rs"),
    ("landlock", &["agent"], "programs are confined in agent/src/tools/sandbox.rs"),
    ("libm", &["infer"], "the model's functions decide bytes"),
    ("llguidance", &["infer"], "forms of answers are made in infer/src/grammar/"),
    ("wasmi", &["agent"], "programs of agents run in agent/src/executor/wasm/"),
    ("toktrie", &["infer"], "forms of answers are made in infer/src/grammar/"),
];

/// What a crate must never depend on, directly.
const NEVER: &[(&str, &[&str], &str)] = &[
    ("types", &["tokio", "rocksdb", "getrandom", "rand", "tracing"], "no I/O, clock or randomness"),
    (
        "state",
        &["tokio", "futures", "async-trait", "getrandom", "rand", "rocksdb", "tracing"],
        "rules alone: sync and deterministic, over an abstract view",
    ),
    ("store", &["tokio", "futures", "async-trait", "getrandom", "rand"], "sync and deterministic"),
    ("genesis", &["tokio", "futures", "async-trait"], "sync"),
    ("txpool", &["tokio", "rocksdb", "jsonrpsee", "libp2p"], "the pool's core is sync"),
    (
        "infer",
        &["tokio", "futures", "async-trait", "getrandom", "rand", "tracing"],
        "sync and deterministic: no network, clock or randomness",
    ),
];

/// A crate of this workspace.
struct Package {
    name: String,
    manifest: String,
    dependencies: Vec<Dependency>,
}

/// What a crate's manifest says that it depends on, directly.
struct Dependency {
    name: String,
    is_for_tests: bool,
    features: Vec<String>,
}

/// What `cargo metadata` says about the workspace. Its JSON is read here and not by a crate for
/// it, whose wishes about `serde_json` would have half of the workspace compiled twice.
fn packages() -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--no-deps"]).current_dir(root());
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages: Vec<Package> = list(&metadata["packages"]).map(package).collect();
    assert!(!packages.is_empty(), "cargo names the packages");
    packages
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn package(value: &Value) -> Package {
    let dependency = |value: &Value| Dependency {
        name: text(&value["name"]),
        is_for_tests: value["kind"] == "dev",
        features: list(&value["features"]).map(text).collect(),
    };
    Package {
        name: text(&value["name"]),
        manifest: text(&value["manifest_path"]),
        dependencies: list(&value["dependencies"]).map(dependency).collect(),
    }
}

/// Names of direct dependencies, but for those of tests.
fn dependencies(package: &Package) -> BTreeSet<String> {
    let all = package.dependencies.iter().filter(|it| !it.is_for_tests);
    all.map(|dependency| dependency.name.clone()).collect()
}

#[test]
fn the_crates_know_each_other_only_along_the_arrows() {
    let packages = packages();
    let members: BTreeSet<_> = packages.iter().map(|package| package.name.as_str()).collect();
    let listed: BTreeSet<_> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, members, "the list of arrows names every crate of the workspace");
    super::assert_none(&wrong_arrows(&packages), "dependencies that are no arrows");
}

/// The dependencies within the workspace that neither [`ARROWS`] has nor [`FOR_TESTS`] and
/// [`FOR_TESTS_OF`].
fn wrong_arrows(packages: &[Package]) -> Vec<String> {
    let allowed: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    let mut faults = Vec::new();
    for package in packages {
        let may = allowed[package.name.as_str()];
        for Dependency { name, is_for_tests, .. } in &package.dependencies {
            let other = name.as_str();
            let is_for_these = FOR_TESTS_OF
                .iter()
                .any(|(user, used, _)| (*user, *used) == (&*package.name, other));
            let is_for_tests_only = FOR_TESTS.contains(&other) || is_for_these;
            let is_allowed =
                may.split(' ').any(|it| it == other) || *is_for_tests && is_for_tests_only;
            if allowed.contains_key(other) && !is_allowed {
                let whose = if *is_for_tests { "the tests of " } else { "" };
                faults.push(format!("{whose}{} may not depend on {other}", package.name));
            }
        }
    }
    faults
}

#[test]
fn only_tests_may_know_the_rules_without_an_arrow() {
    let wrong = |name: &str, is_for_tests: bool| {
        let dependency = Dependency { name: name.to_owned(), is_for_tests, features: Vec::new() };
        let (name, manifest) = ("txpool".to_owned(), String::new());
        wrong_arrows(&[Package { name, manifest, dependencies: vec![dependency] }])
    };
    for (name, is_for_tests) in
        [("types", false), ("types", true), ("state", true), ("fixtures", true)]
    {
        assert_eq!(wrong(name, is_for_tests), [""; 0]);
    }
    assert_eq!(wrong("state", false), ["txpool may not depend on state"]);
    assert_eq!(wrong("fixtures", false), ["txpool may not depend on fixtures"]);
    assert_eq!(wrong("store", false), ["txpool may not depend on store"]);
    assert_eq!(wrong("store", true), ["the tests of txpool may not depend on store"]);
}

#[test]
fn a_library_is_used_only_by_its_users() {
    for package in packages() {
        if matches!(package.name.as_str(), "testkit" | "tests") {
            continue;
        }
        let direct = dependencies(&package);
        for (library, users, reason) in USERS {
            assert!(
                !direct.contains(*library) || users.contains(&package.name.as_str()),
                "{} may not use {library}: {reason}",
                package.name
            );
        }
    }
}

#[test]
fn the_engine_is_known_only_to_consensus() {
    for package in packages().iter().filter(|package| package.name.as_str() != "consensus") {
        for name in dependencies(package) {
            assert!(!name.contains("malachitebft"), "{} may not use {name}", package.name);
        }
    }
}

#[test]
fn the_json_rpc_server_is_only_in_rpc() {
    for package in packages().iter().filter(|package| package.name.as_str() != "rpc") {
        let normal = package.dependencies.iter().filter(|it| !it.is_for_tests);
        for dependency in normal.filter(|it| it.name == "jsonrpsee") {
            let server = dependency.features.iter().any(|feature| feature == "server");
            assert!(!server, "{} may not serve JSON-RPC", package.name);
        }
    }
}

#[test]
fn a_crate_does_without_what_is_foreign_to_it() {
    for package in packages() {
        let direct = dependencies(&package);
        let rules = NEVER.iter().filter(|(name, _, _)| *name == package.name.as_str());
        for (_, libraries, reason) in rules {
            for library in *libraries {
                assert!(!direct.contains(*library), "{} has {library}: {reason}", package.name);
            }
        }
    }
}

#[test]
fn versions_of_libraries_stand_in_the_workspace() {
    let mut faults = Vec::new();
    for package in packages() {
        let manifest = std::fs::read_to_string(&package.manifest).expect("a manifest is text");
        let own = manifest.lines().filter(|line| line.contains("version = \""));
        faults.extend(own.map(|line| format!("{}: {line}", package.name)));
    }
    super::assert_none(&faults, "versions that belong into [workspace.dependencies]");
}

/// The most methods of a port.
const PORT_METHODS_MAX: usize = 5;

#[test]
fn a_port_has_at_most_five_methods() {
    let mut faults = Vec::new();
    let mut seen = 0;
    for source in super::files(&[".rs"]) {
        if !source.path.contains("/src/ports") {
            continue;
        }
        for port in source.text.split("\npub trait ").skip(1) {
            seen += 1;
            let body = port.split("\n}").next().unwrap_or_default();
            let is_method = |line: &&str| {
                let line = line.trim_start();
                line.starts_with("fn ") || line.starts_with("async fn ")
            };
            let methods = body.lines().filter(is_method).count();
            if methods > PORT_METHODS_MAX {
                let name = port.split([':', ' ', '{']).next().unwrap_or_default();
                faults.push(format!("{}: {name} has {methods}", source.path));
            }
        }
    }
    assert!(seen >= 3, "ports are in ports.rs of the crate that needs them");
    super::assert_none(&faults, "ports with too many methods");
}
