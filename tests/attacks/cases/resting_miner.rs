//! A requester whose questions make the model's server fail. The server is well, and answers others:
//! their runs must not wait because of it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tests::harness::report::say;
use tests::harness::town::Town;
use tests::harness::user::User;
use tests::miners::{MinerHome, Requester, Wish, text};
use tests::script::{Model, Question, Reply};
use tests::workload::keys;

const USER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 99));
/// The accounts: the user, the miner, who poisons, who pays.
const MINER: usize = 1;
const POISONER: usize = 2;
const PAYER: usize = 3;
const POISON: &str = "poison";
/// Runs of each.
const RUNS: usize = 8;
/// The longest that a paying customer's run may take: the model answers at once, and a rest of the
/// miner is 5 seconds at least.
const SETTLED_MAX: Duration = Duration::from_secs(4);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let rpc = town.node(0)?.rpc;
    let user = User::start(rpc, USER, keys(1)?.pop().context("a key")?);
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
    let over = Arc::<AtomicBool>::default();
    let poisoner = {
        let over = Arc::clone(&over);
        std::thread::spawn(move || poison(rpc, &over))
    };
    let paid = pay(rpc).map_err(|fault| home.explain(&fault));
    over.store(true, Ordering::Relaxed);
    let poisoned = poisoner.join().map_err(|_panic| anyhow::anyhow!("the poisoner panicked"))??;
    let mut paid = paid?;
    miner.stop()?;
    paid.sort_unstable();
    let (median, most) = (paid.get(paid.len() / 2), paid.last());
    let (median, most) = (*median.context("a run")?, *most.context("a run")?);
    say(&format!(
        "   {} paid runs settled in p50/max {median:.1?}/{most:.1?} while {poisoned} made the server fail",
        paid.len()
    ));
    let seen = user.stop()?;
    seen.tell("meanwhile");
    ensure!(poisoned >= 2, "only {poisoned} runs made the server fail");
    ensure!(most < SETTLED_MAX, "a paying customer waited {most:.1?}");
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

/// Asks what the server answers, and how long that takes.
fn pay(rpc: SocketAddr) -> anyhow::Result<Vec<Duration>> {
    let mut requester = Requester::new(PAYER, rpc)?;
    let mut took = Vec::new();
    for number in 0..RUNS {
        let began = Instant::now();
        let run = requester.ask(&Wish::new(format!("question {number}"), &[]))?;
        let record = requester.settled(&run)?;
        ensure!(text(&record, "status") == "completed", "it was not answered: {record}");
        took.push(began.elapsed());
    }
    Ok(took)
}
