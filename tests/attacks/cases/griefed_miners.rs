//! Requesters that want to harm miners or each other: payloads that nobody can read, limits that are
//! traps, calls that take the miners' places, and agents that need what nobody has.
//!
//! What is said is what everybody has more afterwards. Who asks pays for the work, whatever it is; an
//! honest requester whose call finds no members has its escrow back.

use anyhow::{Context as _, ensure};
use testkit::actor::Actor;
use testkit::market::{Cast, PER_CALL, ROYALTY, Round, Saying, Scene};
use types::tx::AgentCall;
use types::{Body, Hash};

use super::market::{Before, EARNED, FEE, PLACES, Stage, Way, is_about, play};

/// What a member gets for saying no.
const NO: i128 = PER_CALL as i128;
/// Calls to an agent that nobody can run.
const IN_VAIN: usize = 40;

const WAYS: &[Way] = &[
    way("arguments that nobody can read", 3, 4, malformed),
    way("a result that may not be as long as the answer", 3, 4, trap),
    way("calls that take all places of the miners", 3, 2, stuffing),
    way("calls to an agent that needs what nobody has", 3, 4, in_vain),
];

const fn way(
    name: &'static str,
    miners: usize,
    capacity: u64,
    play: fn(&mut Stage) -> anyhow::Result<String>,
) -> Way {
    Way { name, miners, capacity, play }
}

pub(super) fn run((): ()) -> anyhow::Result<()> {
    play(WAYS, "among requesters that grief")
}

/// The members say no to a call, and are paid for that.
fn refuse_work(
    scene: &mut Scene,
    call: AgentCall,
    look: impl FnOnce(&mut Scene, &Round) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let requester = Before::of_requester(scene)?;
    let failure = Saying::failure(&call);
    let round = scene.ask(call)?;
    let members = Before::of(scene, round.members.clone())?;
    let said = round.all_say(&failure);
    scene.commit(&round, &said)?;
    look(scene, &round)?;
    scene.reveal(&round, &said)?;
    scene.settled()?;
    let lost = requester.gain(scene)?;
    let earned = members.gains(scene)?;
    is_about("the griefer", lost, -3 * (NO + FEE))?;
    for earned in &earned {
        is_about("a member", *earned, NO)?;
    }
    Ok(format!("members {earned:?}, griefer {lost:+}"))
}

fn malformed(stage: &mut Stage) -> anyhow::Result<String> {
    let mut call = stage.scene.asked(3);
    call.payload.0.extend([0xff; 900]);
    refuse_work(&mut stage.scene, call, |_, _| Ok(()))
}

/// Whoever runs the agent sees that the answer is longer than the call allows and says no. The answer itself
/// is refused, whatever was committed to.
fn trap(stage: &mut Stage) -> anyhow::Result<String> {
    let mut call = stage.scene.asked(3);
    call.limits.result_bytes = 1;
    refuse_work(&mut stage.scene, call, |scene, round| {
        let member = *round.members.first().context("a member")?;
        let answer = Saying::honest(round.call_id).reveal(&round.by(member));
        scene.refused_as(member, &answer, "CALL_LIMITS")
    })
}

/// Two calls take all places. An honest call meanwhile finds nobody and has its escrow back; the same again
/// is answered when the miners have done what they were asked.
fn stuffing(stage: &mut Stage) -> anyhow::Result<String> {
    let scene = &mut stage.scene;
    let griefer = Before::of_requester(scene)?;
    let mut honest = Actor::new(stage.stranger.clone());
    let seen = Before::of(scene, vec![honest.address()])?;
    let mut rounds = Vec::new();
    for _ in 0..2 {
        let call = scene.asked(3);
        rounds.push(scene.ask(call)?);
    }
    std::mem::swap(&mut scene.requester, &mut honest);
    let call = scene.asked(3);
    // Nobody can be drawn: all are full.
    let round = scene.ask(call)?;
    let lost_in_vain = seen.gain(scene)?;
    is_about("the honest requester", lost_in_vain, 0)?;
    for round in &rounds {
        scene.answer(round, &round.all_say(&Saying::honest(round.call_id)))?;
    }
    scene.settled()?;
    let first = *round.members.first().context("a member")?;
    let commitment = Saying::honest(round.call_id).commit(&round.by(first));
    let miner = scene.miner(first)?.clone();
    let text = miner.draft_on(&scene.market.chain_id, &commitment);
    scene.senders.refused(&text, "NOT_MEMBER")?;
    let call = scene.asked(3);
    let again = scene.ask(call)?;
    scene.answer(&again, &again.all_say(&Saying::honest(again.call_id)))?;
    scene.settled()?;
    let price = 3 * (EARNED + FEE) + i128::from(ROYALTY);
    let paid = seen.gain(scene)?;
    is_about("the honest requester", paid, -price)?;
    let griefer = griefer.gain(scene)?;
    is_about("the griefer", griefer, -2 * price)?;
    Ok(format!(
        "griefer {griefer:+} for two calls; honest requester {lost_in_vain:+} for the call that found nobody, {paid:+} with the one that was answered then"
    ))
}

/// Many calls to an agent whose executor nobody offers, and an honest call in the same blocks.
fn in_vain(stage: &mut Stage) -> anyhow::Result<String> {
    let (node, scene) = (stage.node, &mut stage.scene);
    let (owner, requester) = (stage.other_owner.clone(), stage.stranger.clone());
    let cast = Cast { owner, requester, miners: Vec::new(), bond: 0, capacity: 0 };
    let mut empty = Scene::open(node, Hash::new([0xdd; 32]), cast)?;
    let griefer = Before::of_requester(&mut empty)?;
    let mut texts = Vec::new();
    for _ in 0..IN_VAIN {
        let call = empty.asked(15);
        texts.push(empty.requester.sign_on(&empty.market.chain_id, &Body::AgentCall(call)));
    }
    let asked_in = empty.deliver(&texts)?;
    let call = scene.asked(3);
    let round = scene.ask(call)?;
    ensure!(round.drawn_in <= asked_in + 4, "the honest call waited until {}", round.drawn_in);
    scene.answer(&round, &round.all_say(&Saying::honest(round.call_id)))?;
    scene.settled()?;
    let lost = griefer.gain(&mut empty)?;
    let places = i128::try_from(IN_VAIN)? * PLACES;
    ensure!((-places..0).contains(&lost), "{IN_VAIN} calls in vain cost {lost}");
    Ok(format!(
        "griefer {lost:+} for {IN_VAIN} calls, whose escrows are back; an honest call beside them was drawn {} blocks after the last of them",
        round.drawn_in.saturating_sub(asked_in)
    ))
}
