//! Nobody attacks. The figures of a quiet chain are what the other attacks are compared with.

use std::time::Duration;

use anyhow::Context as _;
use testkit::harness::town::Town;
use testkit::harness::user::User;
use testkit::workload::keys;

/// How long the user works.
const TIME: Duration = Duration::from_secs(5);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let key = keys(1)?.pop().context("a key")?;
    let seen = User::start(town.node(0)?.rpc, key).work_for(TIME)?;
    seen.tell("quiet");
    seen.is_served()
}
