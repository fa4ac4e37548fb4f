//! MINER_OFFER: a miner states what it runs and at which prices (docs/protocol.md section 5.20).

use super::declare::declare;
use super::kind::Kind;
use super::spec::{AmountLimit, IntegerLimit, TextLimit};
use super::static_view::StaticView;
use crate::agent::ExecutorId;
use crate::params::OFFER_CAPACITY_MAX;
use crate::{Amount, Offer, Prices, Rejection};

/// Up to the length of the longest executor id.
const EXECUTOR: TextLimit = TextLimit::Bytes { min: 1, max: ExecutorId::TEXT_BYTES_MAX };
/// 0 to 64.
const CAPACITY: IntegerLimit = IntegerLimit::range(0, OFFER_CAPACITY_MAX, "calls");

declare! {
    /// Makes, replaces or withdraws the sender's offer for an executor.
    kind MinerOffer = "MINER_OFFER", section "5.20", fork V8 {
        required {
            /// The id of the executor: `wasm-1`, or `wasm-1:`, `model-1:` or `container:` followed
            /// by 64 lowercase hex characters.
            executor "executor": String, Text(EXECUTOR);
            /// How many calls the sender works on at once, 1 to 64; 0 withdraws the offer.
            capacity "capacity": u64, Integer(CAPACITY);
            /// The lowest fixed price of a call that the sender accepts, independent of the work.
            per_call "perCall": Amount, Amount(AmountLimit::Any);
            /// The lowest price that the sender accepts for a million input tokens.
            prompt_per_m "promptPerM": Amount, Amount(AmountLimit::Any);
            /// The lowest price that the sender accepts for a million output tokens.
            completion_per_m "completionPerM": Amount, Amount(AmountLimit::Any);
            /// The lowest price that the sender accepts for a billion units of fuel.
            fuel_per_g "fuelPerG": Amount, Amount(AmountLimit::Any);
        }
        optional {}
    }
}

impl MinerOffer {
    /// The offer; `None` if the transaction withdraws it.
    #[must_use]
    pub const fn offer(&self) -> Option<Offer> {
        let Self { executor: _, capacity, per_call, prompt_per_m, completion_per_m, fuel_per_g } =
            *self;
        let prices = Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g };
        if capacity > 0 { Some(Offer { capacity, prices }) } else { None }
    }
}

impl Kind for MinerOffer {
    fn check_together(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        match ExecutorId::parse(&self.executor) {
            Ok(_) => Ok(()),
            Err(fault) => Err(Rejection::invalid("executor", fault.got, fault.expected)),
        }
    }
}
