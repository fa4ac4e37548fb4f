//! Wallets, and transactions in one line each.

use std::borrow::Borrow;

use types::build::{Envelope, build_tx};
use types::params::{AGENT_NETWORK_FEE_PER_STEP, BLOB_CHUNK_BYTES};
use types::tx::{
    AgentFinish, AgentRequest, BlobInit, ChatTurn, Protection, RunOfAgent, Transfer, ValidatorVote,
};
use types::{Address, Amount, Bid, Body, CheckedTx, Hash, Keypair, Late};

use super::ledger::MAX_FEE;

/// A key whose transactions are made by [`Make`].
#[derive(Clone, Debug)]
pub(crate) struct Wallet(pub(crate) Keypair);

impl Wallet {
    pub(crate) fn new(number: u8) -> Self {
        Self(Keypair::from_seed(&[number; 32]))
    }

    /// Those of the numbers from 1 on.
    pub(crate) fn first<const N: usize>() -> [Self; N] {
        std::array::from_fn(|place| Self::new(u8::try_from(place).unwrap() + 1))
    }

    pub(crate) fn address(&self) -> Address {
        self.0.address()
    }

    /// A transaction with this nonce.
    pub(crate) fn at(&self, nonce: u64) -> Make<'_> {
        Make { key: &self.0, nonce, timestamp: 1_000_000, tip: None, max_base_fee: None }
    }

    /// A transaction with each of these nonces.
    pub(crate) fn each(
        &self,
        nonces: impl Iterator<Item = u64>,
        make: impl Fn(Make<'_>) -> CheckedTx,
    ) -> Vec<CheckedTx> {
        nonces.map(|nonce| make(self.at(nonce))).collect()
    }
}

/// Nonce and time of a transaction to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Make<'a> {
    key: &'a Keypair,
    nonce: u64,
    timestamp: u64,
    tip: Option<u64>,
    max_base_fee: Option<u64>,
}

/// The transaction of a signed text, taken as checked.
pub(crate) fn trusted(text: &str) -> CheckedTx {
    CheckedTx::trust(fixtures::parsed(text))
}

