//! The kinds of transactions: one file each, with its fields, its limits and its written order.
//!
//! A kind says here what a wallet needs; what it does to the state is in the file of the same name
//! in the crate `state`. CONTRIBUTING.md has the recipe for a new one.

mod agent_cancel;
mod agent_claim;
mod agent_finish;
mod agent_request;
mod agent_step;
mod blob_chunk;
mod blob_finalize;
mod blob_init;
mod chat_turn;
pub(crate) mod fields;
mod limits;
mod miner_register;
mod transfer;
mod validator_vote;

use fields::Fields;

pub use agent_cancel::AgentCancel;
pub use agent_claim::{AgentClaim, HARDWARE_TIERS, MinerAddress};
pub use agent_finish::{AgentFinish, FINISH_STATUSES};
pub use agent_request::AgentRequest;
pub use agent_step::{AgentStep, TOOL_CALLS_MAX, ToolCall};
pub use blob_chunk::BlobChunk;
pub use blob_finalize::BlobFinalize;
pub use blob_init::BlobInit;
pub use chat_turn::{ATTACHMENT_TYPES, ATTACHMENTS_MAX, Attachment, ChatTurn, ROLES};
pub use miner_register::MinerRegister;
pub use transfer::Transfer;
pub use validator_vote::ValidatorVote;

use crate::json::ObjectWriter;
use crate::{Address, Code, Hash, Params, Rejection};

/// What a kind's static check may look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticView<'a> {
    pub(crate) params: &'a Params,
    pub(crate) signer: Address,
    /// The transaction's own time.
    pub(crate) timestamp: u64,
}

/// What every kind provides: reading, writing, and the limits that need no state.
pub(crate) trait Kind: Sized {
    /// The text of the member `type`.
    const TYPE: &'static str;
    /// Reads the kind's own members. Errors are MALFORMED.
    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection>;
    /// Writes the members that stand before `nonce`, in the order of the protocol's table.
    fn write_required(&self, out: &mut ObjectWriter<'_>);
    /// Writes the optional members that are present, in the order of the protocol's table.
    fn write_optional(&self, _out: &mut ObjectWriter<'_>) {}
    /// Checks limits and enumerations. Errors are INVALID_FIELD.
    fn check_static(&self, view: &StaticView<'_>) -> Result<(), Rejection>;
}

/// What a transaction does: the fields of its kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// CHAT_TURN.
    ChatTurn(ChatTurn),
    /// AGENT_REQUEST.
    AgentRequest(AgentRequest),
    /// AGENT_CLAIM.
    AgentClaim(AgentClaim),
    /// AGENT_STEP.
    AgentStep(AgentStep),
    /// AGENT_FINISH.
    AgentFinish(AgentFinish),
    /// AGENT_CANCEL.
    AgentCancel(AgentCancel),
    /// TRANSFER.
    Transfer(Transfer),
    /// MINER_REGISTER.
    MinerRegister(MinerRegister),
    /// SOCIAL_BLOB_INIT.
    BlobInit(BlobInit),
    /// SOCIAL_BLOB_CHUNK.
    BlobChunk(BlobChunk),
    /// SOCIAL_BLOB_FINALIZE.
    BlobFinalize(BlobFinalize),
    /// VALIDATOR_VOTE.
    ValidatorVote(ValidatorVote),
}

impl Body {
    /// Every `type` of this chain, in the order of the protocol's table.
    pub const TYPES: [&'static str; 12] = [
        ChatTurn::TYPE,
        AgentRequest::TYPE,
        AgentClaim::TYPE,
        AgentStep::TYPE,
        AgentFinish::TYPE,
        AgentCancel::TYPE,
        Transfer::TYPE,
        MinerRegister::TYPE,
        BlobInit::TYPE,
        BlobChunk::TYPE,
        BlobFinalize::TYPE,
        ValidatorVote::TYPE,
    ];

    pub(crate) fn read(type_name: &str, fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        match type_name {
            ChatTurn::TYPE => ChatTurn::read(fields).map(Self::ChatTurn),
            AgentRequest::TYPE => AgentRequest::read(fields).map(Self::AgentRequest),
            AgentClaim::TYPE => AgentClaim::read(fields).map(Self::AgentClaim),
            AgentStep::TYPE => AgentStep::read(fields).map(Self::AgentStep),
            AgentFinish::TYPE => AgentFinish::read(fields).map(Self::AgentFinish),
            AgentCancel::TYPE => AgentCancel::read(fields).map(Self::AgentCancel),
            Transfer::TYPE => Transfer::read(fields).map(Self::Transfer),
            MinerRegister::TYPE => MinerRegister::read(fields).map(Self::MinerRegister),
            BlobInit::TYPE => BlobInit::read(fields).map(Self::BlobInit),
            BlobChunk::TYPE => BlobChunk::read(fields).map(Self::BlobChunk),
            BlobFinalize::TYPE => BlobFinalize::read(fields).map(Self::BlobFinalize),
            ValidatorVote::TYPE => ValidatorVote::read(fields).map(Self::ValidatorVote),
            other => Err(Rejection::new(
                Code::UnsupportedType,
                "type",
                format_args!("{other:?}"),
                format_args!("one of {}", Self::TYPES.join(", ")),
            )),
        }
    }

    /// The text of the member `type`: `CHAT_TURN`.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::ChatTurn(_) => ChatTurn::TYPE,
            Self::AgentRequest(_) => AgentRequest::TYPE,
            Self::AgentClaim(_) => AgentClaim::TYPE,
            Self::AgentStep(_) => AgentStep::TYPE,
            Self::AgentFinish(_) => AgentFinish::TYPE,
            Self::AgentCancel(_) => AgentCancel::TYPE,
            Self::Transfer(_) => Transfer::TYPE,
            Self::MinerRegister(_) => MinerRegister::TYPE,
            Self::BlobInit(_) => BlobInit::TYPE,
            Self::BlobChunk(_) => BlobChunk::TYPE,
            Self::BlobFinalize(_) => BlobFinalize::TYPE,
            Self::ValidatorVote(_) => ValidatorVote::TYPE,
        }
    }

