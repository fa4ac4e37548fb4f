//! Members of calls that do not do what they are paid for: they copy, guess, lie, stay away, withhold or
//! agree about nothing. Each way is one call of three members; who cheats is who was drawn first.
//!
//! What is said is what everybody has more afterwards. Lone cheats lose, those who did the work earn, and
//! the requester never loses more than its escrow. Two liars of three decide a call that cannot be
//! appealed: nobody sees that (docs/market.md); `doubted_answers` has what they risk where it can.

use anyhow::Context as _;
use testkit::market::{ROYALTY, Round, Saying, Scene};
use types::{Address, Hash};

use super::market::{ABSENCE, EARNED, FEE, OUTSIDE, Stage, UNREVEALED, Way, call_of_three, play};

/// What a requester pays for an answer that two of three members gave, beside the fees of reveals.
const ANSWER: i128 = 2 * EARNED + ROYALTY as i128;

const WAYS: &[Way] = &[
    way("nobody cheats", |stage| {
        saying(stage, [honest, honest], -(ANSWER + EARNED + 3 * FEE), [EARNED; 3])
    }),
    way("a copier commits to another's commitment", copier),
    way("a guesser of `yes` does no work", |stage| {
        saying(stage, [Saying::guess, honest], -(ANSWER + 3 * FEE), [-OUTSIDE, EARNED, EARNED])
    }),
    way("a liar", |stage| {
        saying(stage, [lie, honest], -(ANSWER + 3 * FEE), [-OUTSIDE, EARNED, EARNED])
    }),
    way("two liars of three, no appeal", |stage| {
        saying(stage, [lie, lie], -(ANSWER + 3 * FEE), [EARNED, EARNED, -OUTSIDE])
    }),
    way("an absent member", |stage| two_work(stage, |_, _, _| Ok(()), ABSENCE)),
    way("a withholder of its reveal", withholder),
    way("a member that is unable", |stage| {
        saying(stage, [unable, honest], -(ANSWER + 3 * FEE), [0, EARNED, EARNED])
    }),
    way("three that say what nobody else does", |stage| {
        saying(stage, [Saying::guess, lie], -3 * FEE, [0; 3])
    }),
    way("three that stay away", silence),
];

const fn way(name: &'static str, play: fn(&mut Stage) -> anyhow::Result<String>) -> Way {
    Way { name, miners: 3, capacity: 4, play }
}

pub(super) fn run((): ()) -> anyhow::Result<()> {
    play(WAYS, "among members that cheat")
}

/// The members as they were drawn: the first one cheats.
fn cast(round: &Round) -> anyhow::Result<[Address; 3]> {
    round.members.as_slice().try_into().context("three members")
}

/// What a member says of a call.
type Says = fn(Hash, Address) -> Saying;

/// All three answer; the first ones say this, the last one is honest. That the requester and the members have
/// so much more is checked.
fn saying(
    stage: &mut Stage,
    [first, second]: [Says; 2],
    requester: i128,
    members: [i128; 3],
) -> anyhow::Result<String> {
    let gains = call_of_three(&mut stage.scene, |scene, round| {
        let [one, two, three] = cast(round)?;
        let id = round.call_id;
        let said = [(one, first(id, one)), (two, second(id, two)), (three, Saying::honest(id))];
        scene.answer(round, &said)
    })?;
    gains.are_about(requester, &members)?;
    Ok(gains.told())
}

fn honest(id: Hash, _: Address) -> Saying {
    Saying::honest(id)
}

fn lie(id: Hash, _: Address) -> Saying {
    Saying::lie(id)
}

fn unable(id: Hash, _: Address) -> Saying {
    Saying::unable(id)
}

/// Two members do the work. The first one does what `cheats` does between their commitments.
fn two_work(
    stage: &mut Stage,
    cheats: impl FnOnce(&mut Scene, &Round, [Address; 2]) -> anyhow::Result<()>,
    loses: i128,
) -> anyhow::Result<String> {
    let gains = call_of_three(&mut stage.scene, |scene, round| {
        let [cheat, one, two] = cast(round)?;
        let said = [(one, Saying::honest(round.call_id)), (two, Saying::honest(round.call_id))];
        let [first, second] = &said;
        scene.commit(round, std::slice::from_ref(first))?;
        cheats(scene, round, [cheat, one])?;
        scene.commit(round, std::slice::from_ref(second))?;
        scene.reveal(round, &said)
    })?;
    gains.are_about(-(ANSWER + 2 * FEE), &[-loses, EARNED, EARNED])?;
    Ok(gains.told())
}

/// The commitment that it copies names another member, so nothing that the copier can reveal opens it, not
/// even what the other one reveals.
fn copier(stage: &mut Stage) -> anyhow::Result<String> {
    let gains = call_of_three(&mut stage.scene, |scene, round| {
        let [copier, one, two] = cast(round)?;
        let honest = Saying::honest(round.call_id);
        let said = [(one, honest.clone()), (two, honest.clone())];
        scene.commit(round, &said[..1])?;
        scene.send_all([(copier, honest.commit(&round.by(one)))])?;
        scene.commit(round, &said[1..])?;
        scene.reveal(round, &said[..1])?;
        for by in [round.by(one), round.by(copier)] {
            scene.refused_as(copier, &honest.reveal(&by), "REVEAL_MISMATCH")?;
        }
        scene.reveal(round, &said[1..])
    })?;
    gains.are_about(-(ANSWER + 2 * FEE), &[-UNREVEALED, EARNED, EARNED])?;
    Ok(gains.told())
}

fn withholder(stage: &mut Stage) -> anyhow::Result<String> {
    let commits = |scene: &mut Scene, round: &Round, [cheat, _]: [Address; 2]| {
        scene.commit(round, &[(cheat, Saying::honest(round.call_id))])
    };
    two_work(stage, commits, UNREVEALED)
}

fn silence(stage: &mut Stage) -> anyhow::Result<String> {
    let gains = call_of_three(&mut stage.scene, |_, _| Ok(()))?;
    gains.are_about(-3 * FEE, &[-ABSENCE; 3])?;
    Ok(gains.told())
}
