//! Builders of unsigned transactions. They never see a private key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jsonrpsee::proc_macros::rpc;
use serde_json::value::RawValue;
use types::build::{Envelope, Unsigned};
use types::check::{self, StaticRules};
use types::params::BLOB_CHUNK_BYTES;
use types::tx::{
    AgentCancel, AgentClaim, AgentFinish, AgentRequest, AgentStep, Attachment, BlobChunk,
    BlobFinalize, BlobInit, ChatTurn, MinerAddress, MinerRegister, ToolCall, Transfer,
    ValidatorVote,
};
use types::{Address, Body, SizeLimits, Transaction, ids};

use super::Api;
use crate::error::RpcError;
use crate::ports::SettlementNow;
use crate::wire::{
    BuildAgentCancel, BuildAgentClaim, BuildAgentFinish, BuildAgentRequest, BuildAgentStep,
    BuildAttachment, BuildBlobChunk, BuildBlobFinalize, BuildBlobInit, BuildChatTurn,
    BuildEnvelope, BuildMinerRegister, BuildToolCall, BuildTransfer, BuildValidatorVote, Built,
};

/// How long a vote for a change of the validators counts if the caller does not say: a week.
const VOTE_TTL_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// Builders: one per kind of transaction.
#[rpc(server, namespace = "ombra")]
pub trait BuildRpc {
    /// An unsigned CHAT_TURN.
    #[method(name = "buildChatTurn", blocking)]
    fn chat_turn(&self, envelope: BuildEnvelope, fields: BuildChatTurn) -> Result<Built, RpcError>;

    /// An unsigned AGENT_REQUEST.
    #[method(name = "buildAgentRequest", blocking)]
    fn agent_request(
        &self,
        envelope: BuildEnvelope,
        fields: BuildAgentRequest,
    ) -> Result<Built, RpcError>;

    /// An unsigned AGENT_CLAIM.
    #[method(name = "buildAgentClaim", blocking)]
    fn agent_claim(
        &self,
        envelope: BuildEnvelope,
        fields: BuildAgentClaim,
    ) -> Result<Built, RpcError>;

    /// An unsigned AGENT_STEP.
    #[method(name = "buildAgentStep", blocking)]
    fn agent_step(
        &self,
        envelope: BuildEnvelope,
        fields: BuildAgentStep,
    ) -> Result<Built, RpcError>;

    /// An unsigned AGENT_FINISH.
    #[method(name = "buildAgentFinish", blocking)]
    fn agent_finish(
        &self,
        envelope: BuildEnvelope,
        fields: BuildAgentFinish,
    ) -> Result<Built, RpcError>;

    /// An unsigned AGENT_CANCEL.
    #[method(name = "buildAgentCancel", blocking)]
    fn agent_cancel(
        &self,
        envelope: BuildEnvelope,
        fields: BuildAgentCancel,
    ) -> Result<Built, RpcError>;

    /// An unsigned TRANSFER.
    #[method(name = "buildTransfer", blocking)]
    fn transfer(&self, envelope: BuildEnvelope, fields: BuildTransfer) -> Result<Built, RpcError>;

    /// An unsigned MINER_REGISTER.
    #[method(name = "buildMinerRegister", blocking)]
    fn miner_register(
        &self,
        envelope: BuildEnvelope,
        fields: BuildMinerRegister,
    ) -> Result<Built, RpcError>;

    /// An unsigned SOCIAL_BLOB_INIT.
    #[method(name = "buildBlobInit", blocking)]
    fn blob_init(&self, envelope: BuildEnvelope, fields: BuildBlobInit) -> Result<Built, RpcError>;

    /// An unsigned SOCIAL_BLOB_CHUNK.
    #[method(name = "buildBlobChunk", blocking)]
    fn blob_chunk(
        &self,
        envelope: BuildEnvelope,
        fields: BuildBlobChunk,
    ) -> Result<Built, RpcError>;

    /// An unsigned SOCIAL_BLOB_FINALIZE.
    #[method(name = "buildBlobFinalize", blocking)]
    fn blob_finalize(
        &self,
        envelope: BuildEnvelope,
        fields: BuildBlobFinalize,
    ) -> Result<Built, RpcError>;

    /// An unsigned VALIDATOR_VOTE.
    #[method(name = "buildValidatorVote", blocking)]
    fn validator_vote(
        &self,
        envelope: BuildEnvelope,
        fields: BuildValidatorVote,
    ) -> Result<Built, RpcError>;
}

