//! A validator is killed at each phase of a call, while others go on with it, and comes back: all nodes
//! tell of one decision and one settlement.

use anyhow::{Context as _, ensure};
use types::tx::AgentCall;
use types::{Address, Hash};

use crate::Extent;
use testkit::actor::Actor;
use testkit::harness::{FAST, Ledger, Town, catches_up};
use testkit::market::{Cast, Round, Saying, Scene, WAGE};
use testkit::suite::say;
use testkit::workload::keys;

/// As many as an appeal needs.
const MINERS: usize = 10;
const MEMBERS: u64 = 3;
/// Who answers again after an appeal.
const MEMBERS_AGAIN: usize = 7;
const BOND: u64 = 20_000_000;
/// What the places of two transactions cost a member at most, in micro.
const PLACES: i128 = 60;

/// Where a call is when a validator is killed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Moment {
    Electing,
    Committing,
    Revealing,
    Decided,
    Appealed,
    CommittingAgain,
    RevealingAgain,
}

/// The moments, and who is killed: never the node that is asked.
const MOMENTS: [(Moment, usize); 7] = [
    (Moment::Electing, 1),
    (Moment::Committing, 2),
    (Moment::Revealing, 3),
    (Moment::Decided, 1),
    (Moment::Appealed, 2),
    (Moment::CommittingAgain, 3),
    (Moment::RevealingAgain, 1),
];

/// A chain on which one validator at a time is killed.
struct Stage {
    town: Town,
    moment: Moment,
    victim: usize,
    appellant: Actor,
}

impl Stage {
    fn kill_at(&mut self, moment: Moment) -> anyhow::Result<()> {
        if moment == self.moment { self.town.kill(self.victim) } else { Ok(()) }
    }

    /// The victim comes back when the phase is over that it was killed in.
    fn restart_after(&mut self, moment: Moment) -> anyhow::Result<()> {
        if moment != self.moment {
            return Ok(());
        }
        self.town.restart(self.victim)?;
        let took = catches_up(self.town.node(self.victim)?, self.town.node(0)?)?;
        say(&format!("   killed while {moment:?}: back at the others' height after {took:.1?}"));
        Ok(())
    }
}

pub(crate) fn run(_: Extent) -> anyhow::Result<()> {
    let params = [FAST, &["appealMs=10000", "revealMs=5000"]].concat();
    let town = Town::from_v8(4, MINERS + 3, &params)?;
    let mut people = keys(MINERS + 3)?;
    let appellant = Actor::new(people.pop().context("a key")?);
    let cast = Cast::of(people, BOND, 4)?;
    let mut scene = Scene::open(town.node(0)?.rpc, Hash::new([0x11; 32]), cast)?;
    let mut stage = Stage { town, moment: Moment::Electing, victim: 0, appellant };
    for (moment, victim) in MOMENTS {
        (stage.moment, stage.victim) = (moment, victim);
        one_call(&mut stage, &mut scene).with_context(|| format!("killed while {moment:?}"))?;
    }
    stage.town.check(&Ledger::default())
}

/// A call with a death in one of its phases. Its members are paid once.
fn one_call(stage: &mut Stage, scene: &mut Scene) -> anyhow::Result<()> {
    // Where it could be appealed, some seconds lie between its decision and its settlement.
    let appealable = (stage.moment >= Moment::Decided).then_some(true);
    let call = AgentCall { appealable, ..scene.asked(MEMBERS) };
    let call_id = call.call_id;
    let candidates = scene.candidates()?;
    let miners: Vec<Address> = candidates.iter().map(|it| it.miner).collect();
    let before = scene.wealth(&miners)?;
    let asked_in = scene.request(call)?;
    stage.kill_at(Moment::Electing)?;
    let head = scene.drawn(asked_in)?;
    stage.restart_after(Moment::Electing)?;
    let members = head.draw((call_id, 0), &candidates, usize::try_from(MEMBERS)?);
    let first = Round { call_id, number: 0, members, drawn_in: head.height };
    answer(stage, scene, &first, [Moment::Committing, Moment::Revealing])?;
    let mut members = first.members.clone();
    if stage.moment > Moment::Decided {
        stage.kill_at(Moment::Appealed)?;
        let second = scene.appeal(&mut stage.appellant, &first, MEMBERS_AGAIN)?;
        stage.restart_after(Moment::Appealed)?;
        answer(stage, scene, &second, [Moment::CommittingAgain, Moment::RevealingAgain])?;
        members.extend(&second.members);
    }
    // Everybody has revealed: it is decided, and settled when nobody has appealed in time.
    stage.kill_at(Moment::Decided)?;
    scene.settled()?;
    stage.restart_after(Moment::Decided)?;
    for ((miner, now), before) in miners.iter().zip(scene.wealth(&miners)?).zip(before) {
        let wage = if members.contains(miner) { i128::from(WAGE) } else { 0 };
        let places = if members.contains(miner) { PLACES } else { 0 };
        let earned = now - before;
        ensure!((wage - places..=wage).contains(&earned), "{miner} has {earned} more, not {wage}");
    }
    let height = stage.town.height(&[0, 1, 2, 3])?;
    stage.town.net.same_block(height).map(drop)
}

/// All members of a round give the honest answer.
fn answer(
    stage: &mut Stage,
    scene: &mut Scene,
    round: &Round,
    [committing, revealing]: [Moment; 2],
) -> anyhow::Result<()> {
    let said = round.all_say(&Saying::honest(round.call_id));
    stage.kill_at(committing)?;
    scene.commit(round, &said)?;
    stage.restart_after(committing)?;
    stage.kill_at(revealing)?;
    scene.reveal(round, &said)?;
    stage.restart_after(revealing)
}