impl Make<'_> {
    /// Another time, and so another hash.
    pub(crate) const fn time(self, timestamp: u64) -> Self {
        Self { timestamp, ..self }
    }

    /// What it offers to the proposer.
    pub(crate) const fn tip(self, tip: u64) -> Self {
        Self { tip: Some(tip), ..self }
    }

    pub(crate) const fn max_base_fee(self, micro: u64) -> Self {
        Self { max_base_fee: Some(micro), ..self }
    }

    pub(crate) fn text(self, body: &Body) -> String {
        let Self { key, nonce, timestamp, tip, max_base_fee } = self;
        // The fee of a transfer is its tip.
        let tip = tip.filter(|_| !matches!(body, Body::Transfer(_)));
        let amount = |micro: Option<u64>| micro.map(Amount::new);
        let bid = Bid { max_base_fee: amount(max_base_fee), tip: amount(tip) };
        build_tx(key, body, &Envelope { bid, ..Envelope::new(nonce, timestamp, None) })
    }

    pub(crate) fn tx(self, body: &Body) -> CheckedTx {
        trusted(&self.text(body))
    }

    pub(crate) fn transfer(self, to: &Wallet, amount: u64) -> CheckedTx {
        let tip = Amount::new(self.tip.unwrap_or(0));
        let fields = Transfer::new(to.address(), Amount::new(amount), tip);
        self.tx(&Body::Transfer(fields))
    }

    pub(crate) fn request(self) -> CheckedTx {
        self.request_of(MAX_FEE, 10)
    }

    /// A run of an agent.
    pub(crate) fn request_of_agent(self, agent_id: Hash) -> CheckedTx {
        let of = RunOfAgent { agent_id: Some(agent_id), agent_version: Some("1.0.0".to_owned()) };
        let mut request = self.request_body(MAX_FEE, 10);
        request.agent = Late::from(of);
        self.tx(&Body::AgentRequest(request))
    }

    /// A run of which a claim locks so much of a bond.
    pub(crate) fn request_with_bond(self, claim_bond: u64) -> CheckedTx {
        let of = Protection { claim_bond: Some(Amount::new(claim_bond)), ..Protection::default() };
        let mut request = self.request_body(MAX_FEE, 10);
        request.protection = Late::from(of);
        self.tx(&Body::AgentRequest(request))
    }

    /// A run with a tool of this name.
    pub(crate) fn request_with_tool(self, tool: &str) -> CheckedTx {
        let mut request = self.request_body(MAX_FEE, 10);
        request.tools_whitelist.push(tool.to_owned());
        self.tx(&Body::AgentRequest(request))
    }

    /// A run of so many steps.
    pub(crate) fn request_of(self, max_fee: u64, max_steps: u64) -> CheckedTx {
        self.tx(&Body::AgentRequest(self.request_body(max_fee, max_steps)))
    }

    fn request_body(&self, max_fee: u64, max_steps: u64) -> AgentRequest {
        fixtures::request(self.key.address(), self.nonce, "why", max_fee, max_steps)
    }

    pub(crate) fn claim(self, run: Hash) -> CheckedTx {
        self.tx(&fixtures::claim(self.key.address(), run).into())
    }

    pub(crate) fn step(self, run: Hash, step_index: u64) -> CheckedTx {
        self.tx(&fixtures::step(run, step_index, 1))
    }

    /// The end of a run after so many steps.
    pub(crate) fn finish(self, run: Hash, steps: u64) -> CheckedTx {
        self.end(run, steps, None)
    }

    /// The same with an answer and without a step.
    pub(crate) fn answer(self, run: Hash, answer: &str) -> CheckedTx {
        self.end(run, 0, Some(answer.to_owned()))
    }

    /// Gives a run back that has no step.
    pub(crate) fn give_back(self, run: Hash) -> CheckedTx {
        let status = "failed".to_owned();
        self.tx(&Body::AgentFinish(AgentFinish {
            status,
            ..fixtures::finish(run, 0, [0, MAX_FEE, 0])
        }))
    }

    fn end(self, run: Hash, steps: u64, answer: Option<String>) -> CheckedTx {
        let (reward, fee) = (steps, AGENT_NETWORK_FEE_PER_STEP * steps);
        self.tx(&Body::AgentFinish(AgentFinish {
            final_answer_inline: answer,
            ..fixtures::finish(run, steps, [reward, MAX_FEE - reward - fee, fee])
        }))
    }

    pub(crate) fn cancel(self, run: Hash) -> CheckedTx {
        self.tx(&fixtures::cancel(run))
    }

    pub(crate) fn turn(self, parent: Option<Hash>) -> CheckedTx {
        self.tx(&ChatTurn { parent_turn_hash: parent, ..fixtures::turn("hello") }.into())
    }

    /// Announces a blob of so many bytes.
    pub(crate) fn blob(self, blob_id: &str, total_bytes: u64) -> CheckedTx {
        self.tx(&Body::BlobInit(BlobInit {
            total_bytes,
            total_chunks: total_bytes.div_ceil(BLOB_CHUNK_BYTES),
            ..fixtures::blob_init(blob_id, b"")
        }))
    }

    /// A vote to remove a validator.
    pub(crate) fn vote_out(self, validator: &Wallet) -> CheckedTx {
        let candidate_key = validator.0.public_key();
        let expires_at = self.timestamp + 3_600_000;
        self.tx(&Body::ValidatorVote(ValidatorVote::new(candidate_key, 0, expires_at)))
    }

    pub(crate) fn bond(self, amount: u64) -> CheckedTx {
        self.tx(&fixtures::bond(amount))
    }

    pub(crate) fn unbond(self, amount: u64) -> CheckedTx {
        self.tx(&fixtures::unbond(amount))
    }

    /// An offer of an executor for so many calls at once, for nothing.
    pub(crate) fn offer(self, executor: &str, capacity: u64) -> CheckedTx {
        self.tx(&fixtures::offer(executor, capacity, [0; 4]).into())
    }

    /// A vote for the height of fork v8.
    pub(crate) fn vote_for_fork(self, height: u64) -> CheckedTx {
        self.tx(&fixtures::fork_vote("v8", height))
    }

    /// A vote for another floor of the base fee.
    pub(crate) fn vote_for_floor(self, value: u64, height: u64) -> CheckedTx {
        self.tx(&fixtures::param_vote("baseFeeFloor", value, height))
    }

    /// A chunk of so many bytes.
    pub(crate) fn chunk(self, blob_id: &str, chunk_index: u64, bytes: u64) -> CheckedTx {
        let bytes = vec![0; usize::try_from(bytes).unwrap()];
        self.tx(&fixtures::blob_chunk(blob_id, chunk_index, &bytes))
    }
}

pub(crate) fn hashes<T: Borrow<CheckedTx>>(txs: &[T]) -> Vec<Hash> {
    txs.iter().map(|tx| tx.borrow().hash()).collect()
}

/// The run of a request.
pub(crate) fn run_of(request: &CheckedTx) -> Hash {
    request.body().agent_run_id().unwrap()
}
