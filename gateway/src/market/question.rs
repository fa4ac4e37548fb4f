//! A call before it is asked: its payload, its prices, and what it holds.

use std::sync::Arc;

use serde_json::{Value, json};
use types::abi::Method;
use types::call::{COMMITTEE_MAX, Consensus};
use types::tx::{AgentCall, HexBytes};
use types::{Amount, Hash};
use wallet::calls::{Terms, amount_of, usual_consensus};

use super::Published;
use crate::openai::ApiFault;
use crate::question::{FEE_MARGIN, Prices};
use crate::record::Called;

/// How many members answer unless a number is named.
pub(crate) const COMMITTEE_DEFAULT: u64 = 3;
/// How long members have to commit unless a time is named, milliseconds; and what may be named
/// (docs/protocol.md section 5.21).
pub(crate) const TIMEOUT_MS_DEFAULT: u64 = 60_000;
const TIMEOUT_MS: (u64, u64) = (10_000, 600_000);
/// More than the members of an AGENT_CALL take beside its payload.
const TX_BYTES: u64 = 2_048;

/// What a client asks of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskedCall {
    /// The agent.
    pub(crate) agent: Hash,
    /// The version of it.
    pub(crate) version: String,
    /// The name of the method, or its canonical signature.
    pub(crate) method: String,
    /// The arguments as JSON: an object by name or an array by position.
    pub(crate) arguments: String,
    /// How many members answer.
    pub(crate) committee: u64,
    /// How long members have to commit, milliseconds.
    pub(crate) timeout_ms: u64,
    /// The most that it may cost, micro-OMBRA, where the client says it.
    pub(crate) cost_micro_max: Option<u64>,
}

/// A call that is ready to be priced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    published: Arc<Published>,
    method: Method,
    payload: Vec<u8>,
    committee: u8,
    consensus: Consensus,
    timeout_ms: u64,
    cost_micro_max: Option<u64>,
}

/// A call that is ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallQuestion {
    draft: Draft,
    terms: Terms,
    /// The escrow, micro-OMBRA.
    pub max_fee_micro: u64,
}

impl AskedCall {
    /// SHA-256 of all of it, by which a repetition is known; no body of another request has it.
    pub(crate) fn digest(&self) -> Hash {
        let Self { agent, version, method, arguments, committee, timeout_ms, cost_micro_max } =
            self;
        let named = json!([
            "call",
            agent,
            version,
            method,
            arguments,
            committee,
            timeout_ms,
            cost_micro_max
        ]);
        Hash::digest(named.to_string().as_bytes())
    }

    /// The call, if the method and its arguments are those of the agent. A fault names a parameter as
    /// the interfaces have it.
    ///
    /// # Errors
    /// What was expected.
    pub(crate) fn draft(&self, published: Arc<Published>) -> Result<Draft, ApiFault> {
        let method = published.method(&self.method).map_err(|expected| {
            let got = crate::openai::short(&self.method);
            ApiFault::no_such_method(&format!("method: {expected}, got {got:?}"))
        })?;
        let payload = method.encode_arguments(&self.arguments).map_err(|wrong| {
            ApiFault::parameter(format!("arguments{}", wrong.place), format!("arguments{wrong}"))
        })?;
        let odd = u8::try_from(self.committee).ok();
        let odd = odd.filter(|it| *it <= COMMITTEE_MAX && !it.is_multiple_of(2));
        let committee = odd.ok_or_else(|| {
            let got = self.committee;
            let message =
                format!("committee: expected an odd number from 1 to {COMMITTEE_MAX}, got {got}");
            ApiFault::parameter("committee", message)
        })?;
        let (least, most) = TIMEOUT_MS;
        if !(least..=most).contains(&self.timeout_ms) {
            let got = self.timeout_ms;
            let message = format!("timeout_ms: expected {least} to {most}, got {got}");
            return Err(ApiFault::parameter("timeout_ms", message));
        }
        Ok(Draft {
            method: method.clone(),
            payload,
            committee,
            consensus: usual_consensus(committee, published.is_deterministic),
            timeout_ms: self.timeout_ms,
            cost_micro_max: self.cost_micro_max,
            published,
        })
    }
}

