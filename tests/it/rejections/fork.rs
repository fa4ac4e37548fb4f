//! Kinds that are refused because their fork is not active yet.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use genesis::{Genesis, Spec, Validator};
use state::Forks;
use testkit::actor::{Actor, cancel, finish, step, turn};
use testkit::workload::keys;
use types::{Amount, Body, Code, Hash, Keypair, Params};

use super::case::{Case, begins, case};
use super::scene::{FUNDS, Scene};

pub(super) const CODES: &[Code] = &[Code::ForkNotActive];

const V6_HEIGHT: u64 = 1_000_000;
/// The seed of the validator's key.
pub(super) const VALIDATOR: [u8; 32] = [1; 32];

/// All rules of v7 from the first block on.
pub(super) const V7: Forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0), v8: None };
/// The agent market, too.
pub(super) const V8: Forks = Forks { v8: Some(0), ..V7 };

/// Parameters of a chain that makes blocks quickly.
pub(super) fn quick() -> Params {
    Params { min_block_interval_ms: 50, ..Params::default() }
}

/// Puts a key and a genesis with these forks and parameters into a folder, in which `ombra dev` goes on.
pub(super) fn begin_chain(
    folder: &Path,
    chain_id: &str,
    forks: Forks,
    params: Params,
) -> anyhow::Result<()> {
    fs::create_dir_all(folder.join("keys"))?;
    let key = folder.join("keys/validator.key");
    let mut key = OpenOptions::new().write(true).create_new(true).mode(0o600).open(key)?;
    writeln!(key, "{}", Hash::new(VALIDATOR))?;
    let validator = Keypair::from_seed(&VALIDATOR).public_key();
    let genesis = Genesis::new(Spec {
        chain_id: chain_id.to_owned(),
        genesis_time: 1_700_000_000_000,
        validators: vec![Validator { public_key: validator, power: 1, name: None }],
        accounts: keys(10)?.iter().map(|key| (key.address(), Amount::new(FUNDS))).collect(),
        agents: Vec::new(),
        forks,
        params,
    })?;
    Ok(fs::write(folder.join("genesis.json"), genesis.to_file())?)
}

#[test]
fn kinds_of_a_later_fork_are_refused_and_change_nothing() -> anyhow::Result<()> {
    let forks = Forks { v6: V6_HEIGHT, ..Forks::default() };
    let scene = Scene::of_chain("before-the-fork", forks, quick(), Vec::new())?;
    let cases = cases(&scene.actor(0));
    scene.refuse(CODES, &cases)
}

fn cases(alice: &Actor) -> Vec<Case> {
    const RUN: Hash = Hash::new([7; 32]);
    let bodies = [
        Body::ChatTurn(turn("hello")),
        Body::AgentRequest(alice.request("prompt", 300, 3)),
        Body::AgentClaim(alice.claim(RUN)),
        step(RUN, 0, 1),
        Body::AgentFinish(finish(RUN, 0, [0, 0, 0])),
        cancel(RUN),
    ];
    let refused = |body: &Body| {
        let got = begins(&format!("{} in block ", body.type_name()));
        let expected = format!("block {V6_HEIGHT} or later");
        case(Code::ForkNotActive, alice, body).says("type", got, expected)
    };
    bodies.iter().map(refused).collect()
}
