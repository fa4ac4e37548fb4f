//! Five strangers tell a running validator, and a follower that names nobody, that the chain is a
//! thousand million blocks long. Both must go on as before: ready, and open for transactions.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::harness::boaster::Boasters;
use testkit::harness::town::Town;
use testkit::harness::user::User;
use testkit::suite::say;
use testkit::workload::keys;

const STRANGERS: u64 = 5;
/// The validator that is told, and the follower.
const TOLD: usize = 0;
const FOLLOWER: usize = 4;
/// How long they are told.
const TIME: Duration = Duration::from_secs(12);
/// Where the users are: no attacker has these addresses.
const USERS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(127, 0, 0, 98)), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 99))];

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::start(4, 1)?;
    town.node_mut(FOLLOWER)?.stop()?;
    let nobody = ("OMBRA__P2P__GOSSIP__PEERS", json!([]).to_string());
    town.node_mut(FOLLOWER)?.start_with(&[nobody])?;
    town.goes_on(&[0, 1, 2, 3, FOLLOWER], 5)?;
    let boasters = [TOLD, FOLLOWER]
        .map(|at| Boasters::start(&town, 1, at, STRANGERS))
        .into_iter()
        .collect::<anyhow::Result<Vec<_>>>()?;
    boasters.iter().try_for_each(Boasters::have_claimed)?;
    let mut keys = keys(2)?;
    let mut users = Vec::new();
    for (at, from) in [TOLD, FOLLOWER].into_iter().zip(USERS) {
        let key = keys.pop().context("a key")?;
        users.push(User::start_from(town.node(at)?.rpc, from, key));
    }
    let follower = users.pop().context("a user")?;
    let seen = [users.pop().context("a user")?.work_for(TIME)?, follower.stop()?];
    let asked: usize = boasters.iter().map(Boasters::asked).sum();
    say(&format!("   the strangers were asked {asked} times"));
    for (seen, whose) in seen.iter().zip(["a validator", "a follower"]) {
        seen.tell(&format!("strangers claim to be ahead of {whose}"));
    }
    for at in [TOLD, FOLLOWER] {
        let log = town.node(at)?.logged()?;
        ensure!(!log.contains("the node is behind its peers"), "node {at} believed strangers");
    }
    seen.iter().try_for_each(testkit::harness::user::Seen::is_served)
}
