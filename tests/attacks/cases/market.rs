//! What the attacks on calls have in common: a chain with the agent market, scenes that are played at the
//! same time with people of their own, and what a call did to each of them.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use testkit::harness::{Town, User};
use testkit::market::{Cast, REVEAL_FEE, Round, Scene, WAGE};
use testkit::parallel::joined;
use testkit::suite::say;
use testkit::workload::keys;
use types::{Address, Hash, Keypair};

/// Blocks and phases as short as a chain may have them; real ones have 20 s to reveal, and two minutes to
/// appeal.
const PARAMS: &[&str] =
    &["minBlockIntervalMs=100", "heartbeatMs=1000", "revealMs=5000", "appealMs=10000"];
/// What each miner has at stake.
const BOND: u64 = 20_000_000;
/// What the places of somebody's transactions cost at most in a scene, in micro.
pub(super) const PLACES: i128 = 100;
/// Penalties by the default parameters.
pub(super) const ABSENCE: i128 = 10_000;
pub(super) const UNREVEALED: i128 = 100_000;
pub(super) const OUTSIDE: i128 = 2_000;
pub(super) const DISSENT: i128 = 1_000_000;

/// What a member gets for an honest answer, and what a reveal costs its requester.
pub(super) const EARNED: i128 = WAGE as i128;
pub(super) const FEE: i128 = REVEAL_FEE as i128;

/// A way to cheat, played with people of its own.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) miners: usize,
    pub(super) capacity: u64,
    /// What it does; answers what is said of it.
    pub(super) play: fn(&mut Stage) -> anyhow::Result<String>,
}

/// A scene, and more people with money.
pub(super) struct Stage {
    pub(super) scene: Scene,
    pub(super) stranger: Keypair,
    pub(super) other_owner: Keypair,
    pub(super) node: SocketAddr,
}

/// People of a way beside its miners: owner, requester, stranger, another owner.
const OTHERS: usize = 4;

/// Plays all ways at once on one chain, while an honest user works.
pub(super) fn play(ways: &[Way], meanwhile: &str) -> anyhow::Result<()> {
    let people: usize = ways.iter().map(|way| way.miners + OTHERS).sum();
    let mut town = Town::from_v8(1, people + 1, PARAMS)?;
    let node = town.node(0)?.rpc;
    let mut keys = keys(people + 1)?;
    let user = User::start(node, keys.pop().context("a key")?);
    let played = std::thread::scope(|scope| {
        let mut acts = Vec::new();
        for (number, way) in (1_u8..).zip(ways) {
            let people = keys.split_off(keys.len() - way.miners - OTHERS);
            acts.push(scope.spawn(move || act(node, number, way, people)));
        }
        let ended = acts.into_iter().map(|act| joined(act.join(), "an actor"));
        ended.collect::<Vec<anyhow::Result<String>>>()
    });
    for (way, told) in ways.iter().zip(played) {
        let told = told.with_context(|| way.name.to_owned())?;
        say(&format!("   {}: {told}", way.name));
    }
    let seen = user.tell(meanwhile)?;
    town.goes_on(&[0], 3)?;
    seen.is_served()?;
    town.net.members.iter_mut().try_for_each(testkit::net::Member::stop)?;
    let verified = town.node(0)?.db("verify")?;
    ensure!(verified.contains("verified"), "{verified}");
    Ok(())
}

fn act(
    node: SocketAddr,
    number: u8,
    way: &Way,
    mut people: Vec<Keypair>,
) -> anyhow::Result<String> {
    let (stranger, other_owner) = people.pop().zip(people.pop()).context("two keys")?;
    let cast = Cast::of(people, BOND, way.capacity)?;
    let scene = Scene::open(node, Hash::new([number; 32]), cast)?;
    let mut stage = Stage { scene, stranger, other_owner, node };
    (way.play)(&mut stage)
}

/// What a call did: what its requester and its members have more than before, in micro. Members stand in
/// the order in which they were drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Gains {
    pub(super) requester: i128,
    pub(super) members: Vec<i128>,
}

/// What people have at one moment.
pub(super) struct Before {
    people: Vec<Address>,
    wealth: Vec<i128>,
}

impl Before {
    pub(super) fn of(scene: &mut Scene, people: Vec<Address>) -> anyhow::Result<Self> {
        let wealth = scene.wealth(&people)?;
        Ok(Self { people, wealth })
    }

    pub(super) fn of_requester(scene: &mut Scene) -> anyhow::Result<Self> {
        Self::of(scene, vec![scene.requester.address()])
    }

    /// What each has more now.
    pub(super) fn gains(&self, scene: &mut Scene) -> anyhow::Result<Vec<i128>> {
        let now = scene.wealth(&self.people)?;
        Ok(now.iter().zip(&self.wealth).map(|(now, before)| now - before).collect())
    }

    /// The same of the only one.
    pub(super) fn gain(&self, scene: &mut Scene) -> anyhow::Result<i128> {
        self.gains(scene)?.pop().context("somebody")
    }
}

/// Asks three members, has them act, and waits for the settlement.
pub(super) fn call_of_three(
    scene: &mut Scene,
    members_act: impl FnOnce(&mut Scene, &Round) -> anyhow::Result<()>,
) -> anyhow::Result<Gains> {
    let requester = Before::of_requester(scene)?;
    let call = scene.asked(3);
    let most = i128::from(call.max_fee.get());
    let round = scene.ask(call)?;
    let members = Before::of(scene, round.members.clone())?;
    members_act(scene, &round)?;
    scene.settled()?;
    let members = members.gains(scene)?;
    let requester = requester.gain(scene)?;
    ensure!(-requester <= most + PLACES, "the requester lost {requester}, more than its escrow");
    Ok(Gains { requester, members })
}

/// Whether somebody gained so much, but for the places of transactions.
pub(super) fn is_about(what: &str, got: i128, expected: i128) -> anyhow::Result<()> {
    ensure!(
        (expected - PLACES..=expected).contains(&got),
        "{what} has {got} more, not {expected} less places"
    );
    Ok(())
}

impl Gains {
    /// Whether the requester and the members gained so much, but for the places of transactions.
    pub(super) fn are_about(&self, requester: i128, members: &[i128]) -> anyhow::Result<()> {
        is_about("the requester", self.requester, requester)?;
        ensure!(self.members.len() == members.len(), "{self:?}");
        for (got, expected) in self.members.iter().zip(members) {
            is_about("a member", *got, *expected)?;
        }
        Ok(())
    }

    /// As it is told: `requester -2,468, members +1,009 +1,009 -100,000`.
    pub(super) fn told(&self) -> String {
        let members: Vec<String> = self.members.iter().map(|gain| format!("{gain:+}")).collect();
        format!("members {}, requester {:+}", members.join(" "), self.requester)
    }
}