impl Draft {
    /// What is asked of `ombra_estimateCall`.
    pub(crate) fn estimate(&self) -> Value {
        let mut question = json!({
            "agentId": self.published.agent.id,
            "version": self.published.version,
            "committeeSize": self.committee,
            "payload": HexBytes(self.payload.clone()).to_string(),
        });
        if let Consensus::Threshold(needed) = self.consensus {
            question["threshold"] = json!(needed);
        }
        question
    }

    /// The name by which keys allow the agent.
    pub(crate) fn model(&self) -> String {
        self.published.model()
    }

    /// What the record has of it.
    pub(crate) fn called(&self) -> Called {
        Called {
            agent: self.published.agent.id,
            version: self.published.version.clone(),
            method: self.method.signature(),
            committee: self.committee,
        }
    }

    /// The call with the prices that enough miners accept.
    ///
    /// # Errors
    /// When too few miners can be drawn, the call may cost more than `most_micro` or than the client
    /// allows, or the node's estimate cannot be used.
    pub(crate) fn priced(
        self,
        estimate: &Value,
        prices: Prices,
        most_micro: u64,
    ) -> Result<CallQuestion, ApiFault> {
        let strange = |error: wallet::calls::TermsError| ApiFault::node_away(&error.to_string());
        let terms = Terms::suggested(estimate).map_err(strange)?;
        let max_fee = amount_of(estimate, "maxFee").map_err(strange)?;
        if estimate["enough"] != true {
            let [eligible, needed] = ["eligible", "needed"].map(|name| &estimate[name]);
            return Err(ApiFault::no_committee(&format!(
                "{needed} miners are needed, but only {eligible} can be drawn at the prices that \
                 miners ask for"
            )));
        }
        let question = CallQuestion { draft: self, terms, max_fee_micro: max_fee.get() };
        let micro = question.micro(prices);
        match question.draft.cost_micro_max {
            Some(most) if micro > most => {
                let message = format!(
                    "max_cost_micro: the call may cost up to {micro} micro-OMBRA, but only {most} \
                     are allowed"
                );
                Err(ApiFault::parameter("max_cost_micro", message))
            }
            _ if micro > most_micro => Err(ApiFault::too_dear(micro, most_micro)),
            Some(_) | None => Ok(question),
        }
    }
}

impl CallQuestion {
    /// The most that its place in a block burns, micro-OMBRA.
    #[must_use]
    pub fn fees_micro(&self, prices: Prices) -> u64 {
        // In hex.
        let payload = u64::try_from(self.draft.payload.len()).unwrap_or(u64::MAX).saturating_mul(2);
        let bytes = payload.saturating_add(TX_BYTES);
        let place_micro = bytes.saturating_mul(prices.base_fee_micro).div_ceil(1_024);
        place_micro.saturating_mul(FEE_MARGIN)
    }

    /// The most that it costs altogether, micro-OMBRA.
    #[must_use]
    pub fn micro(&self, prices: Prices) -> u64 {
        self.max_fee_micro.saturating_add(self.fees_micro(prices))
    }

    /// The name by which keys allow the agent.
    #[must_use]
    pub fn model(&self) -> String {
        self.draft.model()
    }

    /// What the record has of it.
    #[must_use]
    pub fn called(&self) -> Called {
        self.draft.called()
    }

    /// The transaction's body, with the call's id.
    #[must_use]
    pub fn body(&self, call_id: Hash) -> AgentCall {
        let Draft { published, payload, committee, consensus, timeout_ms, .. } = &self.draft;
        AgentCall {
            call_id,
            agent_id: published.agent.id,
            agent_version: published.version.clone(),
            payload: HexBytes(payload.clone()),
            consensus: consensus.as_str().to_owned(),
            committee_size: u64::from(*committee),
            prices: self.terms.prices(),
            limits: self.terms.limits(),
            max_fee: Amount::new(self.max_fee_micro),
            timeout_ms: *timeout_ms,
            threshold: match consensus {
                Consensus::Majority => None,
                Consensus::Threshold(needed) => Some(u64::from(*needed)),
            },
            appealable: None,
            on_result: None,
            conversation_id: None,
        }
    }
}

#[cfg(test)]
mod tests {
    //! What a call asks and costs.

    use std::sync::Arc;

    use serde_json::{Value, json};
    use types::Hash;

    use super::super::agent::tests::published;
    use super::{AskedCall, COMMITTEE_DEFAULT, Draft, TIMEOUT_MS_DEFAULT};
    use crate::openai::ApiFault;
    use crate::question::Prices;

