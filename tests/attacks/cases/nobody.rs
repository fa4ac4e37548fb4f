//! Nobody attacks. The figures of a quiet chain are what the other attacks are compared with.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::Context as _;
use tests::harness::town::Town;
use tests::harness::user::User;
use tests::workload::keys;

/// How long the user works.
const TIME: Duration = Duration::from_secs(5);
/// Where the user is: no attacker has this address.
const USER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 99));

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let key = keys(1)?.pop().context("a key")?;
    let seen = User::start(town.node(0)?.rpc, USER, key).work_for(TIME)?;
    seen.tell("quiet");
    seen.is_served()
}
