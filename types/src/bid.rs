//! What a transaction offers for its place in a block (docs/protocol.md section 15).

use crate::Amount;
use crate::tx::declare::{Members, declare};
use crate::tx::spec::{AmountLimit, FieldSpec};

/// The `maxBaseFee` of a transaction that does not name one, in micro-OMBRA per KiB.
pub const MAX_BASE_FEE: Amount = Amount::new(2_000);

declare! {
    /// What a transaction of any kind offers for its place in a block.
    #[derive(Default)]
    object Bid {
        required {}
        optional {
            /// The highest base fee at which a block may include the transaction, in micro-OMBRA
            /// per KiB. 2,000 if absent.
            max_base_fee "maxBaseFee": Amount, Amount(AmountLimit::Any);
            /// The tip, which the block's proposer gets.
            tip "tip": Amount, Amount(AmountLimit::Any);
        }
    }
}

impl Bid {
    /// The declarations of the members, in the order in which they are written.
    pub const FIELDS: &'static [FieldSpec] = <Self as Members>::FIELDS;

    /// The members' names, in the order in which they are written.
    pub const MEMBERS: [&'static str; 2] = ["maxBaseFee", "tip"];

    /// The highest base fee at which a block may include the transaction.
    #[must_use]
    pub fn highest(&self) -> Amount {
        self.max_base_fee.unwrap_or(MAX_BASE_FEE)
    }
}
