//! A call as the chain has it: how far it is, and, once it is settled, its answer and its bill.

use agent::executor::values;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use types::abi::Method;
use types::{Address, Amount, Hash};

use crate::openai::ApiFault;
use crate::record::{Bill, Called, Record};

/// What `ombra_getCall` tells, as far as it matters here.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallState {
    pub(crate) call_id: Hash,
    /// `electing`, `committing`, `revealing`, `success`, `failed`, `timedOut` or `unassigned`.
    pub(crate) status: String,
    pub(crate) settled: bool,
    pub(crate) max_fee: Amount,
    committee_size: u64,
    threshold: Option<u64>,
    agreeing: Option<u64>,
    bond_behind: Option<Amount>,
    #[serde(default)]
    rounds: Vec<Round>,
    answer: Option<Answer>,
    #[serde(default)]
    answers: Vec<MemberAnswer>,
    wages: Option<Amount>,
    royalty_paid: Option<Amount>,
    refund: Option<Amount>,
}

#[derive(Clone, Debug, Deserialize)]
struct Round {
    elected: u64,
    committed: u64,
    revealed: u64,
    #[serde(default)]
    members: Vec<Member>,
}

#[derive(Clone, Debug, Deserialize)]
struct Member {
    agreed: Option<bool>,
    reveal: Option<Reveal>,
}

#[derive(Clone, Debug, Deserialize)]
struct Reveal {
    reason: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    result: Option<String>,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    fuel: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct MemberAnswer {
    member: Address,
    #[serde(flatten)]
    answer: Answer,
}

/// What became of the money of a call that is settled, micro-OMBRA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    /// What members and the agent's owner got.
    pub(crate) paid_micro: u64,
    /// What was burned of the escrow.
    pub(crate) burned_micro: u64,
}

impl Closed {
    /// All that the call cost.
    pub(crate) const fn cost_micro(self) -> u64 {
        self.paid_micro.saturating_add(self.burned_micro)
    }
}

impl CallState {
    /// What became of its money; none while it is not settled.
    pub(crate) fn closed(&self) -> Option<Closed> {
        let refund = self.refund.filter(|_| self.settled)?;
        let cost_micro = self.max_fee.get().saturating_sub(refund.get());
        let got = [self.wages, self.royalty_paid].map(|it| it.unwrap_or_default().get());
        let paid_micro = got.into_iter().fold(0, u64::saturating_add).min(cost_micro);
        Some(Closed { paid_micro, burned_micro: cost_micro.saturating_sub(paid_micro) })
    }

    /// How many members have answered.
    pub(crate) fn revealed(&self) -> u64 {
        self.rounds.last().map_or(0, |round| round.revealed)
    }

    /// Whether results are told, if it has any. Of many large ones a node leaves some out.
    pub(crate) fn is_whole(&self) -> bool {
        let members = self.answers.iter().map(|it| &it.answer);
        let has_result = self.answer.iter().chain(members).any(|it| it.result.is_some());
        self.status != "success" || has_result
    }

    /// Why there is no answer, as far as members said it.
    pub(crate) fn why(&self) -> String {
        let Some(round) = self.rounds.last() else {
            return format!("it ended with {} before it had a committee", self.status);
        };
        let reasons = |wanted: fn(&&Member) -> bool| {
            let reveals = round.members.iter().filter(wanted).filter_map(|it| it.reveal.as_ref());
            reveals.filter_map(|reveal| reveal.reason.as_deref()).next()
        };
        let Round { elected, committed, revealed, .. } = round;
        if let Some(reason) = reasons(|it| it.agreed == Some(true)) {
            return format!("the agent failed: {}", crate::openai::short(reason));
        }
        let counted = format!(
            "of {elected} members {committed} committed to an answer and {revealed} revealed it"
        );
        match (self.agreeing, reasons(|_| true)) {
            (Some(_), _) => "the agent failed".to_owned(),
            (None, Some(reason)) => {
                let reason = crate::openai::short(reason);
                format!("{counted}, and too few agree; one says: {reason}")
            }
            (None, None) => format!("{counted}, and too few agree"),
        }
    }
}

/// A call that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAnswer(pub Value);

