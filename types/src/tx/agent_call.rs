//! AGENT_CALL: request an agent's answer from a committee of miners (docs/protocol.md section
//! 5.21).

use super::declare::{Members, declare};
use super::kind::{Kind, Subject};
use super::spec::{AmountLimit, IntegerLimit, ListLimit, TextLimit};
use super::static_view::StaticView;
use super::value::{HexBytes, WrittenAddress};
use crate::call::{
    CALLDATA_BYTES_MAX, COMMITTEE_MAX, CallLimits, Conditional, Consensus, ON_RESULT_MAX, When,
};
use crate::{Amount, Hash, Prices, Rejection, Usage};

/// 1 to 64 bytes, the limit of versions in metadata.
const VERSION: TextLimit = TextLimit::Bytes { min: 1, max: 64 };
/// `success`, or `result:` and a hash.
const WHEN: TextLimit = TextLimit::Bytes { min: 7, max: 71 };
const SIZE: IntegerLimit = IntegerLimit::range(1, 15, "members");
/// How long members may take to commit: ten seconds to ten minutes.
const TIMEOUT: IntegerLimit = IntegerLimit::range(10_000, 600_000, "ms");

declare! {
    /// Requests an agent's answer from a committee of miners and puts `maxFee` into escrow.
    kind AgentCall = "AGENT_CALL", section "5.21", fork V8 {
        required {
            /// The call's id, computed from the chain id, the sender and the nonce.
            call_id "callId": Hash, Hash, filled Computed;
            /// The id of the agent.
            agent_id "agentId": Hash, Hash;
            /// The version of the agent.
            agent_version "agentVersion": String, Text(VERSION);
            /// The method's selector followed by the encoded arguments, in lowercase hex with `0x`;
            /// at most 16,384 bytes.
            payload "payload": HexBytes, Hex(CALLDATA_BYTES_MAX);
            /// How the committee decides: by `majority`, or by a `threshold` of members.
            consensus "consensus": String, Text(TextLimit::OneOf(Consensus::WORDS));
            /// The number of committee members: an odd number from 1 to 15.
            committee_size "committeeSize": u64, Integer(SIZE);
            /// The prices at which the call pays each member.
            prices "prices": CallPrices, Object(CallPrices::FIELDS);
            /// The limits on the work of each member.
            limits "limits": WorkLimits, Object(WorkLimits::FIELDS);
            /// The escrow: the most that the call can cost the sender.
            max_fee "maxFee": Amount, Amount(AmountLimit::Any);
            /// How long members have to commit, in milliseconds: 10,000 to 600,000.
            timeout_ms "timeoutMs": u64, Integer(TIMEOUT);
        }
        optional {
            /// The number of members that must agree, 1 to `committeeSize`. Required with the
            /// consensus `threshold`; not allowed with `majority`.
            threshold "threshold": u64, Integer(SIZE);
            /// Whether the decision can be appealed. False if absent.
            appealable "appealable": bool, Boolean;
            /// Payments to others that depend on the result, at most 4.
            on_result "onResult": Vec<OnResult>, Objects(ON_RESULT);
            /// The id of the conversation that the call belongs to.
            conversation_id "conversationId": Hash, Hash;
        }
    }
}

const ON_RESULT: ListLimit = ListLimit { members: OnResult::FIELDS, max: ON_RESULT_MAX };

declare! {
    /// The prices that a call pays.
    object CallPrices {
        required {
            /// The fixed price of a call, independent of the work.
            per_call "perCall": Amount, Amount(AmountLimit::Any);
            /// The price of a million input tokens.
            prompt_per_m "promptPerM": Amount, Amount(AmountLimit::Any);
            /// The price of a million output tokens.
            completion_per_m "completionPerM": Amount, Amount(AmountLimit::Any);
            /// The price of a billion units of fuel.
            fuel_per_g "fuelPerG": Amount, Amount(AmountLimit::Any);
        }
        optional {}
    }
}

declare! {
    /// Limits on the work that one member does for a call, including nested agents.
    object WorkLimits {
        required {
            /// The maximum number of input tokens.
            input_tokens "inputTokens": u64, Integer(IntegerLimit::any("tokens"));
            /// The maximum number of output tokens.
            output_tokens "outputTokens": u64, Integer(IntegerLimit::any("tokens"));
            /// The maximum number of units of fuel.
            fuel "fuel": u64, Integer(IntegerLimit::any("units"));
            /// The maximum size of the result in bytes.
            result_bytes "resultBytes": u64, Integer(IntegerLimit::any("bytes"));
        }
        optional {}
    }
}