    /// The run that an AGENT transaction is about. A turn that merely mentions a run has none.
    #[must_use]
    pub const fn agent_run_id(&self) -> Option<Hash> {
        match self {
            Self::AgentRequest(body) => Some(body.agent_run_id),
            Self::AgentClaim(body) => Some(body.agent_run_id),
            Self::AgentStep(body) => Some(body.agent_run_id),
            Self::AgentFinish(body) => Some(body.agent_run_id),
            Self::AgentCancel(body) => Some(body.agent_run_id),
            Self::ChatTurn(_)
            | Self::Transfer(_)
            | Self::MinerRegister(_)
            | Self::BlobInit(_)
            | Self::BlobChunk(_)
            | Self::BlobFinalize(_)
            | Self::ValidatorVote(_) => None,
        }
    }

    pub(crate) fn write_required(&self, out: &mut ObjectWriter<'_>) {
        match self {
            Self::ChatTurn(body) => body.write_required(out),
            Self::AgentRequest(body) => body.write_required(out),
            Self::AgentClaim(body) => body.write_required(out),
            Self::AgentStep(body) => body.write_required(out),
            Self::AgentFinish(body) => body.write_required(out),
            Self::AgentCancel(body) => body.write_required(out),
            Self::Transfer(body) => body.write_required(out),
            Self::MinerRegister(body) => body.write_required(out),
            Self::BlobInit(body) => body.write_required(out),
            Self::BlobChunk(body) => body.write_required(out),
            Self::BlobFinalize(body) => body.write_required(out),
            Self::ValidatorVote(body) => body.write_required(out),
        }
    }

    pub(crate) fn write_optional(&self, out: &mut ObjectWriter<'_>) {
        match self {
            Self::ChatTurn(body) => body.write_optional(out),
            Self::AgentRequest(body) => body.write_optional(out),
            Self::AgentClaim(body) => body.write_optional(out),
            Self::AgentStep(body) => body.write_optional(out),
            Self::AgentFinish(body) => body.write_optional(out),
            Self::AgentCancel(body) => body.write_optional(out),
            Self::Transfer(body) => body.write_optional(out),
            Self::MinerRegister(body) => body.write_optional(out),
            Self::BlobInit(body) => body.write_optional(out),
            Self::BlobChunk(body) => body.write_optional(out),
            Self::BlobFinalize(body) => body.write_optional(out),
            Self::ValidatorVote(body) => body.write_optional(out),
        }
    }

    pub(crate) fn check_static(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        match self {
            Self::ChatTurn(body) => body.check_static(view),
            Self::AgentRequest(body) => body.check_static(view),
            Self::AgentClaim(body) => body.check_static(view),
            Self::AgentStep(body) => body.check_static(view),
            Self::AgentFinish(body) => body.check_static(view),
            Self::AgentCancel(body) => body.check_static(view),
            Self::Transfer(body) => body.check_static(view),
            Self::MinerRegister(body) => body.check_static(view),
            Self::BlobInit(body) => body.check_static(view),
            Self::BlobChunk(body) => body.check_static(view),
            Self::BlobFinalize(body) => body.check_static(view),
            Self::ValidatorVote(body) => body.check_static(view),
        }
    }
}

#[cfg(test)]
mod tests;
