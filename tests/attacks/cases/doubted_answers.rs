//! Appeals: two liars of three are found out by seven others, and whoever doubts what is right, or what
//! nobody can compute, pays for it.
//!
//! Appellants are strangers with money. What is said is what everybody has more afterwards: liars lose the
//! penalty for dissent, an appellant who is right gains, one who is wrong loses the deposit, and a second
//! round that comes to nothing costs its author as much as the members that were drawn into it.

use anyhow::{Context as _, ensure};
use testkit::actor::Actor;
use testkit::market::{BUDGET, ROYALTY, Round, Saying, Scene};
use types::tx::AgentCall;
use types::{Address, Hash};

use super::market::{Before, DISSENT, EARNED, FEE, PLACES, Stage, Way, is_about, play};

/// Members of the second round.
const SECOND: usize = 7;
/// What the second round costs where all of its members agree.
const SECOND_COSTS: i128 = 7 * (EARNED + FEE);
/// What an appellant pays at first for the second round.
const PAYMENT: i128 = 7 * (BUDGET as i128 + FEE);

const WAYS: &[Way] = &[
    way("a colluding majority is overturned", overturned),
    way("an appellant who is wrong", upheld),
    way("an appeal of what nobody can compute in time", unanswered),
];

const fn way(name: &'static str, play: fn(&mut Stage) -> anyhow::Result<String>) -> Way {
    Way { name, miners: 14, capacity: 4, play }
}

pub(super) fn run((): ()) -> anyhow::Result<()> {
    play(WAYS, "among appeals")
}

/// A call that can be appealed, whose first round says this.
fn first_round(
    scene: &mut Scene,
    says: impl Fn(usize, Hash) -> Saying,
) -> anyhow::Result<(Round, Before)> {
    let call = AgentCall { appealable: Some(true), ..scene.asked(3) };
    let requester = Before::of_requester(scene)?;
    let round = scene.ask(call)?;
    let members = round.members.iter().enumerate();
    let said: Vec<(Address, Saying)> =
        members.map(|(place, member)| (*member, says(place, round.call_id))).collect();
    scene.answer(&round, &said)?;
    Ok((round, requester))
}

/// What a call and its appeal did to each, in micro.
struct Gains {
    requester: i128,
    appellant: i128,
    first: Vec<i128>,
    second: Vec<i128>,
}

impl Gains {
    fn told(&self) -> String {
        let sum = |gains: &[i128]| gains.iter().map(|it| format!("{it:+}")).collect::<Vec<_>>();
        format!(
            "appellant {:+}, first round {}, second round {}, requester {:+}",
            self.appellant,
            sum(&self.first).join(" "),
            sum(&self.second).join(" "),
            self.requester
        )
    }
}

/// The first round says what it says, a stranger appeals, and the second round does what `second` does.
fn appealed(
    stage: &mut Stage,
    says: impl Fn(usize, Hash) -> Saying,
    second: impl FnOnce(&mut Scene, &Round) -> anyhow::Result<()>,
) -> anyhow::Result<Gains> {
    let scene = &mut stage.scene;
    let everybody = scene.miners.iter().map(Actor::address).collect();
    let miners = Before::of(scene, everybody)?;
    let (first_round, requester) = first_round(scene, says)?;
    let mut appellant = Actor::new(stage.stranger.clone());
    let before = Before::of(scene, vec![appellant.address()])?;
    let second_round = scene.appeal(&mut appellant, &first_round, SECOND)?;
    ensure!(second_round.members.len() == SECOND, "{second_round:?}");
    second(scene, &second_round)?;
    scene.settled()?;
    let gains = miners.gains(scene)?;
    let of = |round: &Round| {
        let at = |member: &Address| {
            let place = scene.miners.iter().position(|it| it.address() == *member)?;
            gains.get(place).copied()
        };
        let gains: Option<Vec<i128>> = round.members.iter().map(at).collect();
        gains.context("a member that is no miner")
    };
    let (first, second) = (of(&first_round)?, of(&second_round)?);
    let requester = requester.gain(scene)?;
    let appellant = before.gain(scene)?;
    Ok(Gains { requester, appellant, first, second })
}

fn all_honest(scene: &mut Scene, round: &Round) -> anyhow::Result<()> {
    scene.answer(round, &round.all_say(&Saying::honest(round.call_id)))
}

fn overturned(stage: &mut Stage) -> anyhow::Result<String> {
    let liars = |place, id| if place < 2 { Saying::lie(id) } else { Saying::honest(id) };
    let gains = appealed(stage, liars, all_honest)?;
    let [one, two, honest] = gains.first.as_slice().try_into().context("three members")?;
    for liar in [one, two] {
        is_about("a liar", liar, -DISSENT)?;
    }
    for earned in gains.second.iter().chain([&honest]) {
        is_about("an honest member", *earned, EARNED)?;
    }
    // The second round is paid out of what the liars would have got, and of their penalties.
    let left = 2 * DISSENT - (SECOND_COSTS - 2 * EARNED);
    is_about("the appellant", gains.appellant, left / 2)?;
    let price = 3 * EARNED + 3 * FEE + i128::from(ROYALTY);
    is_about("the requester", gains.requester, -price)?;
    Ok(gains.told())
}

fn upheld(stage: &mut Stage) -> anyhow::Result<String> {
    let gains = appealed(stage, |_, id| Saying::honest(id), all_honest)?;
    for earned in gains.first.iter().chain(&gains.second) {
        is_about("an honest member", *earned, EARNED)?;
    }
    is_about("the appellant", gains.appellant, -(3 * DISSENT + SECOND_COSTS))?;
    Ok(gains.told())
}

/// Nobody of the second round answers: those who were drawn into it lose half of the penalty each, and the
/// appellant as much of its deposit as all of them together.
fn unanswered(stage: &mut Stage) -> anyhow::Result<String> {
    let gains = appealed(stage, |_, id| Saying::honest(id), |_, _| Ok(()))?;
    for earned in &gains.first {
        is_about("an honest member", *earned, EARNED)?;
    }
    for lost in &gains.second {
        is_about("a silent member", *lost, -DISSENT / 2)?;
    }
    let lost = -gains.appellant;
    let members: i128 = gains.second.iter().map(|it| -it).sum();
    let deposit = 3 * DISSENT;
    ensure!(lost >= members.min(deposit), "the appellant lost {lost}, the members {members}");
    ensure!(lost <= deposit + PAYMENT + PLACES, "the appellant lost {lost}");
    Ok(gains.told())
}
