//! From v8 on a run can be one of an agent, and its tools can be agents; nothing of that exists before.

use state::table::{decode_value, encode_value};
use state::tables::Runs;
use types::tx::{AgentRequest, RunOfAgent};
use types::{Body, CheckedTx, Ender, Forks, Hash, Params, Run, RunAgent};

use crate::market_world::{AGENT, Market};
use crate::world::{ALICE, PROPOSER, V7, World};

fn request(world: &World, change: impl FnOnce(&mut AgentRequest)) -> Body {
    let mut body = world.request_body(ALICE, 1_000, 1);
    if let Body::AgentRequest(request) = &mut body {
        change(request);
    }
    body
}

fn naming(world: &World, agent_id: Option<Hash>, version: Option<&str>) -> Body {
    let agent = RunOfAgent { agent_id, agent_version: version.map(str::to_owned) };
    request(world, |request| request.agent = agent.into())
}

/// Uses an agent with a name of so many bytes.
fn using(world: &World, bytes: usize) -> Body {
    let tool = format!("agent:{}", "x".repeat(bytes - 6));
    request(world, |request| request.tools_whitelist = vec![tool])
}

/// The agent that calls are about.
fn agent() -> Option<RunAgent> {
    Some(RunAgent { agent_id: AGENT, version: "1.0.0".to_owned() })
}

#[test]
fn a_run_can_be_one_of_an_agent_that_takes_calls() {
    let mut market = Market::of(1);
    let world = &mut market.world;
    for (code, id, version) in [
        ("INVALID_FIELD", Some(AGENT), None),
        ("INVALID_FIELD", None, Some("1.0.0")),
        ("INVALID_FIELD", Some(AGENT), Some("")),
        ("AGENT_NOT_FOUND", Some(Hash::new([1; 32])), Some("1.0.0")),
        ("AGENT_NOT_FOUND", Some(AGENT), Some("1.0.1")),
    ] {
        assert_eq!(world.code(ALICE, &naming(world, id, version)), code, "{id:?} {version:?}");
    }
    let body = naming(world, Some(AGENT), Some("1.0.0"));
    world.must(ALICE, &body);
    let run = world.run(body.agent_run_id().unwrap());
    assert_eq!(run.agent, agent());
    let plain = request(world, |_| {});
    world.must(ALICE, &plain);
    assert_eq!(world.run(plain.agent_run_id().unwrap()).agent, None);
    world.next_block();
    market.retire();
    let body = naming(&market.world, Some(AGENT), Some("1.0.0"));
    assert_eq!(market.world.code(ALICE, &body), "AGENT_RETIRED");
}

#[test]
fn tools_may_have_longer_names_from_v8_on() {
    let mut market = Market::of(1);
    let world = &mut market.world;
    world.must(ALICE, &using(world, 192));
    let refused = world.tx(ALICE, 0, &using(world, 193)).unwrap_err();
    assert_eq!((refused.code().as_str(), refused.field()), ("INVALID_FIELD", "toolsWhitelist"));
}

#[test]
fn before_v8_a_run_has_no_agent_and_tools_have_short_names() {
    for forks in [V7, Forks { v7: None, ..V7 }] {
        let mut world = World::with_forks(Params::default(), forks, &[(PROPOSER, 1)]);
        assert_eq!(world.code(ALICE, &using(&world, 65)), "INVALID_FIELD");
        assert_eq!(world.code(ALICE, &using(&world, 192)), "INVALID_FIELD");
        world.must(ALICE, &using(&world, 64));
        // Members that mean nothing: whatever they say.
        let body = naming(&world, Some(AGENT), None);
        world.must(ALICE, &body);
        assert_eq!(world.run(body.agent_run_id().unwrap()).agent, None);
    }
}

#[test]
fn what_names_an_agent_counts_as_unknown_before_v8_and_after() {
    let market = Market::of(1);
    let tx = |body: &Body| CheckedTx::trust(market.world.unchecked_tx(ALICE, 9, body));
    let plain = tx(&request(&market.world, |_| {})).unknown_bytes();
    let named = tx(&naming(&market.world, Some(AGENT), Some("1.0.0"))).unknown_bytes();
    assert_eq!(plain, 0);
    assert!(named > 64, "{named}");
}

#[test]
fn a_run_is_stored_in_the_lowest_version_that_can_hold_it() {
    let mut market = Market::of(1);
    let id = market.world.request(ALICE, 1_000, 1);
    let plain = market.world.run(id);
    let refused = Run { ended_by: Some(Ender::Miner), ..plain.clone() };
    let named = Run { agent: agent(), ..plain.clone() };
    let base = encode_value::<Runs>(&plain);
    for (run, version, more) in [(plain, 1, 0), (refused, 2, 8), (named, 3, 4 + 1 + 32 + 8 + 5)] {
        let bytes = encode_value::<Runs>(&run);
        assert_eq!((bytes[0], bytes.len()), (version, base.len() + more), "{run:?}");
        assert_eq!(decode_value::<Runs>(&bytes).unwrap(), run);
    }
}
