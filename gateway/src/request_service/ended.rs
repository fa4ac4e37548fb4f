//! How a request ended, as a client is told it: from its record and the chain, whenever it is asked.

use serde_json::{Value, json};
use wallet::client::records::Run;

use crate::market::CallAnswer;
use crate::openai::{ApiFault, Completion, Reply, Spent};
use crate::record::{Bill, Phase, Record, Unpaid};

/// How a request ended.
pub type Ended = Result<Answered, ApiFault>;

/// A request that was answered.
#[derive(Clone, Debug)]
pub enum Answered {
    /// By a miner.
    Chat(Box<Completion>),
    /// By a committee.
    Call(CallAnswer),
}

impl Answered {
    /// The answer as the interface has it.
    #[must_use]
    pub fn json(&self) -> Value {
        match self {
            Self::Chat(completion) => crate::openai::completion(completion),
            Self::Call(CallAnswer(value)) => value.clone(),
        }
    }
}

/// The id of the answer to a request.
pub(crate) fn completion_id(record: &Record) -> String {
    record.run().map_or_else(|| "chatcmpl-ombra".to_owned(), |run| format!("chatcmpl-{run}"))
}

/// What a client is told of a request that is over; none if it is not. `run` and `answer` are what the
/// chain has of it.
pub(super) fn ended(record: &Record, run: Option<&Run>, answer: Option<&str>) -> Option<Ended> {
    match &record.phase {
        Phase::Settled(bill) => Some(settled(record, bill, run, answer)),
        Phase::Unpaid { why, .. } => Some(Err(unpaid(why))),
        Phase::Reserved
        | Phase::Signed { .. }
        | Phase::Refused { .. }
        | Phase::Sent { .. }
        | Phase::Running { .. } => None,
    }
}

pub(super) fn unpaid(why: &Unpaid) -> ApiFault {
    match why {
        Unpaid::NoMiner => ApiFault::no_miner(),
        Unpaid::Cancelled => ApiFault::cancelled(),
        Unpaid::Refused(code) => ApiFault::chain(code),
        Unpaid::Failed(why) => ApiFault::failed_unpaid(why),
        Unpaid::Interrupted => ApiFault::stopping(),
    }
}

fn settled(record: &Record, bill: &Bill, run: Option<&Run>, answer: Option<&str>) -> Ended {
    let Some(answer) = answer else {
        let why =
            format!("it ended with {} and without an answer that can be retrieved", bill.status);
        return Err(ApiFault::failed_paid(&why));
    };
    let reply = Reply::parse(answer, &bill.status).map_err(|why| ApiFault::failed_paid(&why))?;
    let completion_tokens = run.map_or(0, |run| run.total_tokens_out);
    Ok(Answered::Chat(Box::new(Completion {
        id: completion_id(record),
        created: record.created_ms / 1_000,
        model: record.model.clone(),
        reply,
        spent: Spent { completion_tokens, cost_micro: bill.cost_micro() },
        ombra: ombra(record, bill),
    })))
}

/// Where the answer is on the chain, and what was paid for it.
fn ombra(record: &Record, bill: &Bill) -> Value {
    let Bill { run, status, reward_micro, network_fee_micro, fees_micro, settlement_tx, block } =
        bill;
    json!({
        "runId": run,
        "requestTx": record.request_tx(),
        "settlementTx": settlement_tx,
        "block": block,
        "status": status,
        "promptTokens": "not counted",
        "rewardMicro": reward_micro,
        "networkFeeMicro": network_fee_micro,
        "inclusionFeesMicro": fees_micro,
    })
}
