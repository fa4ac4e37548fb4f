//! What a call asks of its members (docs/protocol.md section 17.2).

use std::collections::BTreeSet;

use types::agent::ExecutorId;
use types::{Address, Amount, Prices};

/// Which members are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Draw {
    /// Those of round 0. Whoever is left out for its capacity or for what is locked of its bond, and for
    /// nothing else, keeps its weight; its seat stays empty.
    First,
    /// Those of the round after an appeal: neither capacity nor what is locked matters, and no seat stays
    /// empty. Else whoever locks the bonds of others with cheap calls would choose who judges.
    Appeal,
}

/// What a call asks of its members.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What they must have, those of nested agents too. The order does not matter, nor does one that is
    /// named twice.
    pub executors: &'a [ExecutorId],
    /// What the call pays.
    pub prices: &'a Prices,
    /// What is locked of the bond of each; in the round after an appeal what is free, if that is less.
    pub lock: Amount,
    /// Who may not be a member: requester, appellant, members of an earlier round.
    pub excluded: &'a BTreeSet<Address>,
    /// Which members are drawn.
    pub draw: Draw,
}
