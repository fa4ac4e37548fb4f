//! TRANSFER: move money between accounts (docs/protocol.md section 5.8).

use super::fields::Fields;
use super::{Kind, StaticView};
use crate::json::ObjectWriter;
use crate::{Address, Amount, Rejection};

/// The fields of TRANSFER.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The receiver; may be the sender.
    pub to: Address,
    /// With or without the prefix `ox`, as the sender wrote it.
    pub to_text: String,
    /// What the receiver gets.
    pub amount: Amount,
    /// What the block's proposer gets.
    pub fee: Amount,
}

impl Transfer {
    /// A transfer to `to` in the bare written form.
    #[must_use]
    pub fn new(to: Address, amount: Amount, fee: Amount) -> Self {
        Self { to, to_text: to.to_string(), amount, fee }
    }
}

impl Kind for Transfer {
    const TYPE: &'static str = "TRANSFER";

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        Ok(Self {
            to: fields.parsed("to")?,
            to_text: fields.string("to")?,
            amount: fields.amount("amount")?,
            fee: fields.amount("fee")?,
        })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.string("to", &self.to_text);
        out.display("amount", &self.amount);
        out.display("fee", &self.fee);
    }

    fn check_static(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    fn payee(&self, _: Address) -> Option<Address> {
        Some(self.to)
    }
}
