//! Execution from the outside: every kind, deadlines, blocks, and random sequences against an
//! independent model. The state is in memory; random sequences of many transactions are executed over
//! RocksDB, which restarts now and then.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::unwrap_in_result,
    clippy::type_complexity,
    clippy::too_many_lines,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "in a test, a panic is the assertion; helpers are public within the suite"
)]

mod acts;
mod agent_metadata;
mod agents;
mod blocks;
mod bodies;
mod calls;
mod crossing;
mod crowding;
mod database;
mod deadlines;
mod draws;
mod effects;
mod evidence;
mod fees;
mod lottery;
mod many_calls;
mod market_world;
mod model;
mod model_agents;
mod model_bonds;
mod model_calls;
mod model_offers;
mod model_rules;
mod model_settlement;
mod model_validators;
mod offers;
mod pending;
mod pool_appeals;
mod protection;
mod random;
mod random_calls;
mod random_market;
mod randomness;
mod rejections;
mod review;
mod rule_votes;
mod runs_of_agents;
mod simulation;
mod stakes;
mod validators;
mod work;
mod world;
