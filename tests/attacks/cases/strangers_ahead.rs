//! Five strangers tell a running validator, and a follower that names nobody, that the chain is a
//! thousand million blocks long. Both must go on as before: ready, and open for transactions.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::ensure;
use testkit::harness::{Boasters, Seen, Town, User};
use testkit::suite::say;
use testkit::workload::key;

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
    let nobody = [super::peers(&town, &[])?];
    town.node_mut(FOLLOWER)?.start_with(&nobody)?;
    town.goes_on(&[0, 1, 2, 3, FOLLOWER], 5)?;
    let boasters = [TOLD, FOLLOWER]
        .map(|at| Boasters::start(&town, 1, at, STRANGERS))
        .into_iter()
        .collect::<anyhow::Result<Vec<_>>>()?;
    boasters.iter().try_for_each(Boasters::have_claimed)?;
    let [told, follower] = [TOLD, FOLLOWER].map(|at| town.node(at).map(|node| node.rpc));
    let told = User::start_from(told?, USERS[0], key(0)?);
    let follower = User::start_from(follower?, USERS[1], key(1)?);
    let seen = [told.work_for(TIME)?, follower.stop()?];
    let asked: usize = boasters.iter().map(Boasters::asked).sum();
    say(&format!("   the strangers were asked {asked} times"));
    for (seen, whose) in seen.iter().zip(["a validator", "a follower"]) {
        seen.tell(&format!("strangers claim to be ahead of {whose}"));
    }
    for at in [TOLD, FOLLOWER] {
        let log = town.node(at)?.logged()?;
        ensure!(!log.contains("the node is behind its peers"), "node {at} believed strangers");
    }
    seen.iter().try_for_each(Seen::is_served)
}
