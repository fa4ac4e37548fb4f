//! Nobody attacks. The figures of a quiet chain are what the other attacks are compared with.

use std::time::Duration;

use testkit::harness::{Town, User};
use testkit::workload::key;

/// How long the user works.
const TIME: Duration = Duration::from_secs(5);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let seen = User::start(town.node(0)?.rpc, key(0)?).work_for(TIME)?;
    seen.tell("quiet");
    seen.is_served()
}