impl BuildRpcServer for Api {
    fn chat_turn(&self, envelope: BuildEnvelope, fields: BuildChatTurn) -> Result<Built, RpcError> {
        let attachment = |BuildAttachment { kind, blob_id }| Attachment { kind, blob_id };
        let body = Body::ChatTurn(ChatTurn {
            conversation_id: fields.conversation_id.0,
            role: fields.role,
            content: fields.content,
            content_blob_id: fields.content_blob_id,
            parent_turn_hash: fields.parent_turn_hash.map(|hash| hash.0),
            agent_run_id: fields.agent_run_id.map(|id| id.0),
            attachments: fields.attachments.map(|all| all.into_iter().map(attachment).collect()),
        });
        self.build(&self.sender(envelope)?, &body)
    }

    fn agent_request(
        &self,
        envelope: BuildEnvelope,
        fields: BuildAgentRequest,
    ) -> Result<Built, RpcError> {
        let sender = self.sender(envelope)?;
        let Sender { from, envelope: Envelope { nonce, timestamp, .. }, .. } = &sender;
        let conversation_id = match (fields.conversation_id, &fields.seed) {
            (Some(id), None) => id.0,
            (None, seed) => ids::compute_conversation_id(from, seed.as_deref(), *timestamp),
            (Some(_), Some(seed)) => {
                return Err(RpcError::invalid("seed", seed, "either conversationId or seed"));
            }
        };
        let body = Body::AgentRequest(AgentRequest {
            agent_run_id: ids::compute_agent_run_id(from, *nonce, &fields.prompt),
            conversation_id,
            prompt: fields.prompt,
            tools_whitelist: fields.tools_whitelist,
            max_fee: fields.max_fee.0,
            max_steps: fields.max_steps,
            prompt_blob_id: fields.prompt_blob_id,
            model_hint: fields.model_hint,
        });
        self.build(&sender, &body)
    }

    fn agent_claim(
        &self,
        envelope: BuildEnvelope,
        fields: BuildAgentClaim,
    ) -> Result<Built, RpcError> {
        let sender = self.sender(envelope)?;
        let text = fields.miner_address.unwrap_or_else(|| sender.from.clone());
        let address = parse_address("minerAddress", &text)?;
        let body = Body::AgentClaim(AgentClaim {
            agent_run_id: fields.agent_run_id.0,
            miner_address: MinerAddress { address, text },
            model_info: fields.model_info,
            hardware_tier: fields.hardware_tier,
        });
        self.build(&sender, &body)
    }

    fn agent_step(
        &self,
        envelope: BuildEnvelope,
        fields: BuildAgentStep,
    ) -> Result<Built, RpcError> {
        let call = |BuildToolCall { name, args_hash, result_hash, duration_ms, ok }| ToolCall {
            name,
            args_hash: args_hash.0,
            result_hash: result_hash.0,
            duration_ms,
            ok,
        };
        let body = Body::AgentStep(AgentStep {
            agent_run_id: fields.agent_run_id.0,
            step_index: fields.step_index,
            output_tokens: fields.output_tokens,
            output_hash: fields.output_hash.0,
            thought_blob_id: fields.thought_blob_id,
            tool_calls: fields.tool_calls.map(|calls| calls.into_iter().map(call).collect()),
            output_blob_id: fields.output_blob_id,
        });
        self.build(&self.sender(envelope)?, &body)
    }

    fn agent_finish(
        &self,
        envelope: BuildEnvelope,
        fields: BuildAgentFinish,
    ) -> Result<Built, RpcError> {
        let SettlementNow { total_tokens_out, fees, .. } =
            self.settlement_now(fields.agent_run_id.0)?;
        let body = Body::AgentFinish(AgentFinish {
            agent_run_id: fields.agent_run_id.0,
            total_tokens_out,
            status: fields.status,
            miner_reward: fees.miner_reward,
            user_refund: fees.user_refund,
            network_fee: fees.network_fee,
            final_answer_inline: fields.final_answer_inline,
            final_answer_blob_id: fields.final_answer_blob_id,
        });
        self.build(&self.sender(envelope)?, &body)
    }

    fn agent_cancel(
        &self,
        envelope: BuildEnvelope,
        fields: BuildAgentCancel,
    ) -> Result<Built, RpcError> {
        let body = Body::AgentCancel(AgentCancel { agent_run_id: fields.agent_run_id.0 });
        self.build(&self.sender(envelope)?, &body)
    }

    fn transfer(&self, envelope: BuildEnvelope, fields: BuildTransfer) -> Result<Built, RpcError> {
        let body = Body::Transfer(Transfer {
            to: parse_address("to", &fields.to)?,
            to_text: fields.to,
            amount: fields.amount.0,
            fee: fields.fee.map_or(types::Amount::ZERO, |fee| fee.0),
        });
        self.build(&self.sender(envelope)?, &body)
    }

