//! Calls of agents.

mod view;

use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;
use tokio::time::Instant;
use types::call::{Answer, CallStatus, Outcome};
use types::ids::{Committer, compute_call_id, compute_commitment};
use types::randomness::Input;
use types::{Address, Hash, Header, Usage};

use super::transactions::wait_ms;
use super::{Api, paging};
use crate::error::RpcError;
use crate::events::WaitFor;
use crate::ports::CallFilter;
use crate::rate::Client;
use crate::share::Share;
use crate::wire::{
    CallQuery, CallState, CallView, CallWaitOptions, CommitmentQuery, Page, PageOf, RandomnessView,
    WaitUntil,
};

/// The most calls on a page.
const CALLS_MAX: usize = 100;

/// Calls of agents.
#[rpc(server, namespace = "ombra")]
pub trait CallsRpc {
    /// A call with its members and the texts of its transactions.
    #[method(name = "getCall", blocking)]
    fn call(&self, call_id: Hash) -> Result<CallView, RpcError>;

    /// Calls, newest first, without members and texts.
    #[method(name = "listCalls", blocking)]
    fn calls(
        &self,
        filter: Option<CallQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<CallState>, RpcError>;

    /// A call, as soon as it is decided or settled. When the time is over, it is answered as it is.
    #[method(name = "waitForCall", with_extensions)]
    async fn wait_for_call(
        &self,
        call_id: Hash,
        options: Option<CallWaitOptions>,
    ) -> Result<CallView, RpcError>;

    /// The randomness of a block, with what is needed to check it.
    #[method(name = "getRandomness", blocking)]
    fn randomness(&self, height: u64) -> Result<RandomnessView, RpcError>;

    /// The id of the call that an AGENT_CALL makes.
    #[method(name = "computeCallId")]
    fn call_id(&self, from: String, nonce: u64) -> Result<Hash, RpcError>;

    /// What hides a member's answer.
    #[method(name = "computeCommitment")]
    fn commitment(&self, answer: CommitmentQuery) -> Result<Hash, RpcError>;
}

#[async_trait]
impl CallsRpcServer for Api {
    fn call(&self, call_id: Hash) -> Result<CallView, RpcError> {
        let entry = self.ports.calls.call(&call_id)?;
        self.call_view(entry.ok_or_else(|| RpcError::not_found("call", call_id))?)
    }

