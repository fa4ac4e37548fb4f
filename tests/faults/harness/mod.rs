//! What the faults share: a town of nodes, a switch between them, a load, and the checks at the
//! end.

pub(crate) mod engine_wire;
pub(crate) mod ledger;
pub(crate) mod liar;
pub(crate) mod load;
pub(crate) mod needs;
pub(crate) mod report;
pub(crate) mod rogue;
pub(crate) mod switch;
pub(crate) mod town;
