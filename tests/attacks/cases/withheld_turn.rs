//! A validator that wants to choose the members of a call. It cannot change what its own block would draw,
//! but it knows it before anybody else does: when its friend is not among those, it stays away, and the next
//! proposer draws, by a key that it does not have.
//!
//! What it has of that is one more draw that it cannot foresee, and it pays with its turn. What is said at
//! the end is how often it stayed away, whom the others drew, and how long the chain waited.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use consensus::ValidatorSet;
use serde_json::json;
use state::market::election::Candidate;
use testkit::harness::Town;
use testkit::market::{Cast, Head, Round, Saying, Scene};
use testkit::node::wait_until;
use testkit::process::Signal;
use testkit::suite::say;
use testkit::workload::keys;
use types::randomness::Input;
use types::{Address, Hash, Keypair};

const VALIDATORS: usize = 4;
/// The node that stays away.
const EVIL: usize = 3;
/// Slow enough that it sees a call in a block before it has to propose the next one.
const PARAMS: &[&str] = &["minBlockIntervalMs=500", "heartbeatMs=500", "revealMs=5000"];
/// The friend is drawn in every third call.
const MINERS: usize = 9;
const MEMBERS: usize = 3;
const BOND: u64 = 20_000_000;
/// It stays away so often, and tries so often at most.
const TURNS: usize = 2;
const TRIES_MAX: usize = 16;
/// The longest that the chain may wait for a block: the time for a proposal, and for the next one.
const WAIT_MAX: Duration = Duration::from_secs(6);

struct Plot {
    town: Town,
    scene: Scene,
    turns: ValidatorSet,
    key: Keypair,
    friend: Address,
}

/// What it came to.
#[derive(Default, Debug)]
struct Came {
    /// Turns at which it proposed, because its friend would be drawn.
    proposed: usize,
    /// Turns at which it stayed away.
    withheld: usize,
    /// Of these, those at which others drew the friend.
    drawn_by_others: usize,
    waited: Duration,
}

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::from_v8(VALIDATORS, MINERS + 2, PARAMS)?;
    let validators = town.net.members.iter().map(|it| Ok((it.validator_key()?.public_key(), 1)));
    let turns = ValidatorSet::new(validators.collect::<anyhow::Result<Vec<_>>>()?)?;
    let key = town.node(EVIL)?.validator_key()?;
    let cast = Cast::of(keys(MINERS + 2)?, BOND, 64)?;
    let friend = cast.miners.first().context("a miner")?.address();
    let scene = Scene::open(town.node(0)?.rpc, Hash::new([0xef; 32]), cast)?;
    let mut plot = Plot { town, scene, turns, key, friend };
    let mut came = Came::default();
    for _ in 0..TRIES_MAX {
        plot.try_once(&mut came)?;
        if came.withheld >= TURNS {
            break;
        }
    }
    let Came { proposed, withheld, drawn_by_others, waited } = came;
    ensure!(withheld > 0, "it never had to stay away: {came:?}");
    ensure!(waited < WAIT_MAX, "the chain waited {waited:?} for a block");
    say(&format!(
        "   {proposed} turns at which its friend would be drawn, and it proposed; {withheld} turns given up, after which others drew the friend {drawn_by_others} times; the chain waited {waited:.1?} at most"
    ));
    let nodes: Vec<usize> = (0..VALIDATORS).collect();
    plot.town.goes_on(&nodes, 3)?;
    let height = plot.town.height(&nodes)?;
    plot.town.net.same_block(height).map(drop)
}

impl Plot {
    /// A call whose members the evil validator should draw.
    fn try_once(&mut self, came: &mut Came) -> anyhow::Result<()> {
        self.wait_for_its_turn()?;
        let call = self.scene.asked(u64::try_from(MEMBERS)?);
        let call_id = call.call_id;
        let candidates = self.scene.candidates()?;
        let asked_in = self.scene.request(call)?;
        let height = asked_in + 1;
        if self.turns.proposer(height, 0).address != self.key.address() {
            // The call came into a later block.
            return self.answer(call_id, asked_in, &candidates).map(drop);
        }
        let before = self.scene.head(asked_in)?;
        let chain_id = self.scene.market.chain_id.clone();
        let input = Input { chain_id: &chain_id, previous: before.randomness, height };
        let own = Head {
            height,
            proposer: self.key.address().to_string(),
            randomness: input.prove(&self.key).value,
        };
        if own.draw((call_id, 0), &candidates, MEMBERS).contains(&self.friend) {
            let round = self.answer(call_id, asked_in, &candidates)?;
            ensure!(round.members.contains(&self.friend), "another draw than it foresaw");
            came.proposed += 1;
            return Ok(());
        }
        self.town.node(EVIL)?.signal(Signal::STOP)?;
        let begun = Instant::now();
        let drawn = self.scene.drawn(asked_in);
        self.town.node(EVIL)?.signal(Signal::CONT)?;
        let head = drawn?;
        if head.proposer != own.proposer {
            ensure!(head.randomness != own.randomness, "others drew by its key");
            came.withheld += 1;
            came.waited = came.waited.max(begun.elapsed());
        }
        let round = self.answer(call_id, asked_in, &candidates)?;
        if head.proposer != own.proposer {
            came.drawn_by_others += usize::from(round.members.contains(&self.friend));
        }
        Ok(())
    }

    /// Waits until the block after the next one is the evil validator's.
    fn wait_for_its_turn(&mut self) -> anyhow::Result<()> {
        let (turns, own) = (&self.turns, self.key.address());
        let senders = &mut self.scene.senders;
        wait_until("the turn of the validator", || {
            let info = senders.call("ombra_chainInfo", &json!([]))?;
            let tip = info["height"].as_u64().context("no height")?;
            Ok(turns.proposer(tip + 2, 0).address == own)
        })
    }

    /// Those who were drawn answer, so that the call is settled.
    fn answer(
        &mut self,
        call_id: Hash,
        asked_in: u64,
        candidates: &[Candidate],
    ) -> anyhow::Result<Round> {
        let head = self.scene.drawn(asked_in)?;
        let members = head.draw((call_id, 0), candidates, MEMBERS);
        let round = Round { call_id, number: 0, members, drawn_in: head.height };
        self.scene.answer(&round, &round.all_say(&Saying::honest(call_id)))?;
        self.scene.settled()?;
        Ok(round)
    }
}
