//! A validator that comes back is told by strangers that the chain is a thousand million blocks long.
//! They give no block, and leave in the end. It must be at work again at once, as without them.

use std::time::{Duration, Instant};

use anyhow::ensure;
use testkit::harness::{Boasters, Load, Town, User};
use testkit::http::Connection;
use testkit::suite::say;
use testkit::workload::key;

const REST: &[usize] = &[0, 1, 2];
/// The validator that is away for so many blocks.
const AWAY: usize = 3;
const BLOCKS: u64 = 60;
const STRANGERS: u64 = 5;
/// Clients that keep the chain going meanwhile.
const CLIENTS: usize = 2;
/// It is ready again after so long at the latest: it takes about one second alone.
const BACK_MAX: Duration = Duration::from_secs(8);
/// How long it is watched before the attack has won.
const WATCHED: Duration = Duration::from_secs(25);
/// How long a user works with it then.
const TIME: Duration = Duration::from_secs(4);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::start(4, 0)?;
    // Blocks come as fast as they can; without transactions there is one a second.
    let load = Load::full(&town.net, REST, CLIENTS)?;
    let (alone, _nobody) = comes_back(&mut town, None)?;
    let (left, _nobody) = comes_back(&mut town, Some(Leave::WhenHeard))?;
    let (claimed, strangers) = comes_back(&mut town, Some(Leave::Never))?;
    say(&format!(
        "   ready again after {alone:.1?}, with strangers {claimed:.1?}, and when they leave {left:.1?}"
    ));
    for back in [alone, left, claimed] {
        ensure!(back < BACK_MAX, "the validator was out for {back:.1?}");
    }
    town.goes_on(&[0, 1, 2, AWAY], 10)?;
    load.stop()?;
    let seen = User::start(town.node(AWAY)?.rpc, key(CLIENTS)?).work_for(TIME)?;
    seen.tell("a validator that came back is lied to");
    drop(strangers);
    seen.is_served()
}

/// When the strangers go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leave {
    Never,
    WhenHeard,
}

/// Has the validator miss some blocks and come back; answers how long it took to be ready, and the
/// strangers that are still there.
fn comes_back(
    town: &mut Town,
    strangers: Option<Leave>,
) -> anyhow::Result<(Duration, Option<Boasters>)> {
    town.kill(AWAY)?;
    town.goes_on(REST, BLOCKS)?;
    let strangers = strangers
        .map(|leave| Ok::<_, anyhow::Error>((leave, Boasters::start(town, 0, AWAY, STRANGERS)?)))
        .transpose()?;
    let back = Instant::now();
    town.restart(AWAY)?;
    let mut staying = None;
    if let Some((leave, boasters)) = strangers {
        boasters.have_claimed()?;
        staying = (leave == Leave::Never).then_some(boasters);
    }
    let goal = town.height(REST)?;
    while back.elapsed() < WATCHED {
        let node = town.node(AWAY)?;
        let is_ready = Connection::open(node.rpc)?.get("/readyz").is_ok();
        if is_ready && node.height()? >= goal {
            break;
        }
        // The pause of the loop that waits with a deadline.
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok((back.elapsed(), staying))
}
