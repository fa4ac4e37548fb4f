//! Agents and programs are fetched once, as deep as agents nest, and give way to others.

use std::sync::Arc;

use super::bench::chain;
use crate::chain::Calls;
use crate::chain::fake::market::metadata;
use crate::market::agents::{AgentCache, Unfound};

#[tokio::test]
async fn an_agent_comes_with_those_that_it_uses_and_is_asked_for_once() {
    let chain = Arc::new(chain());
    let tool = |id: types::Hash| format!("agent:{id}@1.0.0");
    let third = chain.add_agent("third", &[]);
    let second = chain.add_agent("second", &[tool(third)]);
    let first = chain.add_agent("first", &[tool(second)]);
    let calls: Arc<dyn Calls> = chain.clone();
    let agents = AgentCache::new(Arc::clone(&calls));
    let (agent, library) = agents.gather(&first, "1.0.0").await.unwrap();
    assert_eq!(agent.id, first);
    for nested in [second, third] {
        assert!(library.agent(&nested, "1.0.0").is_some(), "{nested}");
    }
    // It is there though the node is away.
    chain.state.lock().away = u32::MAX;
    assert!(agents.gather(&first, "1.0.0").await.is_ok());
    let small = AgentCache::with_room(Arc::clone(&calls), metadata("first", &[]).len());
    assert!(matches!(small.gather(&first, "1.0.0").await, Err(Unfound::Node(_))));
    chain.state.lock().away = 0;
    assert!(small.gather(&first, "1.0.0").await.is_ok());
    chain.state.lock().away = u32::MAX;
    assert!(matches!(small.gather(&first, "1.0.0").await, Err(Unfound::Node(_))), "no room");
    chain.state.lock().away = 0;
    assert!(matches!(agents.gather(&first, "2.0.0").await, Err(Unfound::Never(_))));
}

#[tokio::test]
async fn the_programs_that_an_agent_may_need_have_room_together_or_none_is_executed() {
    let chain = Arc::new(chain());
    let inner = chain.add_program_agent("inner", &[1; 600], &[]);
    let other = chain.add_program_agent("other", &[2; 600], &[]);
    let tools = [inner, other].map(|id| format!("agent:{id}@1.0.0"));
    let outer = chain.add_program_agent("outer", &[3; 800], &tools);
    let calls: Arc<dyn Calls> = chain.clone();
    let (_, library) =
        AgentCache::with_room(Arc::clone(&calls), 2_000).gather(&outer, "1.0.0").await.unwrap();
    for program in ["blob-inner", "blob-other", "blob-outer"] {
        assert!(library.program(program).is_some(), "{program}");
    }
    let gathered = AgentCache::with_room(calls, 1_999).gather(&outer, "1.0.0").await;
    let Err(Unfound::Never(why)) = gathered else { panic!("they have room") };
    assert_eq!(why, "the programs of the agent and of those it uses have more than 1999 bytes");
}
