//! What the attacks on money have in common: a connection over which several accounts send, and what
//! each of them has afterwards.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tests::actor::Actor;
use tests::http::{self, Connection};
use tests::workload::envelope;
use types::build::{Envelope, build_tx};
use types::tx::{AgentStep, Protection, ToolCall};
use types::{Amount, Bid, Body, Hash, Late};

/// Micro-OMBRA of an OMBRA.
const OMBRA: i128 = 1_000_000;

/// A connection to a node.
pub(super) struct Desk {
    connection: Connection,
}

impl Desk {
    pub(super) fn open(node: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self { connection: Connection::open(node)? })
    }

    pub(super) fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.connection.call(method, params)
    }

    /// Sends texts; answers what the node said of each, in their order.
    pub(super) fn send(&mut self, texts: &[String]) -> anyhow::Result<Vec<Value>> {
        let answer = self.connection.post(&http::send_together_body(texts))?;
        let mut answer: Value = serde_json::from_str(&answer)?;
        let result = answer.pointer_mut("/result").map(Value::take);
        let Some(Value::Array(each)) = result else { bail!("not answered: {answer}") };
        Ok(each)
    }

    /// Sends texts that must be taken; answers the hash of the last one.
    pub(super) fn hand_in(&mut self, texts: &[String]) -> anyhow::Result<Value> {
        let answers = self.send(texts)?;
        let refused = answers.iter().find(|it| it.get("hash").is_none());
        ensure!(refused.is_none(), "not taken: {}", refused.unwrap_or(&Value::Null));
        let last = answers.last().and_then(|it| it.get("hash")).cloned();
        last.context("nothing was sent")
    }

    /// Sends texts of one sender that must be taken, and waits until they are in blocks.
    pub(super) fn include(&mut self, texts: &[String]) -> anyhow::Result<()> {
        let last = self.hand_in(texts)?;
        self.wait(&last)
    }

    /// Waits until a transaction is in a block.
    pub(super) fn wait(&mut self, hash: &Value) -> anyhow::Result<()> {
        let seen = self.seen(hash, Duration::from_secs(30))?;
        ensure!(seen.get("blockIndex").is_some(), "it is in no block: {seen}");
        Ok(())
    }

    /// What became of a transaction after so long at most.
    pub(super) fn seen(&mut self, hash: &Value, within: Duration) -> anyhow::Result<Value> {
        let wait = json!([hash, { "timeoutMs": u64::try_from(within.as_millis())? }]);
        self.call("ombra_waitForTransaction", &wait)
    }

    /// Sends a text that must be refused with this code.
    pub(super) fn refused(&mut self, text: &str, code: &str) -> anyhow::Result<()> {
        let answer = self.send(&[text.to_owned()])?.pop().context("no answer")?;
        let told = answer.pointer("/error/data/code").and_then(Value::as_str);
        ensure!(told == Some(code), "{code} was expected: {answer}");
        Ok(())
    }

    /// Balance and bond of an account, in micro.
    pub(super) fn wealth(&mut self, actor: &Actor) -> anyhow::Result<i128> {
        let account = self.call("ombra_getAccount", &json!([actor.address()]))?;
        let balance = account["balance"].as_str().context("a balance")?.parse::<i128>()?;
        let bond = self.call("ombra_getBond", &json!([actor.address()]))?;
        let bonded = bond["bonded"].as_str().context("a bond")?.parse::<i128>()?;
        Ok(balance + bonded)
    }

    /// What the next block burns for a KiB, in micro.
    pub(super) fn base_fee(&mut self) -> anyhow::Result<u64> {
        let prices = self.call("ombra_feeSchedule", &json!([]))?;
        let base_fee = prices["baseFee"].as_str().context("a chain without prices")?;
        Ok(base_fee.parse()?)
    }

    /// Asks for a run and waits until that is in a block.
    pub(super) fn request(
        &mut self,
        submitter: &mut Actor,
        asked: &Asked<'_>,
    ) -> anyhow::Result<Hash> {
        let mut request = submitter.request(asked.prompt, asked.max_fee, asked.max_steps);
        request.protection = Late::from(asked.protection.clone());
        let run = request.agent_run_id;
        let text = submitter.sign(&Body::AgentRequest(request));
        self.include(&[text])?;
        Ok(run)
    }
}

/// What is asked for with a run.
#[derive(Clone)]
pub(super) struct Asked<'a> {
    pub(super) prompt: &'a str,
    pub(super) max_fee: u64,
    pub(super) max_steps: u64,
    pub(super) protection: Protection,
}

/// A signed text with the next nonce that offers something for its place: micro beyond the base fee.
pub(super) fn tipping(actor: &mut Actor, body: &Body, tip: u64) -> String {
    let tip = (tip > 0).then_some(Amount::new(tip));
    let bid = Bid { max_base_fee: Some(Amount::new(1_000_000)), tip };
    let text = build_tx(&actor.key, body, &Envelope { bid, ..envelope(actor.nonce) });
    actor.nonce += 1;
    text
}

/// A step of a run, by its index, that calls of tools make as large as it should be.
pub(super) fn padded_step(
    actor: &mut Actor,
    (run, index): (Hash, u64),
    tip: u64,
    bytes: usize,
) -> String {
    let call = |name: usize| ToolCall {
        name: "x".repeat(name),
        args_hash: run,
        result_hash: run,
        duration_ms: 0,
        ok: true,
    };
    let with = |actor: &mut Actor, names: &[usize]| {
        let step = AgentStep {
            agent_run_id: run,
            step_index: index,
            output_tokens: 0,
            output_hash: run,
            thought_blob_id: None,
            tool_calls: Some(names.iter().copied().map(call).collect()),
            output_blob_id: None,
        };
        tipping(actor, &Body::AgentStep(step), tip)
    };
    let size = |names: &[usize]| payload_bytes(&with(&mut actor.clone(), names));
    let mut names = Vec::new();
    while size(&[&names[..], &[1]].concat()) <= bytes {
        names.push(1);
    }
    let mut room = bytes.saturating_sub(size(&names));
    for name in &mut names {
        let more = room.min(NAME_BYTES_MAX - *name);
        *name += more;
        room -= more;
    }
    with(actor, &names)
}

/// The longest name of a tool.
const NAME_BYTES_MAX: usize = 256;

/// The size of a text by docs/protocol.md section 15: in the text, hash and signature stand as hex.
pub(super) const fn payload_bytes(text: &str) -> usize {
    text.len().saturating_sub(217 - 64)
}

/// Micro as OMBRA, for people.
pub(super) fn ombra(micro: i128) -> String {
    format!("{}.{:06}", micro / OMBRA, micro % OMBRA)
}
