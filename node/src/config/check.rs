//! What is wrong with settings whose types are right.

use std::fmt;

use super::settings::{Config, P2p, Snapshots, Sync, Trusted};

/// A setting that is wrong, and what would fit.
#[derive(Debug)]
pub(super) struct Fault {
    /// The dotted key.
    pub(super) key: String,
    /// What was expected.
    pub(super) why: String,
}

impl Fault {
    fn new(key: &str, why: &dyn fmt::Display) -> Self {
        Self { key: key.to_owned(), why: why.to_string() }
    }
}

/// All that is wrong: bounds, addresses, the trusted block, and the log filter.
pub(super) fn faults(config: &Config) -> Vec<Fault> {
    let Config { p2p, sync, log, rpc, snapshots, .. } = config;
    let limits = rpc.limits.faults().into_iter();
    let mut faults: Vec<_> =
        limits.map(|(name, why)| Fault::new(&format!("rpc.limits.{name}"), &why)).collect();
    faults.extend(of_addresses(p2p));
    faults.extend(of_trust(sync));
    let (period, range) = (sync.trust_period_ms, Sync::TRUST_PERIOD_MS);
    if !range.contains(&period) {
        let why = format!("expected {} to {}", range.start(), range.end());
        faults.push(Fault::new("sync.trust_period_ms", &why));
    }
    let kept = Snapshots::KEEP;
    if !kept.contains(&snapshots.keep) {
        let why = format!("expected {} to {}", kept.start(), kept.end());
        faults.push(Fault::new("snapshots.keep", &why));
    }
    faults
        .extend(crate::logging::check(&log.filter).err().map(|why| Fault::new("log.filter", &why)));
    faults
}

/// Both networks read addresses in the same form.
fn of_addresses(p2p: &P2p) -> impl Iterator<Item = Fault> {
    let P2p { listen, peers, open: _, gossip } = p2p;
    let one = |key, text: &String| (key, text.clone());
    let all = |key, texts: &[String]| texts.iter().map(|text| one(key, text)).collect::<Vec<_>>();
    let addresses = [
        vec![one("p2p.listen", listen)],
        all("p2p.peers", peers),
        vec![one("p2p.gossip.listen", &gossip.listen)],
        all("p2p.gossip.external", &gossip.external),
        all("p2p.gossip.peers", &gossip.peers),
    ];
    addresses.into_iter().flatten().filter_map(|(key, text)| {
        consensus::check_address(&text).err().map(|why| Fault::new(key, &why))
    })
}

/// A trusted block is a height with a hash.
fn of_trust(sync: &Sync) -> Option<Fault> {
    const HEIGHT: &str = "sync.trusted.height";
    const HASH: &str = "sync.trusted.hash";
    let Trusted { height, hash } = &sync.trusted;
    if let Some(why) = types::Hash::parse(hash).err().filter(|_| !hash.is_empty()) {
        return Some(Fault::new(HASH, &why));
    }
    match (height, hash.is_empty()) {
        (0, false) => {
            Some(Fault::new(HEIGHT, &"expected the height of the block `sync.trusted.hash`"))
        }
        (1.., true) => {
            Some(Fault::new(HASH, &format!("expected the hash of the block at height {height}")))
        }
        (0, true) | (1.., false) => None,
    }
}
