//! What is refused about votes on the validator set.

use std::fs;

use testkit::actor::Actor;
use testkit::node::DevOptions;
use testkit::workload::envelope;
use types::params::VALIDATOR_VOTES_MAX;
use types::tx::ValidatorVote;
use types::{Body, Code, Hash, Keypair, PublicKey};

use super::case::{Case, case};
use super::scene::{Scene, all_taken, assert_provoked};
use crate::support::dev;

pub(super) const CODES: &[Code] =
    &[Code::NotValidator, Code::ValidatorUnchanged, Code::ValidatorSetLimit, Code::VoteLimit];

/// What the validator of a development chain has.
const POWER: u64 = 1;

/// No block comes while votes are counted that wait.
const NO_BLOCKS_MS: u64 = 600_000;

/// The validator of the chain.
fn validator(scene: &Scene) -> anyhow::Result<Actor> {
    let seed = fs::read_to_string(scene.node.data().join("keys/validator.key"))?;
    Ok(Actor::new(Keypair::from_seed(Hash::parse(seed.trim())?.as_bytes())))
}

fn vote(candidate_key: PublicKey, power: u64) -> Body {
    let expires_at = envelope(0).timestamp + 1_000;
    Body::ValidatorVote(ValidatorVote::new(candidate_key, power, expires_at))
}

fn candidate(number: u8) -> PublicKey {
    Keypair::from_seed(&[number; 32]).public_key()
}

#[test]
fn what_is_wrong_about_votes_is_told_and_changes_nothing() -> anyhow::Result<()> {
    let mut scene = Scene::of(dev(&[]))?;
    let (validator, stranger) = (validator(&scene)?, scene.actor(0));
    let own = validator.key.public_key();
    let cases = [
        case(Code::NotValidator, &stranger, &vote(own, 2)).says(
            "from",
            stranger.address(),
            "the address of a validator of the next block",
        ),
        case(Code::ValidatorUnchanged, &validator, &vote(own, POWER)).says(
            "power",
            POWER,
            "a power that the candidate does not have already",
        ),
        case(Code::ValidatorSetLimit, &validator, &vote(own, 0)).says(
            "candidateKey",
            own,
            "a validator beside which there are others",
        ),
    ];
    scene.refuse_in_every_way(&cases)?;
    let mut all = cases.to_vec();
    all.push(one_vote_too_many()?);
    assert_provoked(CODES, &all);
    scene.node.stop()
}

/// Refused on a chain of its own, where the votes before it wait.
fn one_vote_too_many() -> anyhow::Result<Case> {
    let silent = dev(&["--param", &format!("heartbeatMs={NO_BLOCKS_MS}")]);
    let mut scene = Scene::of(DevOptions { block_time_ms: NO_BLOCKS_MS, ..silent })?;
    let mut validator = validator(&scene)?;
    let numbers = 0..u8::try_from(VALIDATOR_VOTES_MAX)?;
    let votes: Vec<String> =
        numbers.map(|number| validator.sign(&vote(candidate(number), 1))).collect();
    all_taken(scene.send_together(&votes)?);
    let case = case(Code::VoteLimit, &validator, &vote(candidate(200), 1)).says(
        "from",
        format!("{VALIDATOR_VOTES_MAX} open votes for other candidates"),
        format!("less than {VALIDATOR_VOTES_MAX}"),
    );
    scene.refuse_alone(&case)?;
    scene.node.stop()?;
    Ok(case)
}
