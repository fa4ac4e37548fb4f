//! What the suites of faults and attacks share: a town of nodes, a switch between them, a load, an
//! honest user, rogue peers, and the runner that keeps each case apart.

pub mod boaster;
pub mod clock;
pub mod engine_wire;
pub mod ledger;
pub mod liar;
pub mod load;
pub mod needs;
pub mod report;
pub mod rogue;
pub mod suite;
pub mod switch;
pub mod town;
pub mod user;
