//! MINER_OFFER: a miner says what it runs and for what prices (docs/protocol.md section 5.20).

use super::declare::declare;
use super::spec::{AmountLimit, IntegerLimit, TextLimit};
use super::{Kind, StaticView};
use crate::agent::ExecutorId;
use crate::params::OFFER_CAPACITY_MAX;
use crate::{Amount, Offer, Prices, Rejection};

/// As long as the id of an executor may be.
const EXECUTOR: TextLimit = TextLimit::Bytes { min: 1, max: ExecutorId::TEXT_BYTES_MAX };
/// 0 to 64.
const CAPACITY: IntegerLimit = IntegerLimit::range(0, OFFER_CAPACITY_MAX, "calls");

declare! {
    /// Makes or replaces the sender's offer for an executor, or takes it back.
    kind MinerOffer = "MINER_OFFER", section "5.20", fork V8 {
        required {
            /// For which executor: `wasm-1`, or `wasm-1:`, `model-1:` or `container:` and 64 hex
            /// characters.
            executor "executor": String, Text(EXECUTOR);
            /// At how many calls at once the sender works, 1 to 64; 0 takes the offer back.
            capacity "capacity": u64, Integer(CAPACITY);
            /// The least for a call, whatever it takes.
            per_call "perCall": Amount, Amount(AmountLimit::Any);
            /// The least for a million tokens that are read.
            prompt_per_m "promptPerM": Amount, Amount(AmountLimit::Any);
            /// The least for a million tokens that are written.
            completion_per_m "completionPerM": Amount, Amount(AmountLimit::Any);
            /// The least for a billion units of fuel.
            fuel_per_g "fuelPerG": Amount, Amount(AmountLimit::Any);
        }
        optional {}
    }
}

impl MinerOffer {
    /// What is offered; none if the offer is taken back.
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
