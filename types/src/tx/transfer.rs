//! TRANSFER: move money between accounts (docs/protocol.md section 5.8).

use super::declare::declare;
use super::kind::Kind;
use super::spec::AmountLimit;
use super::value::WrittenAddress;
use crate::{Address, Amount};

declare! {
    /// Transfers an amount from the sender to a receiver.
    kind Transfer = "TRANSFER", section "5.8" {
        required {
            /// The receiver, which may be the sender.
            to "to": WrittenAddress, Address;
            /// The amount that the receiver gets.
            amount "amount": Amount, Amount(AmountLimit::Any);
            /// The fee, which the block's proposer gets.
            fee "fee": Amount, Amount(AmountLimit::Any), filled Empty;
        }
        optional {}
    }
}

impl Transfer {
    /// A transfer to `to`, written without the prefix `ox`.
    #[must_use]
    pub fn new(to: Address, amount: Amount, fee: Amount) -> Self {
        Self { to: to.into(), amount, fee }
    }
}

impl Kind for Transfer {
    fn payee(&self, _: Address) -> Option<Address> {
        Some(self.to.address)
    }

    fn has_own_tip(&self) -> bool {
        true
    }
}
