//! The inclusion fee of one transaction at the base fee of its block.

use types::{Amount, Bid, Code, Rejection};

/// The base fee that holds in a block, in micro-OMBRA per KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Price {
    /// What a block takes.
    pub base_fee: u64,
    /// For the pool: the base fee up to which it sets money of waiting transactions aside.
    pub reserve: Option<u64>,
}

impl Price {
    /// The price that a block takes.
    #[must_use]
    pub const fn of_block(base_fee: u64) -> Self {
        Self { base_fee, reserve: None }
    }

    /// What `charged` bytes cost at this price; of the pool's price, what it sets aside for them, which is
    /// never more than the bid allows: a transaction of the pool waits while the base fee is higher.
    ///
    /// # Errors
    /// FEE_ABOVE_MAX if this is the price of a block and above what the bid allows.
    pub(crate) fn inclusion(self, bid: &Bid, charged: u64) -> Result<Amount, Rejection> {
        // A transaction that pays nothing for its place is accepted at any base fee: a miner's steps
        // must not wait while others pay.
        if charged == 0 {
            return Ok(Amount::ZERO);
        }
        let highest = bid.highest().get();
        let rate = match self.reserve {
            Some(reserve) => reserve.max(self.base_fee).min(highest),
            None if self.base_fee > highest => return Err(above_max(highest, self.base_fee)),
            None => self.base_fee,
        };
        Ok(inclusion_fee(charged, rate))
    }
}

/// `ceil(charged × base fee / 1024)`, in micro-OMBRA.
#[must_use]
pub fn inclusion_fee(charged: u64, base_fee: u64) -> Amount {
    let product = u128::from(charged).saturating_mul(u128::from(base_fee));
    Amount::new(u64::try_from(product.div_ceil(1_024)).unwrap_or(u64::MAX))
}

/// FEE_ABOVE_MAX.
pub(super) fn above_max(highest: u64, base_fee: u64) -> Rejection {
    let expected = format_args!("at least {base_fee}, the base fee");
    Rejection::new(Code::FeeAboveMax, "maxBaseFee", highest, expected)
        .with("baseFee", Amount::new(base_fee))
}
