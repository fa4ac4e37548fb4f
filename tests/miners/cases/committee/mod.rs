//! Ten miners of one agent market: six honest ones, one whose model has a flipped bit, one that is
//! killed again and again, one that copies commitments, and one that is never there.
//!
//! All but the copier and the absent one are processes of `ombra miner` with a model of their own
//! in memory. Calls of a model and of a program, some of them with arguments that nobody can read,
//! are asked of committees of three and five. Afterwards every call has the answer that is right,
//! and everybody has what the chain says: the books of the chain and of the miners' journals are
//! compared to the micro.

mod books;
mod calls;
mod commitments;
mod copier;
mod flip;
mod killed;
mod question;
mod stage;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use testkit::miners::Miner;
use testkit::parallel::joined;

use self::calls::Calls;
use self::commitments::PoolWatch;
use self::killed::Deaths;
use self::stage::{KILLED, Stage, WRONG};
use crate::Extent;
use testkit::suite::{Missing, say};

/// Between two looks of somebody who follows the chain or a miner.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn run(extent: Extent) -> anyhow::Result<String> {
    let model = stage::model_file()?;
    if let Err(why) = &model {
        say(&format!("what needs the model is SKIPPED: {why}"));
    }
    let missing = model.as_ref().err().cloned();
    let stage = Stage::open(model.ok())?;
    let told = play(&stage, extent).map_err(|fault| stage.explain(&fault))?;
    match missing {
        None => Ok(told),
        Some(why) => bail!(Missing(format!("what needs the model: {why}; without it: {told}"))),
    }
}

/// Asks all calls while the killed, the copier and the killed do what they do, and checks
/// what came of it.
fn play(stage: &Stage, extent: Extent) -> anyhow::Result<String> {
    let began = Instant::now();
    let mut miners = stage.start()?;
    say(&format!("ten miners offer after {:.0?}", began.elapsed()));
    if let Some(model) = &stage.model {
        let wrong = miners.get(WRONG - 1).context("the wrong miner")?;
        let copies = flip::one_bit(wrong.pid(), model)?;
        say(&format!("a bit of the model is flipped in the wrong miner, in {copies} place(s)"));
    }
    let victim = miners.remove(KILLED - 1);
    let (stop, deaths) = (AtomicBool::new(false), Mutex::new(Deaths::default()));
    let pool = PoolWatch::of(stage.rpc(), stage.home(KILLED)?.address())?;
    let (mut course, copied, victim) = std::thread::scope(|scope| {
        let copier = scope.spawn(|| copier::copy(stage, &stop));
        let killer = scope
            .spawn(|| killed::kill_again_and_again(stage.home(KILLED)?, victim, &stop, &deaths));
        let course = Calls::new(stage)
            .and_then(|mut course| course.run(extent.calls, &deaths).map(|()| course));
        stop.store(true, Ordering::SeqCst);
        let copied = joined(copier.join(), "the copier");
        let victim = joined(killer.join(), "the killer");
        Ok::<_, anyhow::Error>((course?, copied?, victim?))
    })?;
    say(&format!("all calls are settled after {:.0?}", began.elapsed()));
    let deaths = deaths.into_inner().map_err(|_poison| anyhow!("a killer panicked"))?;
    miners.insert(KILLED - 1, victim);
    let told = books::check(stage, &mut course, &copied, &pool)?;
    miners.into_iter().try_for_each(Miner::stop)?;
    Ok(format!("{told}; the killed miner died {deaths}"))
}
