//! MINER_UNBOND: a miner takes money back that it has at stake (docs/protocol.md section 5.15).

use super::Kind;
use super::declare::declare;
use super::spec::AmountLimit;
use crate::Amount;

declare! {
    /// Takes money out of the sender's bond; it is paid out after `unbondMs`.
    kind MinerUnbond = "MINER_UNBOND", section "5.15", fork V7 {
        required {
            /// How much; at most what is not locked.
            amount "amount": Amount, Amount(AmountLimit::Positive);
        }
        optional {}
    }
}

impl Kind for MinerUnbond {}