impl CallAnswer {
    /// The answer of a call that was paid for.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn new(
        (record, bill): (&Record, &Bill),
        called: &Called,
        method: &Method,
        state: &CallState,
    ) -> Result<Self, ApiFault> {
        if state.status != "success" {
            return Err(ApiFault::call_failed_paid(&state.why()));
        }
        let Called { agent, version, .. } = called;
        let mut told = json!({
            "id": format!("call-{}", state.call_id),
            "object": "agent.call",
            "created": record.created_ms / 1_000,
            "agent": format!("agent:{agent}@{version}"),
            "method": called.method,
        });
        if let Some(answer) = &state.answer {
            told["answer"] =
                decoded(method, answer).map_err(|why| ApiFault::call_failed_paid(&why))?;
        }
        if !state.answers.is_empty() {
            let one = |it: &MemberAnswer| match decoded(method, &it.answer) {
                Ok(answer) => json!({ "member": it.member, "answer": answer }),
                Err(why) => json!({ "member": it.member, "error": why }),
            };
            told["answers"] = state.answers.iter().map(one).collect();
        }
        told["committee"] = committee(state);
        told["usage"] = usage(state, bill);
        told["ombra"] = ombra(record, bill);
        Ok(Self(told))
    }
}

/// Who answered, and how many say the same.
fn committee(state: &CallState) -> Value {
    let mut committee = json!({
        "size": state.committee_size,
        "agreeing": state.agreeing,
        "consensus": if state.threshold.is_some() { "threshold" } else { "majority" },
        "bond_behind_micro": state.bond_behind.map(Amount::get),
    });
    if let Some(threshold) = state.threshold {
        committee["threshold"] = json!(threshold);
    }
    committee
}

/// The work that was agreed on; of members whose work nobody compares, none is known.
fn usage(state: &CallState, bill: &Bill) -> Value {
    let mut usage = Map::new();
    if let Some(Answer { input_tokens, output_tokens, fuel, .. }) = &state.answer {
        usage.insert("prompt_tokens".to_owned(), json!(input_tokens));
        usage.insert("completion_tokens".to_owned(), json!(output_tokens));
        usage.insert("total_tokens".to_owned(), json!(input_tokens.saturating_add(*output_tokens)));
        usage.insert("fuel".to_owned(), json!(fuel));
    }
    usage.insert("cost_micro".to_owned(), json!(bill.cost_micro()));
    Value::Object(usage)
}

/// Where it is on the chain, and what was paid for it.
fn ombra(record: &Record, bill: &Bill) -> Value {
    json!({
        "callId": bill.run,
        "requestTx": record.request_tx(),
        "block": bill.block,
        "status": bill.status,
        "rewardMicro": bill.reward_micro,
        "networkFeeMicro": bill.network_fee_micro,
        "inclusionFeesMicro": bill.fees_micro,
    })
}

/// The outputs by their names.
fn decoded(method: &Method, answer: &Answer) -> Result<Value, String> {
    let bytes = answer.result.as_deref().and_then(|text| const_hex::decode(text).ok());
    let bytes = bytes.ok_or("the node does not have its result")?;
    let read = method.decode_answer(&bytes);
    let read =
        read.map_err(|error| format!("its result is not an answer of the method: {error}"))?;
    Ok(values::by_name(&method.outputs, values::of(&read)))
}

#[cfg(test)]
mod tests {
    //! What is told of a call.

    use serde_json::{Value, json};
    use types::Hash;

    use super::super::agent::tests::published;
    use super::{CallAnswer, CallState, Closed};
    use crate::openai::ApiFault;
    use crate::record::{Bill, Called, Phase, Record, Work};
    use crate::testing;

