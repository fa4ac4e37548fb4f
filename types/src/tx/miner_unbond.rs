//! MINER_UNBOND: a miner withdraws money from its bond (docs/protocol.md section 5.15).

use super::declare::declare;
use super::kind::Kind;
use super::spec::AmountLimit;
use crate::Amount;

declare! {
    /// Withdraws money from the sender's bond. The chain pays it out after `unbondMs`.
    kind MinerUnbond = "MINER_UNBOND", section "5.15", fork V7 {
        required {
            /// The amount to withdraw, at most the part of the bond that is not locked.
            amount "amount": Amount, Amount(AmountLimit::Positive);
        }
        optional {}
    }
}

impl Kind for MinerUnbond {}
