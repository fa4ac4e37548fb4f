//! MINER_BOND: a miner adds money to its bond (docs/protocol.md section 5.14).

use super::declare::declare;
use super::kind::Kind;
use super::spec::AmountLimit;
use crate::Amount;

declare! {
    /// Moves money from the sender's balance to its bond.
    kind MinerBond = "MINER_BOND", section "5.14", fork V7 {
        required {
            /// The amount to add to the bond.
            amount "amount": Amount, Amount(AmountLimit::Positive);
        }
        optional {}
    }
}

impl Kind for MinerBond {}
