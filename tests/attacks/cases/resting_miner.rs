//! A requester whose questions make the model's server fail. The server is well, and answers others:
//! their runs must not wait because of it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::ensure;
use testkit::harness::{Town, User};
use testkit::miners::{MinerHome, Requester, Wish, text};
use testkit::parallel::beside;
use testkit::script::{Model, Question, Reply};
use testkit::suite::say;
use testkit::workload::key;

use super::paid::Paid;

/// The accounts: the user, the miner, who poisons, who pays.
const MINER: usize = 1;
const POISONER: usize = 2;
const PAYER: usize = 3;
const POISON: &str = "poison";
/// Runs of the poisoner.
const RUNS: usize = 8;
/// The longest that a paying customer's run may take: the model answers at once, and a rest of the
/// miner is 5 seconds at least.
const SETTLED_MAX: Duration = Duration::from_secs(4);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let rpc = town.node(0)?.rpc;
    let user = User::start(rpc, key(0)?);
    let model = Model::start(|question: &Question| {
        if question.prompt.starts_with(POISON) {
            Reply::status("500 Internal Server Error", &[])
        } else {
            Reply::said("Well.")
        }
    })?;
    let settings = format!(
        "{}attempts_max = 1\n[engine]\npoll_ms = 300\npause_ms = 50\n[policy]\nclaim_jitter_ms = 0\nruns_max = 4\n",
        model.settings("")
    );
    let folder = tempfile::tempdir()?;
    let home = MinerHome::new(folder.path(), MINER, rpc, &settings)?;
    let miner = home.start()?;
    let (paid, poisoned) = beside(|| Paid::ask(PAYER, &home), |over| poison(rpc, over))?;
    miner.stop()?;
    say(&format!("   {paid} while {poisoned} made the server fail"));
    let seen = user.tell("meanwhile")?;
    ensure!(poisoned >= 2, "only {poisoned} runs made the server fail");
    paid.waited_less_than(SETTLED_MAX)?;
    seen.is_served()
}

/// Asks what the server fails at, one run after the other.
fn poison(rpc: SocketAddr, over: &AtomicBool) -> anyhow::Result<usize> {
    let mut requester = Requester::new(POISONER, rpc)?;
    for number in 0..RUNS {
        if over.load(Ordering::Relaxed) {
            return Ok(number);
        }
        let run = requester.ask(&Wish::new(format!("{POISON} {number}"), &[]))?;
        let record = requester.settled(&run)?;
        ensure!(text(&record, "status") == "failed", "it was answered: {record}");
    }
    Ok(RUNS)
}
