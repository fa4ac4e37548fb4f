//! The tables that a pin has.

use state::table::{Table, TableId};
use state::tables::{
    Figures, FiguresOfSubmitters, OffersByExecutor, READ_BY_CHECKS, READ_FOR_RULES, Supplies,
    Unbondings,
};

/// The tables that executing reads and no check does; and the order of offers, which CALL_APPEAL reads from
/// the committed state alone: a draft that only checks does not keep it.
const READ_BY_EXECUTION: [TableId; 5] =
    [Figures::ID, FiguresOfSubmitters::ID, OffersByExecutor::ID, Supplies::ID, Unbondings::ID];

/// The tables that transactions read, be it to be checked or to be executed.
pub fn pinned_tables() -> impl Iterator<Item = TableId> {
    READ_BY_CHECKS.into_iter().chain(READ_BY_EXECUTION).chain(READ_FOR_RULES)
}