    fn calls(
        &self,
        filter: Option<CallQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<CallState>, RpcError> {
        let filter = call_filter(&filter.unwrap_or_default())?;
        let page = page.unwrap_or_default();
        let limit = page.limit().min(CALLS_MAX);
        let slice = self.ports.calls.list(&filter, page.position()?, limit)?;
        Ok(paging::page(slice, |call| CallState::from(&call)))
    }

    async fn wait_for_call(
        &self,
        extensions: &Extensions,
        call_id: Hash,
        options: Option<CallWaitOptions>,
    ) -> Result<CallView, RpcError> {
        let CallWaitOptions { until, timeout_ms } = options.unwrap_or_default();
        let end = Instant::now() + Duration::from_millis(wait_ms(timeout_ms)?);
        let wait_for = WaitFor { call_id, until: until.unwrap_or_default() };
        let share = extensions.get::<Client>().ok_or(RpcError::Internal)?.share();
        loop {
            // It is asked after this, so that nothing falls between.
            let waiter = self.hub.wait_for_call(wait_for, share)?;
            if self.is_reached(share, wait_for).await? {
                break;
            }
            tokio::select! {
                told = waiter.told() => told.ok_or(RpcError::ShuttingDown)?,
                () = tokio::time::sleep_until(end) => break,
                () = self.shutdown.cancelled() => return Err(RpcError::ShuttingDown),
            }
        }
        let api = self.clone();
        self.readers.read(share, move || Self::call(&api, call_id)).await
    }

    fn randomness(&self, height: u64) -> Result<RandomnessView, RpcError> {
        let none = || RpcError::not_found("randomness of block", height);
        if height == 0 || height > self.ports.chain.tip().height {
            return Err(none());
        }
        let (block_hash, header) = self.header(height)?;
        let randomness = header.randomness.ok_or_else(none)?;
        let before =
            if height > 1 { self.header(height.saturating_sub(1))?.1.randomness } else { None };
        let previous = before.map_or(self.facts.genesis_hash, |before| before.value);
        let input = Input { chain_id: &self.facts.chain_id, previous, height };
        let validators = self.ports.chain.validators(height)?.unwrap_or_default();
        let proposer = validators.iter().find(|one| one.address == header.proposer);
        let public_key = proposer.map(|one| one.public_key).ok_or_else(|| {
            tracing::error!(height, "the proposer of a block is none of its validators");
            RpcError::Internal
        })?;
        Ok(RandomnessView {
            height,
            block_hash,
            value: randomness.value,
            proof: randomness.proof,
            proposer: header.proposer,
            public_key,
            input: input.message(),
        })
    }

    fn call_id(&self, from: String, nonce: u64) -> Result<Hash, RpcError> {
        let from =
            Address::parse(&from).map_err(|e| RpcError::invalid("from", e.got, e.expected))?;
        Ok(compute_call_id(&self.facts.chain_id, &from, nonce))
    }

    fn commitment(&self, answer: CommitmentQuery) -> Result<Hash, RpcError> {
        if answer.round > 1 {
            return Err(RpcError::invalid("round", answer.round.to_string(), "0 or 1"));
        }
        let outcome = Outcome::parse(&answer.outcome).ok_or_else(|| {
            let expected = format!("one of {}", Outcome::WORDS.join(", "));
            RpcError::invalid("outcome", answer.outcome.as_str(), expected)
        })?;
        let CommitmentQuery { input_tokens, output_tokens, fuel, .. } = answer;
        let hidden = Answer {
            outcome,
            result_hash: answer.result_hash.0,
            usage: Usage { input_tokens, output_tokens, fuel },
            receipt_hash: answer.receipt_hash.0,
        };
        let (call_id, member) = (answer.call_id.0, answer.member.0);
        let by = Committer { call_id, round: answer.round, member };
        Ok(compute_commitment(&by, &answer.salt.0, &hidden))
    }
}

impl Api {
    /// Whether what is waited for has come.
    async fn is_reached(&self, share: &Arc<Share>, wait_for: WaitFor) -> Result<bool, RpcError> {
        let WaitFor { call_id, until } = wait_for;
        let calls = Arc::clone(&self.ports.calls);
        let found = self.readers.read(share, move || Ok(calls.record(&call_id)?)).await?;
        let call = found.ok_or_else(|| RpcError::not_found("call", call_id))?;
        Ok(match until {
            WaitUntil::Decided => call.status.is_decided(),
            WaitUntil::Settled => call.is_settled(),
        })
    }

    fn header(&self, height: u64) -> Result<(Hash, Header), RpcError> {
        let found = self.ports.transactions.headers(height, 1)?;
        found.into_iter().next().ok_or_else(|| self.missing("block", height))
    }
}

/// What a client asks for, checked.
pub(crate) fn call_filter(query: &CallQuery) -> Result<CallFilter, RpcError> {
    let CallQuery { agent_id, requester, member, status } = query;
    Ok(CallFilter {
        agent_id: agent_id.map(|id| id.0),
        requester: requester.map(|address| address.0),
        member: member.map(|address| address.0),
        status: status.as_deref().map(parse_status).transpose()?,
    })
}

fn parse_status(word: &str) -> Result<CallStatus, RpcError> {
    CallStatus::parse(word).ok_or_else(|| {
        let words = CallStatus::ALL.map(CallStatus::as_str).join(", ");
        RpcError::invalid("status", word, format!("one of {words}"))
    })
}
