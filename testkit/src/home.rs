//! Nodes whose homes are made one by one, as processes that talk to each other on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use serde_json::{Value, json};

use crate::net::Member;

/// What nodes log: also what they catch up with, and whether they vote.
const LOGGED: &str = "warn,node::sync=info,node::validator_sets=info,cli=info";

/// A home, and the node that may run in it. Dropping it kills the node.
#[derive(Debug)]
pub struct HomeNode {
    member: Member,
    /// The peer address as others write it.
    pub p2p: String,
    /// The same on the network for transactions.
    pub gossip: String,
    /// The validator's public key; none for a follower.
    pub public_key: Option<String>,
}

impl HomeNode {
    /// Makes the keys of a home.
    pub fn with_keys(home: PathBuf, is_follower: bool) -> anyhow::Result<Self> {
        let ip = own_loopback_address();
        let listeners = [TcpListener::bind((ip, 0))?, TcpListener::bind((ip, 0))?];
        let address = |listener: &TcpListener| -> anyhow::Result<String> {
            Ok(format!("/ip4/{ip}/tcp/{}", listener.local_addr()?.port()))
        };
        let (p2p, gossip) = (address(&listeners[0])?, address(&listeners[1])?);
        drop(listeners);
        let member = Member::at(home);
        let mut arguments = vec!["init", "--json"];
        arguments.extend(is_follower.then_some("--follower"));
        let answer: Value = serde_json::from_str(&member.tell(&arguments)?)?;
        let public_key = answer["validatorPublicKey"].as_str().map(str::to_owned);
        Ok(Self { member, p2p, gossip, public_key })
    }

    /// Completes the home with the chain's genesis file.
    pub fn complete(&self, genesis: &Path) -> anyhow::Result<()> {
        let genesis = genesis.to_str().context("a path in UTF-8")?;
        let mut arguments = vec!["init", "--genesis", genesis];
        // It would get a key after all.
        arguments.extend(self.public_key.is_none().then_some("--follower"));
        self.tell(&arguments).map(drop)
    }

    /// Starts the node with its peers on both networks and waits until it answers.
    pub fn start(&mut self, peers: &[String], gossip_peers: &[String]) -> anyhow::Result<()> {
        let settings = [
            ("OMBRA__RPC__LISTEN", "127.0.0.1:0".to_owned()),
            ("OMBRA__LOG__FILTER", LOGGED.to_owned()),
            ("OMBRA__RPC__METRICS", "false".to_owned()),
            ("OMBRA__P2P__LISTEN", self.p2p.clone()),
            ("OMBRA__P2P__OPEN", "true".to_owned()),
            ("OMBRA__P2P__PEERS", json!(peers).to_string()),
            ("OMBRA__P2P__GOSSIP__LISTEN", self.gossip.clone()),
            ("OMBRA__P2P__GOSSIP__PEERS", json!(gossip_peers).to_string()),
        ];
        let started = self.start_with(&settings);
        started.with_context(|| format!("its log: {}", self.logged().unwrap_or_default()))
    }

    /// What its validator key signs to agree to become a validator, and until when that counts.
    pub fn accept(&self) -> anyhow::Result<(String, u64)> {
        let answer = self.tell(&["validator", "accept", "--json"])?;
        let answer: Value = serde_json::from_str(&answer)?;
        let acceptance = answer["acceptance"].as_str().context("a signature")?.to_owned();
        Ok((acceptance, answer["expiresAt"].as_u64().context("a time")?))
    }
}

/// Its ports are not in a row, so [`Member::metric`], [`Member::p2p_port`] and [`Member::p2p_address`] are of no
/// use here.
impl Deref for HomeNode {
    type Target = Member;

    fn deref(&self) -> &Member {
        &self.member
    }
}

impl DerefMut for HomeNode {
    fn deref_mut(&mut self) -> &mut Member {
        &mut self.member
    }
}

/// An address of this machine on which nothing else listens. Outgoing connections take free ports of
/// 127.0.0.1; a node that was down must find its ports free, so it listens where nothing connects from.
fn own_loopback_address() -> Ipv4Addr {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    let [_, a, b, c] = std::process::id().wrapping_mul(61).wrapping_add(made).to_be_bytes();
    // An odd second byte keeps away from 127.0.0.1; the last must not name a network or a broadcast.
    Ipv4Addr::new(127, a | 1, b, c.clamp(1, 254))
}

impl Drop for HomeNode {
    fn drop(&mut self) {
        drop(self.kill());
    }
}
