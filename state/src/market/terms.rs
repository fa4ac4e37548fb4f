//! What a call costs and what is at stake in it (docs/protocol.md section 18.2).

use types::call::{CallLimits, CallTerms, Conditional, Consensus};
use types::{Amount, Params, Prices};

/// What an AGENT_CALL asks for, as far as it costs something.
#[derive(Clone, Copy, Debug)]
pub struct AskedCall<'a> {
    /// How many members.
    pub committee_size: u8,
    /// What it pays to each.
    pub prices: &'a Prices,
    /// What the work may take.
    pub limits: &'a CallLimits,
    /// What the agent's owner gets for a success.
    pub royalty: Amount,
    /// Payments that depend on the answer.
    pub on_result: &'a [Conditional],
}

impl AskedCall<'_> {
    /// The price of the work at the limits: what one member can cost. May be more than any amount of money.
    #[must_use]
    pub fn budget(&self) -> u128 {
        self.prices.price(&self.limits.usage)
    }

    /// The least `maxFee`: the royalty, the conditional payments, and for each member the budget and the fee of
    /// its reveal.
    #[must_use]
    pub fn least_fee(&self, params: &Params) -> u128 {
        let seat = self.budget().saturating_add(params.reveal_fee.get().into());
        seat.saturating_mul(self.committee_size.into())
            .saturating_add(self.royalty.get().into())
            .saturating_add(self.conditional())
    }

    /// The most that conditional payments may be together: what those would lose who are needed for a false
    /// decision.
    #[must_use]
    pub fn most_conditional(&self, params: &Params) -> u128 {
        let needed = Consensus::Majority.needed(self.committee_size);
        u128::from(self.dissent_penalty(params).get()).saturating_mul(needed.into())
    }

    /// The sum of the conditional payments.
    #[must_use]
    pub fn conditional(&self) -> u128 {
        self.on_result.iter().map(|it| u128::from(it.amount.get())).fold(0, u128::saturating_add)
    }

    /// The call's own penalty for dissent: *dissentPenalty*, or four times what a member can cost if that is
    /// more.
    fn dissent_penalty(&self, params: &Params) -> Amount {
        let seat = self.budget().saturating_add(params.reveal_fee.get().into());
        let own = u64::try_from(seat.saturating_mul(4)).map_or(Amount::MAX, Amount::new);
        own.max(params.dissent_penalty)
    }

    /// The numbers that hold for the call; none if a member would cost more than any amount of money.
    #[must_use]
    pub fn terms(&self, params: &Params) -> Option<CallTerms> {
        Some(CallTerms {
            budget: u64::try_from(self.budget()).ok().map(Amount::new)?,
            royalty: self.royalty,
            min_bond: params.min_bond,
            dissent_penalty: self.dissent_penalty(params),
            absence_penalty: params.absence_penalty,
            unrevealed_penalty: params.unrevealed_penalty,
            outside_penalty: params.outside_penalty,
            reveal_fee: params.reveal_fee,
            reveal_ms: params.reveal_ms,
            appeal_ms: params.appeal_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    //! What a call must have, and what it puts at stake.

    use types::call::When;
    use types::{Address, Usage};

    use super::*;

    const LIMITS: CallLimits = CallLimits {
        usage: Usage { input_tokens: 1_000, output_tokens: 100, fuel: 10 },
        result_bytes: 100,
    };

    fn prices(per_call: u64) -> Prices {
        let one = Amount::new(1_000_000);
        Prices { per_call: Amount::new(per_call), prompt_per_m: one, ..Prices::default() }
    }

    fn asked<'a>(prices: &'a Prices, on_result: &'a [Conditional]) -> AskedCall<'a> {
        let royalty = Amount::new(7);
        AskedCall { committee_size: 5, prices, limits: &LIMITS, royalty, on_result }
    }

    fn payment(amount: u64) -> Conditional {
        Conditional { when: When::Success, to: Address::new([1; 20]), amount: Amount::new(amount) }
    }

    #[test]
    fn the_escrow_covers_royalty_conditional_payments_and_every_seat_at_the_limits() {
        let (params, prices) = (Params::default(), prices(500));
        let payments = [payment(30), payment(40)];
        let asked = asked(&prices, &payments);
        assert_eq!(asked.budget(), 1_500);
        assert_eq!(asked.least_fee(&params), 7 + 70 + 5 * (1_500 + 200));
        assert_eq!(asked.terms(&params).unwrap().budget, Amount::new(1_500));
    }

    #[test]
    fn dissent_costs_the_parameter_or_four_times_a_seat() {
        let params = Params::default();
        let penalty = |per_call| {
            let prices = prices(per_call);
            asked(&prices, &[]).terms(&params).unwrap().dissent_penalty.get()
        };
        assert_eq!(penalty(0), 1_000_000);
        assert_eq!(penalty(250_000 - 1_000 - 200), 1_000_000);
        assert_eq!(penalty(250_000 - 1_000 - 199), 1_000_004);
        assert_eq!(penalty(1_000_000), 4 * (1_000_000 + 1_000 + 200));
    }

    #[test]
    fn conditional_payments_are_bounded_by_what_a_false_majority_would_lose() {
        let (params, prices) = (Params::default(), prices(0));
        assert_eq!(asked(&prices, &[]).most_conditional(&params), 3 * 1_000_000);
        assert_eq!(asked(&prices, &[payment(3), payment(4)]).conditional(), 7);
    }

    #[test]
    fn what_costs_more_than_all_money_has_no_terms_and_needs_more_than_any_fee() {
        let most = Amount::MAX;
        let prices =
            Prices { per_call: most, prompt_per_m: most, completion_per_m: most, fuel_per_g: most };
        let params = Params::default();
        let payments = [payment(u64::MAX); 4];
        let asked = asked(&prices, &payments);
        assert!(asked.least_fee(&params) > u128::from(u64::MAX));
        assert_eq!(asked.terms(&params), None);
        let one = Prices { per_call: most, ..Prices::default() };
        let terms = AskedCall { prices: &one, ..asked }.terms(&params).unwrap();
        assert_eq!(terms.dissent_penalty, most, "nobody has such a bond");
    }
}
