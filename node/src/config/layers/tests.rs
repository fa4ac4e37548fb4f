//! What beats what, and which values are refused.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use toml::Value;

use super::{CommandDefault, ConfigError, ConfigErrors, Effective, load, variables};

/// The settings with these variables in the environment.
fn with(variables: &[(&[u8], &[u8])]) -> Result<Effective, ConfigErrors> {
    let warn = CommandDefault {
        key: "log.filter",
        command: "ombra dev",
        value: Value::String("warn".to_owned()),
    };
    let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let variables = variables.iter().map(|(name, value)| (text(name), text(value)));
    load(&[warn], None, variables, &[])
}

/// The only thing that is wrong with these variables.
fn refused(variables: &[(&[u8], &[u8])]) -> ConfigError {
    let mut errors = with(variables).unwrap_err().0;
    assert_eq!(1, errors.len(), "{errors:?}");
    errors.remove(0)
}

fn origin(effective: &Effective, key: &str) -> String {
    effective.origins[key].1.to_string()
}

#[test]
fn the_default_of_a_command_is_the_lowest_layer() {
    let alone = with(&[]).unwrap();
    assert_eq!("warn", alone.config.log.filter);
    assert_eq!("default of ombra dev", origin(&alone, "log.filter"));
    let asked = with(&[(b"OMBRA__LOG__FILTER", b"debug")]).unwrap();
    assert_eq!("debug", asked.config.log.filter);
    assert_eq!("environment OMBRA__LOG__FILTER", origin(&asked, "log.filter"));
}

#[test]
fn variables_that_are_not_text_matter_only_if_they_are_ours() {
    with(&[(b"LESSOPEN\xff", b"\xff"), (b"HOME", b"\xff")]).unwrap();
    for (name, value) in [(&b"OMBRA__LOG__FILTER"[..], &b"\xff"[..]), (b"OMBRA__\xff", b"1")] {
        let refused = refused(&[(name, value)]);
        assert!(matches!(refused, ConfigError::NotText { .. }), "{refused}");
    }
}

#[test]
fn addresses_and_filters_are_read_before_the_node_starts() {
    for (name, value, key) in [
        (&b"OMBRA__P2P__LISTEN"[..], &b"0.0.0.0:30777"[..], "p2p.listen"),
        (b"OMBRA__P2P__PEERS", b"[\"/ip4/10.0.0.300/tcp/1\"]", "p2p.peers"),
        (b"OMBRA__P2P__GOSSIP__LISTEN", b"0.0.0.0:30778", "p2p.gossip.listen"),
        (b"OMBRA__P2P__GOSSIP__PEERS", b"[\"node1:30778\"]", "p2p.gossip.peers"),
        (b"OMBRA__P2P__GOSSIP__EXTERNAL", b"[\"192.0.2.1\"]", "p2p.gossip.external"),
        (b"OMBRA__LOG__FILTER", b"node=loud", "log.filter"),
        (b"OMBRA__RPC__LISTEN", b"localhost", "rpc.listen"),
        (b"OMBRA__RPC__LIMITS__CLIENT_SHARE_PERCENT", b"0", "rpc.limits.client_share_percent"),
        (b"OMBRA__RPC__LIMITS__CLIENT_SHARE_PERCENT", b"101", "rpc.limits.client_share_percent"),
        (b"OMBRA__RPC__LIMITS__PING_INTERVAL_MS", b"0", "rpc.limits.ping_interval_ms"),
        (b"OMBRA__SNAPSHOTS__KEEP", b"0", "snapshots.keep"),
        (b"OMBRA__SNAPSHOTS__KEEP", b"5", "snapshots.keep"),
    ] {
        let refused = refused(&[(name, value)]);
        let ConfigError::BadValue { key: found, .. } = &refused else { panic!("{refused}") };
        assert_eq!(key, found, "{refused}");
    }
}

#[test]
fn a_trusted_block_is_a_height_with_a_hash_and_the_period_has_bounds() {
    const HASH: &str = "00000000000000000000000000000000000000000000000000000000000000ff";
    let (height, hash, period) = (
        "OMBRA__SYNC__TRUSTED__HEIGHT",
        "OMBRA__SYNC__TRUSTED__HASH",
        "OMBRA__SYNC__TRUST_PERIOD_MS",
    );
    fn bytes<'a>(variables: &[(&'a str, &'a str)]) -> Vec<(&'a [u8], &'a [u8])> {
        variables.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }
    let sync = with(&[]).unwrap().config.sync;
    assert_eq!((0, ""), (sync.trusted.height, &*sync.trusted.hash));
    assert_eq!(1_209_600_000, sync.trust_period_ms);
    let right = bytes(&[(height, "12"), (hash, HASH), (period, "1000")]);
    let sync = with(&right).unwrap().config.sync;
    assert_eq!((12, HASH, 1_000), (sync.trusted.height, &*sync.trusted.hash, sync.trust_period_ms));
    for (variables, key, value, expected) in [
        (&[(height, "12")][..], "sync.trusted.hash", "\"\"", "the hash of the block at height 12"),
        (&[(hash, HASH)], "sync.trusted.height", "0", "the height of the block"),
        (&[(height, "12"), (hash, "ff")], "sync.trusted.hash", "\"ff\"", "64 lowercase hex"),
        (&[(height, "-1"), (hash, HASH)], "sync.trusted.height", "-1", "u64"),
        (&[(period, "999")], "sync.trust_period_ms", "999", "1000 to 315360000000"),
        (
            &[(period, "315360000001")],
            "sync.trust_period_ms",
            "315360000001",
            "1000 to 315360000000",
        ),
    ] {
        let refused = refused(&bytes(variables));
        let ConfigError::BadValue { key: found, value: given, why, .. } = &refused else {
            panic!("{refused}")
        };
        assert_eq!((key, value), (&**found, &**given), "{refused}");
        assert!(why.contains(expected), "{refused}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once_and_each_thing_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let text = "[rpc]\nlisten = \"localhost\"\nlisen = 1\n[p2p.gossip]\npeers = [\"a\", \"b\"]\n\
                [sync.trusted]\nheight = \"9\"\nhash = \"\"\n[snapshots]\nkeep = 9\n";
    std::fs::write(&file, text).unwrap();
    let environment = [("OMBRA__LOG__FILTER", "x=loud"), ("OMBRA__NOTHING", "1"), ("HOME", "/")];
    let environment = || environment.iter().map(|(name, value)| (name.into(), value.into()));
    let errors = load(&[], Some(&file), environment(), &[]).unwrap_err();
    let keys = errors.iter().map(|error| match error {
        ConfigError::BadValue { key, .. } | ConfigError::UnknownKey { key, .. } => key.as_str(),
        other @ (ConfigError::Read { .. }
        | ConfigError::Syntax { .. }
        | ConfigError::NotText { .. }) => panic!("{other}"),
    });
    let mut keys: Vec<_> = keys.collect();
    keys.sort_unstable();
    let expected = [
        "log.filter",
        "nothing",
        "p2p.gossip.peers",
        "p2p.gossip.peers",
        "rpc.lisen",
        "rpc.listen",
        "snapshots.keep",
        "sync.trusted.height",
    ];
    assert_eq!(expected, *keys);
    let told = errors.to_string();
    assert!(told.starts_with("8 faults in the settings:\n  "), "{told}");
    assert_eq!(9, told.lines().count(), "{told}");
    assert_eq!(["OMBRA__LOG__FILTER", "OMBRA__NOTHING"], *variables(environment()));
}
