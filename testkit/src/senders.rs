//! A connection to a node over which several accounts send, and what each of them has afterwards.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use types::tx::Protection;
use types::{Address, Body, Hash, Late};

use crate::actor::{Actor, finish, step};
use crate::http::{self, Connection};

/// A connection to a node.
#[derive(Debug)]
pub struct Senders {
    connection: Connection,
}

impl Senders {
    pub fn open(node: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self { connection: Connection::open(node)? })
    }

    pub fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.connection.call(method, params)
    }

    /// All items of a list, as [`Connection::pages`] has them.
    pub fn pages(
        &mut self,
        method: &str,
        params: impl Fn(&Value) -> Value,
    ) -> anyhow::Result<Vec<Value>> {
        self.connection.pages(method, params)
    }

    /// Sends texts; answers what the node said of each, in their order.
    pub fn send(&mut self, texts: &[String]) -> anyhow::Result<Vec<Value>> {
        let answer = self.connection.post(&http::send_together_body(texts))?;
        let mut answer: Value = serde_json::from_str(&answer)?;
        let result = answer.pointer_mut("/result").map(Value::take);
        let Some(Value::Array(each)) = result else { bail!("not answered: {answer}") };
        Ok(each)
    }

    /// Sends texts that must be taken; answers the hash of the last one.
    pub fn hand_in(&mut self, texts: &[String]) -> anyhow::Result<Value> {
        let answers = self.send(texts)?;
        let refused = answers.iter().find(|it| it.get("hash").is_none());
        ensure!(refused.is_none(), "not taken: {}", refused.unwrap_or(&Value::Null));
        let last = answers.last().and_then(|it| it.get("hash")).cloned();
        last.context("nothing was sent")
    }

    /// Sends texts of one sender that must be taken, and waits until they are in blocks.
    pub fn include(&mut self, texts: &[String]) -> anyhow::Result<()> {
        let last = self.hand_in(texts)?;
        self.wait(&last)
    }

    /// Waits until a transaction is in a block.
    pub fn wait(&mut self, hash: &Value) -> anyhow::Result<()> {
        let seen = self.seen(hash, Duration::from_secs(30))?;
        ensure!(seen.get("blockIndex").is_some(), "it is in no block: {seen}");
        Ok(())
    }

    /// What became of a transaction after so long at most.
    pub fn seen(&mut self, hash: &Value, within: Duration) -> anyhow::Result<Value> {
        let wait = json!([hash, { "timeoutMs": u64::try_from(within.as_millis())? }]);
        self.call("ombra_waitForTransaction", &wait)
    }

    /// Sends a text that must be refused with this code.
    pub fn refused(&mut self, text: &str, code: &str) -> anyhow::Result<()> {
        let answer = self.send(&[text.to_owned()])?.pop().context("no answer")?;
        let told = answer.pointer("/error/data/code").and_then(Value::as_str);
        ensure!(told == Some(code), "{code} was expected: {answer}");
        Ok(())
    }

    /// Balance and bond of an account, in micro.
    pub fn wealth(&mut self, actor: &Actor) -> anyhow::Result<i128> {
        self.wealth_of(actor.address())
    }

    /// The same of an address.
    pub fn wealth_of(&mut self, address: Address) -> anyhow::Result<i128> {
        let account = self.call("ombra_getAccount", &json!([address]))?;
        let balance = account["balance"].as_str().context("a balance")?.parse::<i128>()?;
        let bond = self.call("ombra_getBond", &json!([address]))?;
        let bonded = bond["bonded"].as_str().context("a bond")?.parse::<i128>()?;
        Ok(balance + bonded)
    }

    /// What the next block burns for a KiB, in micro.
    pub fn base_fee(&mut self) -> anyhow::Result<u64> {
        let prices = self.call("ombra_feeSchedule", &json!([]))?;
        let base_fee = prices["baseFee"].as_str().context("a chain without prices")?;
        Ok(base_fee.parse()?)
    }

    /// Asks for a run and waits until that is in a block.
    pub fn request(&mut self, submitter: &mut Actor, asked: &Asked<'_>) -> anyhow::Result<Hash> {
        let mut request = submitter.request(asked.prompt, asked.max_fee, asked.max_steps);
        request.protection = Late::from(asked.protection.clone());
        let run = request.agent_run_id;
        let text = submitter.sign(&Body::AgentRequest(request));
        self.include(&[text])?;
        Ok(run)
    }

    /// Has a miner claim a run and end it after one step, for this reward and this refund.
    pub fn complete(
        &mut self,
        miner: &mut Actor,
        run: Hash,
        (reward, refund): (u64, u64),
    ) -> anyhow::Result<()> {
        let bodies = [
            Body::AgentClaim(miner.claim(run)),
            step(run, 0, reward),
            Body::AgentFinish(finish(run, reward, [reward, refund, 100])),
        ];
        self.include(&bodies.map(|body| miner.sign(&body)))
    }
}

/// What is asked for with a run.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    pub prompt: &'a str,
    pub max_fee: u64,
    pub max_steps: u64,
    pub protection: Protection,
}