    fn miner_register(
        &self,
        envelope: BuildEnvelope,
        fields: BuildMinerRegister,
    ) -> Result<Built, RpcError> {
        let BuildMinerRegister { name, capabilities, model_info } = fields;
        let body = Body::MinerRegister(MinerRegister { name, capabilities, model_info });
        self.build(&self.sender(envelope)?, &body)
    }

    fn blob_init(&self, envelope: BuildEnvelope, fields: BuildBlobInit) -> Result<Built, RpcError> {
        let BuildBlobInit { blob_id, content_type, total_bytes, content_hash } = fields;
        let body = Body::BlobInit(BlobInit {
            blob_id,
            content_type,
            total_bytes,
            total_chunks: total_bytes.div_ceil(BLOB_CHUNK_BYTES),
            content_hash: content_hash.0,
        });
        self.build(&self.sender(envelope)?, &body)
    }

    fn blob_chunk(
        &self,
        envelope: BuildEnvelope,
        fields: BuildBlobChunk,
    ) -> Result<Built, RpcError> {
        let BuildBlobChunk { blob_id, chunk_index, chunk_data_base64 } = fields;
        let chunk_data = STANDARD.decode(&chunk_data_base64).map_err(|e| {
            RpcError::invalid("chunkDataBase64", e.to_string(), "standard base64 with padding")
        })?;
        let body = Body::BlobChunk(BlobChunk { blob_id, chunk_index, chunk_data });
        self.build(&self.sender(envelope)?, &body)
    }

    fn blob_finalize(
        &self,
        envelope: BuildEnvelope,
        fields: BuildBlobFinalize,
    ) -> Result<Built, RpcError> {
        let body = Body::BlobFinalize(BlobFinalize { blob_id: fields.blob_id });
        self.build(&self.sender(envelope)?, &body)
    }

    fn validator_vote(
        &self,
        envelope: BuildEnvelope,
        fields: BuildValidatorVote,
    ) -> Result<Built, RpcError> {
        let BuildValidatorVote { candidate_key, power, expires_at } = fields;
        let sender = self.sender(envelope)?;
        let week = || sender.envelope.timestamp.saturating_add(VOTE_TTL_MS);
        let body = Body::ValidatorVote(ValidatorVote {
            candidate_key: candidate_key.0,
            power,
            expires_at: expires_at.unwrap_or_else(week),
        });
        self.build(&sender, &body)
    }
}

/// Who sends, with everything filled in.
struct Sender {
    from: String,
    public_key: types::PublicKey,
    envelope: Envelope,
}

impl Api {
    fn sender(&self, envelope: BuildEnvelope) -> Result<Sender, RpcError> {
        let BuildEnvelope { from, public_key, nonce, timestamp, chain_id } = envelope;
        let address = parse_address("from", &from)?;
        let nonce = match nonce {
            Some(nonce) => nonce,
            None => self.ports.projection.account(&address)?.nonce,
        };
        let timestamp = timestamp.unwrap_or_else(|| self.ports.clock.now_ms());
        let envelope = Envelope { nonce, timestamp, chain_id: self.chain_id(chain_id) };
        Ok(Sender { from, public_key: public_key.0, envelope })
    }

    /// The chain's name is filled in where the chain asks for it.
    fn chain_id(&self, given: Option<String>) -> Option<String> {
        let is_required = self.facts.params.require_chain_id;
        given.or_else(|| is_required.then(|| self.facts.chain_id.clone()))
    }

    /// Writes the payload, after the checks that need no state.
    fn build(&self, sender: &Sender, body: &Body) -> Result<Built, RpcError> {
        let Sender { from, public_key, envelope } = sender;
        let unsigned = Unsigned::build(body, from, public_key, envelope);
        let params = &self.facts.params;
        let limits = SizeLimits::from(params);
        let tx = Transaction::parse_unsigned(unsigned.payload().as_bytes(), &limits)?;
        let rules = StaticRules {
            chain_id: &self.facts.chain_id,
            params,
            forks: self.facts.forks,
            height: self.ports.chain.tip().height.saturating_add(1),
        };
        check::verify_unsigned(tx, &rules)?;
        let payload = unsigned.payload().to_owned();
        Ok(Built {
            tx: RawValue::from_string(payload.clone()).map_err(|e| {
                tracing::error!(error = %e, "a payload is not JSON");
                RpcError::Internal
            })?,
            payload,
            hash: unsigned.hash(),
            signing_message: unsigned.signing_message(),
        })
    }
}

fn parse_address(field: &'static str, text: &str) -> Result<Address, RpcError> {
    Address::parse(text).map_err(|e| RpcError::invalid(field, e.got, e.expected))
}