    fn settled(status: &str) -> Value {
        let method = published(true).method("judge").unwrap().clone();
        let result = method.encode_answer(r#"["good", -7]"#).unwrap();
        json!({
            "callId": Hash::ZERO, "status": status, "settled": true, "maxFee": "5000",
            "committeeSize": 3, "agreeing": 2, "bondBehind": "20000000",
            "rounds": [{ "elected": 3, "committed": 3, "revealed": 3, "members": [
                { "agreed": false, "reveal": { "reason": "not this" } },
                { "agreed": true, "reveal": { "reason": "the review is empty" } },
            ]}],
            "answer": { "outcome": "success", "result": const_hex::encode_prefixed(result),
                "inputTokens": 40, "outputTokens": 2, "fuel": 0 },
            "wages": "2020", "royaltyPaid": "7", "refund": "2373",
        })
    }

    fn state(value: Value) -> CallState {
        serde_json::from_value(value).unwrap()
    }

    fn answered(state: &CallState) -> Result<Value, ApiFault> {
        let published = published(true);
        let method = published.method("judge").map_err(|it| ApiFault::no_such_method(&it))?;
        let called = Called {
            agent: Hash::digest(b"agent"),
            version: "1.0.0".to_owned(),
            method: "judge(string,uint8)".to_owned(),
            committee: 3,
        };
        let Closed { paid_micro, burned_micro } = state.closed().unwrap();
        let bill = Bill {
            status: state.status.clone(),
            reward_micro: paid_micro,
            network_fee_micro: burned_micro,
            block: Some(9),
            ..testing::bill(state.call_id)
        };
        let work = Work::Call(called.clone());
        let record = Record { work, ..testing::record(Phase::Settled(bill.clone())) };
        CallAnswer::new((&record, &bill), &called, method, state).map(|answer| answer.0)
    }

    #[test]
    fn a_call_is_told_with_its_answer_its_committee_and_its_bill() {
        let state = state(settled("success"));
        assert_eq!(Some(Closed { paid_micro: 2_027, burned_micro: 600 }), state.closed());
        let told = answered(&state).unwrap();
        assert_eq!(json!({ "verdict": "good", "arg1": "-7" }), told["answer"]);
        let (committee, usage) = (&told["committee"], &told["usage"]);
        assert_eq!((&json!(3), &json!(2)), (&committee["size"], &committee["agreeing"]));
        assert_eq!((&json!(42), &json!(2_657)), (&usage["total_tokens"], &usage["cost_micro"]));
        assert_eq!(json!(9), told["ombra"]["block"]);
    }

    #[test]
    fn answers_that_nobody_compares_are_told_by_member() {
        let mut told = settled("success");
        let answer = told["answer"].take();
        told.as_object_mut().unwrap().remove("answer");
        let member = "11".repeat(20);
        told["answers"] = json!([{ "member": member, "result": answer["result"] },
            { "member": member, "result": "0x00" }]);
        told["threshold"] = json!(2);
        let told = answered(&state(told)).unwrap();
        assert_eq!(json!("good"), told["answers"][0]["answer"]["verdict"]);
        let error = told["answers"][1]["error"].as_str().unwrap();
        assert!(error.contains("not an answer of the method"), "{error}");
        assert_eq!("threshold", told["committee"]["consensus"]);
        assert_eq!(Value::Null, told["usage"]["fuel"]);
    }

    #[test]
    fn a_call_without_an_answer_says_why() {
        let fault = answered(&state(settled("failed"))).unwrap_err();
        let ApiFault { status, code, should_retry, message, .. } = fault;
        assert_eq!((502, "call_failed_paid", Some(false)), (status, code, should_retry));
        assert!(message.ends_with("the agent failed: the review is empty"), "{message}");
        let mut split = settled("failed");
        split.as_object_mut().unwrap().remove("agreeing");
        split["rounds"][0]["members"] = json!([{ "reveal": { "reason": "out of time" } }]);
        split["rounds"][0]["revealed"] = json!(1);
        let message = answered(&state(split)).unwrap_err().message;
        let counted = "of 3 members 3 committed to an answer and 1 revealed it, and too few agree; one says: \
                       out of time";
        assert!(message.ends_with(counted), "{message}");
        let mut garbled = settled("success");
        garbled["answer"]["result"] = json!("0x00");
        assert_eq!("call_failed_paid", answered(&state(garbled)).unwrap_err().code);
    }

    #[test]
    fn a_call_is_whole_once_its_results_are_told() {
        let mut told = settled("success");
        assert!(state(told.clone()).is_whole());
        told["answer"].as_object_mut().unwrap().remove("result");
        assert!(!state(told.clone()).is_whole());
        let member = "11".repeat(20);
        told["answers"] = json!([{ "member": member }, { "member": member }]);
        assert!(!state(told.clone()).is_whole());
        told["answers"][1]["result"] = json!("0x00");
        assert!(state(told.clone()).is_whole(), "a node leaves some of many large results out");
        told["answers"] = json!([]);
        told["status"] = json!("failed");
        assert!(state(told).is_whole());
    }

    #[test]
    fn the_bill_of_a_call_that_goes_on_is_not_known() {
        let mut open = settled("success");
        open["settled"] = json!(false);
        assert_eq!(None, state(open).closed());
    }
}
