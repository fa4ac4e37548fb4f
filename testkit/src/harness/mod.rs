//! What the suites of faults and attacks share: a town of nodes, a switch between them, a load, an
//! honest user and rogue peers.

pub mod boaster;
pub mod clock;
pub mod engine_wire;
pub mod ledger;
pub mod liar;
pub mod load;
pub mod rogue;
pub mod switch;
pub mod town;
pub mod user;