declare! {
    /// A payment that depends on the result.
    object OnResult {
        required {
            /// The condition: `success`, or `result:` followed by the hash of a result.
            when "when": String, Text(WHEN);
            /// The recipient.
            to "to": WrittenAddress, Address;
            /// The amount to pay.
            amount "amount": Amount, Amount(AmountLimit::Any);
        }
        optional {}
    }
}

impl From<&CallPrices> for Prices {
    fn from(prices: &CallPrices) -> Self {
        let CallPrices { per_call, prompt_per_m, completion_per_m, fuel_per_g } = *prices;
        Self { per_call, prompt_per_m, completion_per_m, fuel_per_g }
    }
}

impl From<&WorkLimits> for CallLimits {
    fn from(limits: &WorkLimits) -> Self {
        let WorkLimits { input_tokens, output_tokens, fuel, result_bytes } = *limits;
        Self { usage: Usage { input_tokens, output_tokens, fuel }, result_bytes }
    }
}

impl AgentCall {
    /// How the committee decides; `None` for values that [`crate::check::verify`] rejects.
    #[must_use]
    pub fn rule(&self) -> Option<Consensus> {
        match (self.consensus.as_str(), self.threshold) {
            ("majority", None) => Some(Consensus::Majority),
            ("threshold", Some(needed)) => u8::try_from(needed).ok().map(Consensus::Threshold),
            _ => None,
        }
    }

    /// The number of committee members.
    #[must_use]
    pub fn size(&self) -> u8 {
        u8::try_from(self.committee_size).unwrap_or(COMMITTEE_MAX)
    }

    /// Whether the decision can be appealed.
    #[must_use]
    pub fn is_appealable(&self) -> bool {
        self.appealable.unwrap_or(false)
    }

    /// The conditional payments, without those whose condition cannot be parsed.
    #[must_use]
    pub fn conditional(&self) -> Vec<Conditional> {
        let read = |it: &OnResult| {
            Some(Conditional { when: When::parse(&it.when)?, to: it.to.address, amount: it.amount })
        };
        self.on_result.iter().flatten().filter_map(read).collect()
    }

    fn check_threshold(&self) -> Result<(), Rejection> {
        let is_majority = self.consensus == "majority";
        match self.threshold {
            None if is_majority => return Ok(()),
            Some(threshold) if is_majority => {
                let expected = "no threshold with the consensus majority";
                return Err(Rejection::invalid("threshold", threshold, expected));
            }
            None => {
                let expected = format_args!("1 to {}", self.committee_size);
                return Err(Rejection::invalid("threshold", "missing", expected));
            }
            Some(threshold) if threshold > self.committee_size => {
                let expected = format_args!("1 to {}", self.committee_size);
                return Err(Rejection::invalid("threshold", threshold, expected));
            }
            Some(_) => {}
        }
        let CallPrices { per_call: _, prompt_per_m, completion_per_m, fuel_per_g } = self.prices;
        let unproved = [
            ("prices.promptPerM", prompt_per_m),
            ("prices.completionPerM", completion_per_m),
            ("prices.fuelPerG", fuel_per_g),
        ];
        for (name, price) in unproved {
            if !price.is_zero() {
                let expected = "0: with the consensus threshold usage is unproved";
                return Err(Rejection::invalid(name, price, expected));
            }
        }
        if self.is_appealable() {
            let expected = "no appeal with the consensus threshold";
            return Err(Rejection::invalid("appealable", true, expected));
        }
        Ok(())
    }

    fn check_on_result(&self) -> Result<(), Rejection> {
        let payments = self.on_result.as_deref().unwrap_or_default();
        if payments.is_empty() {
            return Ok(());
        }
        let is_safe = self.is_appealable() && self.committee_size >= 3;
        if !is_safe {
            let got = format_args!("{} entries", payments.len());
            let expected =
                "none but with the consensus majority, appealable, and 3 members or more";
            return Err(Rejection::invalid("onResult", got, expected));
        }
        for (index, payment) in payments.iter().enumerate() {
            if When::parse(&payment.when).is_none() {
                let place = format!("onResult[{index}].when");
                let got = format_args!("{:?}", payment.when);
                return Err(Rejection::invalid(place, got, When::EXPECTED));
            }
        }
        Ok(())
    }
}

impl Kind for AgentCall {
    fn check_together(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        if self.committee_size.is_multiple_of(2) {
            let expected = "an odd number";
            return Err(Rejection::invalid("committeeSize", self.committee_size, expected));
        }
        self.check_threshold()?;
        self.check_on_result()
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Agent(self.agent_id))
    }
}
