//! What an appeal takes (docs/protocol.md section 18.7).

use types::Amount;
use types::call::Call;

/// How many members the second round of a call has: twice as many as the first and one, or as many as
/// there are, an odd number above that of the first. None if there are too few.
#[must_use]
pub fn size(committee_size: u8, eligible: usize) -> Option<u8> {
    let whole = committee_size.saturating_mul(2).saturating_add(1);
    let eligible = u8::try_from(eligible).unwrap_or(u8::MAX);
    let odd = if eligible % 2 == 1 { eligible } else { eligible.saturating_sub(1) };
    Some(whole.min(odd)).filter(|size| *size > committee_size)
}

/// What an appellant pays and lays down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stakes {
    /// For the work of the second round.
    pub payment: Amount,
    /// Lost if the first decision is confirmed.
    pub deposit: Amount,
}

impl Stakes {
    /// Both; none if that is more than any amount of money.
    #[must_use]
    pub fn total(self) -> Option<Amount> {
        self.payment.checked_add(self.deposit)
    }
}

/// What an appeal takes at least: the second round has two members more than the first, or more.
#[must_use]
pub fn least_stakes(call: &Call) -> Option<Stakes> {
    stakes(call, call.committee_size.saturating_add(2))
}

/// What an appeal to a round of `size` members takes; none if that is more than any amount of money, or
/// if no group decided.
#[must_use]
pub fn stakes(call: &Call, size: u8) -> Option<Stakes> {
    let agreeing = call.last_round().filter(|round| round.group.is_some())?.agreeing;
    let seat = call.terms.budget.checked_add(call.terms.reveal_fee)?;
    Some(Stakes {
        payment: seat.checked_mul(size.into())?,
        deposit: call.terms.dissent_penalty.checked_mul(agreeing.into())?,
    })
}

/// A failed appeal costs at least so small a part of its deposit.
const FAILURE_PART: u64 = 256;

/// What an appeal costs whose round of `size` members could not be held: the fees of their reveals, or a
/// part of the deposit if that is more. It is no more than the stakes.
#[must_use]
pub fn cost_of_failure(call: &Call, size: u8, deposit: Amount) -> Option<Amount> {
    let part = Amount::new(deposit.get() / FAILURE_PART);
    Some(call.terms.reveal_fee.checked_mul(size.into())?.max(part))
}

#[cfg(test)]
mod tests {
    //! How large a second round is, and what it costs if it cannot be held.

    use types::Amount;

    use super::{cost_of_failure, size};
    use crate::market::scene::{REVEAL_FEE, Scene};

    #[test]
    fn the_second_round_has_twice_as_many_and_one_if_there_are_so_many() {
        assert_eq!(size(3, 7), Some(7));
        assert_eq!(size(3, 300), Some(7));
        assert_eq!(size(15, 31), Some(31));
        assert_eq!(size(1, 3), Some(3));
    }

    #[test]
    fn fewer_make_the_largest_odd_round_above_the_first() {
        assert_eq!(size(5, 10), Some(9));
        assert_eq!(size(5, 9), Some(9));
        assert_eq!(size(5, 8), Some(7));
        assert_eq!(size(5, 7), Some(7));
    }

    #[test]
    fn an_appeal_that_fails_costs_the_fees_of_its_reveals_or_a_part_of_the_deposit() {
        let call = Scene::of(3).call;
        let cost = |deposit| cost_of_failure(&call, 7, Amount::new(deposit)).map(Amount::get);
        assert_eq!(cost(256), Some(7 * REVEAL_FEE));
        assert_eq!(cost(2_560_000), Some(10_000));
    }

    #[test]
    fn there_is_no_second_round_without_more_miners_than_in_the_first() {
        assert_eq!(size(5, 6), None);
        assert_eq!(size(3, 4), None);
        assert_eq!(size(1, 2), None);
        assert_eq!(size(1, 0), None);
    }
}
