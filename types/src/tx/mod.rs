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

use crate::forks::Fork;
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
    /// The fork that the kind needs; none if it is valid from block 1 on (docs/protocol.md section 8).
    const FORK: Option<Fork> = None;
    /// Reads the kind's own members. Errors are MALFORMED.
    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection>;
    /// Writes the members that stand before `nonce`, in the order of the protocol's table.
    fn write_required(&self, out: &mut ObjectWriter<'_>);
    /// Writes the optional members that are present, in the order of the protocol's table.
    fn write_optional(&self, _out: &mut ObjectWriter<'_>) {}
    /// Checks limits and enumerations. Errors are INVALID_FIELD.
    fn check_static(&self, view: &StaticView<'_>) -> Result<(), Rejection>;
    /// What the transaction works on, if others can stand in its way there.
    fn subject(&self) -> Option<Subject<'_>> {
        None
    }
    /// Whom the transaction pays, as far as it says so itself.
    fn payee(&self, sender: Address) -> Option<Address> {
        let _ = sender;
        None
    }
}

/// What a transaction works on: what others may have changed before it is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject<'a> {
    /// A run.
    Run(Hash),
    /// A blob.
    Blob(&'a str),
    /// The validator set.
    Validators,
}

/// The one list of kinds: makes [`Body`] and everything that asks a body's kind.
macro_rules! kinds {
    // `$d` is a dollar sign, for the macro that this one writes.
    ($d:tt; $($(#[$doc:meta])* $kind:ident,)*) => {
        /// What a transaction does: the fields of its kind. In the order of the protocol's table.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Body {
            $($(#[$doc])* $kind($kind),)*
        }

        /// Does the same with the fields of a [`Body`](crate::Body), whatever its kind:
        /// `for_kind!(body, fields => check(fields))`.
        #[macro_export]
        macro_rules! for_kind {
            ($d body:expr, $d fields:ident => $d answer:expr) => {
                match $d body {
                    $($crate::Body::$kind($d fields) => $d answer,)*
                }
            };
        }

        impl Body {
            /// Every `type` of this chain, in the order of the protocol's table.
            pub const TYPES: &'static [&'static str] = &[$($kind::TYPE,)*];

            pub(crate) fn read(
                type_name: &str,
                fields: &Fields<'_, '_>,
            ) -> Result<Self, Rejection> {
                match type_name {
                    $($kind::TYPE => $kind::read(fields).map(Self::$kind),)*
                    other => Err(unsupported(other)),
                }
            }

            /// The text of the member `type`: `CHAT_TURN`.
            #[must_use]
            pub const fn type_name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $kind::TYPE,)*
                }
            }

            /// The fork that the kind needs; none if it is valid from block 1 on.
            #[must_use]
            pub const fn fork(&self) -> Option<Fork> {
                match self {
                    $(Self::$kind(_) => $kind::FORK,)*
                }
            }
        }
    };
}

kinds! { $;
    /// CHAT_TURN.
    ChatTurn,
    /// AGENT_REQUEST.
    AgentRequest,
    /// AGENT_CLAIM.
    AgentClaim,
    /// AGENT_STEP.
    AgentStep,
    /// AGENT_FINISH.
    AgentFinish,
    /// AGENT_CANCEL.
    AgentCancel,
    /// TRANSFER.
    Transfer,
    /// MINER_REGISTER.
    MinerRegister,
    /// SOCIAL_BLOB_INIT.
    BlobInit,
    /// SOCIAL_BLOB_CHUNK.
    BlobChunk,
    /// SOCIAL_BLOB_FINALIZE.
    BlobFinalize,
    /// VALIDATOR_VOTE.
    ValidatorVote,
}

fn unsupported(type_name: &str) -> Rejection {
    let expected = format_args!("one of {}", Body::TYPES.join(", "));
    Rejection::new(Code::UnsupportedType, "type", format_args!("{type_name:?}"), expected)
}

impl Body {
    /// What the transaction works on. A turn that merely mentions a run has no subject.
    #[must_use]
    pub fn subject(&self) -> Option<Subject<'_>> {
        for_kind!(self, fields => fields.subject())
    }

    /// The run that an AGENT transaction is about. A turn that merely mentions a run has none.
    #[must_use]
    pub fn agent_run_id(&self) -> Option<Hash> {
        match self.subject()? {
            Subject::Run(id) => Some(id),
            Subject::Blob(_) | Subject::Validators => None,
        }
    }

    /// Whom the transaction pays, as far as it says so itself.
    #[must_use]
    pub fn payee(&self, sender: Address) -> Option<Address> {
        for_kind!(self, fields => fields.payee(sender))
    }

    pub(crate) fn write_required(&self, out: &mut ObjectWriter<'_>) {
        for_kind!(self, fields => fields.write_required(out));
    }

    pub(crate) fn write_optional(&self, out: &mut ObjectWriter<'_>) {
        for_kind!(self, fields => fields.write_optional(out));
    }

    pub(crate) fn check_static(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        for_kind!(self, fields => fields.check_static(view))
    }
}

#[cfg(test)]
mod tests;
