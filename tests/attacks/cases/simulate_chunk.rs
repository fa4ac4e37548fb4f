//! Somebody asks again and again what the last chunk of a large blob would do. The first release
//! hashed all its chunks for each answer, under the lock that every submission needs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use testkit::actor::people;
use testkit::harness::{Town, User};
use testkit::parallel::at_once;
use testkit::suite::say;

use super::blobs::{Attacker, Questions, ask, store_large};

/// How long the attack lasts.
const TIME: Duration = Duration::from_secs(10);
/// Askers, each with a connection of its own.
const ASKERS: usize = 4;
/// Six questions a second each.
const PAUSE: Duration = Duration::from_millis(150);
/// The longest that half of the submissions may take.
const SUBMIT_P50_MAX: Duration = Duration::from_millis(25);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(1, 0)?;
    let node = town.node(0)?.rpc;
    let [user, key] = people()?.map(|it| it.key);
    let question = store_large(&mut Attacker::new(key.clone(), node)?, town.node(0)?, "large")?;
    let user = User::start(node, user);
    let asked = AtomicU64::new(0);
    let texts = [question];
    let questions = Questions { texts: &texts, pause: PAUSE, end: Instant::now() + TIME };
    at_once(&[(); ASKERS], |_, ()| ask(Attacker::new(key.clone(), node)?, questions, &asked))?;
    let seen = user.stop()?;
    say(&format!("   {} simulations of a last chunk", asked.load(Ordering::Relaxed)));
    seen.tell("simulations of the last chunk of 16 MiB");
    let half = seen.submit(50);
    ensure!(half < SUBMIT_P50_MAX, "half of the submissions took {half:?} and longer");
    seen.is_served()
}