    const PRICES: Prices = Prices {
        base_fee_micro: 1_024,
        blob_init_micro: 0,
        blob_chunk_micro: 0,
        max_fee_micro_min: 100,
    };

    fn asked(arguments: &str) -> AskedCall {
        AskedCall {
            agent: Hash::digest(b"agent"),
            version: "1.0.0".to_owned(),
            method: "judge".to_owned(),
            arguments: arguments.to_owned(),
            committee: COMMITTEE_DEFAULT,
            timeout_ms: TIMEOUT_MS_DEFAULT,
            cost_micro_max: None,
        }
    }

    fn draft(asked: &AskedCall) -> Result<Draft, ApiFault> {
        asked.draft(Arc::new(published(true)))
    }

    fn good() -> AskedCall {
        asked(r#"{"review":"Fine.","stars":4}"#)
    }

    fn estimate() -> Value {
        json!({
            "prices": {"perCall": "100", "promptPerM": "0", "completionPerM": "0", "fuelPerG": "0"},
            "limits": {"inputTokens": 500, "outputTokens": 16, "fuel": 0, "resultBytes": 640},
            "maxFee": "5000", "floor": "4000", "eligible": 4, "needed": 3, "enough": true,
        })
    }

    #[test]
    fn a_call_is_asked_at_the_prices_that_miners_accept() {
        let call = draft(&good()).unwrap().priced(&estimate(), PRICES, 1_000_000).unwrap();
        let body = call.body(Hash::ZERO);
        let found = (call.max_fee_micro, body.consensus.as_str(), body.committee_size);
        assert_eq!((5_000, "majority", 3), found);
        assert_eq!(100, body.prices.per_call.get());
        // Selector, two heads, a length and a word: 132 bytes; in hex, with the rest, 4 times the price.
        assert_eq!(4 * (2 * 132 + 2_048), call.fees_micro(PRICES));
        let other = good().draft(Arc::new(published(false))).unwrap();
        let body = other.priced(&estimate(), PRICES, 1_000_000).unwrap().body(Hash::ZERO);
        assert_eq!(("threshold", Some(2)), (body.consensus.as_str(), body.threshold));
    }

    #[test]
    fn what_cannot_be_called_is_named_by_its_parameter() {
        let said = |asked: &AskedCall| draft(asked).unwrap_err();
        let fault = said(&asked(r#"{"review":"Fine.","stars":256}"#));
        assert_eq!(Some("arguments/stars"), fault.param.as_deref(), "{}", fault.message);
        let fault = said(&asked(r#"["Fine."]"#));
        assert!(fault.message.starts_with("arguments"), "{}", fault.message);
        for (committee, fits) in [(1, true), (15, true), (0, false), (2, false), (17, false)] {
            let asked = AskedCall { committee, ..good() };
            assert_eq!(fits, draft(&asked).is_ok(), "{committee}");
        }
        let fault = said(&AskedCall { timeout_ms: 9_999, ..good() });
        assert_eq!(Some("timeout_ms"), fault.param.as_deref());
        let fault = said(&AskedCall { method: "jury".to_owned(), ..good() });
        assert_eq!((404, "method_not_found"), (fault.status, fault.code));
    }

    #[test]
    fn a_call_that_nobody_would_answer_or_that_is_too_dear_is_not_asked() {
        let mut few = estimate();
        few["eligible"] = json!(2);
        few["enough"] = json!(false);
        let fault = draft(&good()).unwrap().priced(&few, PRICES, 1_000_000).unwrap_err();
        assert_eq!((503, "no_miner"), (fault.status, fault.code));
        let why = "3 miners are needed, but only 2 can be drawn";
        assert!(fault.message.contains(why), "{}", fault.message);
        let asked = AskedCall { cost_micro_max: Some(5_000), ..good() };
        let fault = draft(&asked).unwrap().priced(&estimate(), PRICES, 1_000_000).unwrap_err();
        assert_eq!(Some("max_cost_micro"), fault.param.as_deref());
        let fault = draft(&good()).unwrap().priced(&estimate(), PRICES, 5_000).unwrap_err();
        assert_eq!((429, "insufficient_quota"), (fault.status, fault.code), "{}", fault.message);
        assert!(draft(&asked).unwrap().priced(&estimate(), Prices::default(), 5_000).is_ok());
    }
}
