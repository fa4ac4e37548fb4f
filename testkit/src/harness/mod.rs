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

pub use boaster::Boasters;
pub use ledger::Ledger;
pub use liar::Liar;
pub use load::Load;
pub use rogue::{BROADCAST, PROOF, Plan, Question, Rogue, packed};
pub use town::{FAST, Town, catches_up};
pub use user::{INCLUSION_P99_MAX, Seen, User};
