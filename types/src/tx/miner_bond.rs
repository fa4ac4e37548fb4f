//! MINER_BOND: a miner puts money at stake (docs/protocol.md section 5.14).

use super::Kind;
use super::declare::declare;
use super::spec::AmountLimit;
use crate::Amount;

declare! {
    /// Moves money from the sender's balance to its bond.
    kind MinerBond = "MINER_BOND", section "5.14", fork V7 {
        required {
            /// How much.
            amount "amount": Amount, Amount(AmountLimit::Positive);
        }
        optional {}
    }
}

impl Kind for MinerBond {}
