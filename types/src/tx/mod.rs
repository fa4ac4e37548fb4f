//! The kinds of transactions: one file each, with the declaration of its fields.
//!
//! A kind says here what a wallet needs; what it does to the state is in the file of the same name
//! in the crate `state`. CONTRIBUTING.md has the recipe for a new one.

mod agent_call;
mod agent_cancel;
mod agent_claim;
mod agent_finish;
mod agent_refuse;
mod agent_register;
mod agent_request;
mod agent_retire;
mod agent_step;
mod blob_chunk;
mod blob_finalize;
mod blob_init;
mod call_appeal;
mod call_commit;
mod call_reveal;
mod chat_turn;
pub(crate) mod declare;
mod evidence;
pub(crate) mod fields;
mod fork_vote;
mod miner_bond;
mod miner_offer;
mod miner_register;
mod miner_unbond;
mod param_vote;
pub mod spec;
mod transfer;
mod validator_vote;
pub(crate) mod value;

use declare::{Declared, Members};
use fields::Fields;
use spec::KindSpec;

pub use agent_call::{CallPrices, OnResult, WorkLimits};
pub use agent_claim::HARDWARE_TIERS;
pub use agent_finish::FINISH_STATUSES;
pub use agent_request::{MINERS_MAX, Protection, REFUSE_MS_MAX, RunOfAgent, TOOL_BYTES_MAX};
pub use agent_step::{TOOL_CALLS_MAX, ToolCall};
pub use chat_turn::{ATTACHMENT_TYPES, ATTACHMENTS_MAX, Attachment, ROLES};
pub use evidence::{EVIDENCE_KINDS, NIL, SignedMessage};
pub use validator_vote::Consent;
pub use value::{HexBytes, WrittenAddress};

use crate::forks::Fork;
use crate::json::{self, ObjectWriter};
use crate::params::JSON_DEPTH_MAX;
use crate::{Address, Code, Hash, Params, Rejection};

/// What a kind's static check may look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticView<'a> {
    pub(crate) params: &'a Params,
    pub(crate) signer: Address,
    /// The transaction's own time.
    pub(crate) timestamp: u64,
}

/// What a kind adds to its declaration.
pub(crate) trait Kind: Declared {
    /// Checks what the limits of single fields cannot say. Errors are INVALID_FIELD.
    fn check_together(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        let _ = view;
        Ok(())
    }
    /// What the transaction works on, if others can stand in its way there.
    fn subject(&self) -> Option<Subject<'_>> {
        None
    }
    /// Whom the transaction pays, as far as it says so itself.
    fn payee(&self, sender: Address) -> Option<Address> {
        let _ = sender;
        None
    }
    /// Whether a member of the kind itself is what the block's proposer gets.
    fn has_own_tip(&self) -> bool {
        false
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
    /// An agent.
    Agent(Hash),
    /// A call.
    Call(Hash),
}

/// The one list of kinds: makes [`Body`] and everything that asks a body's kind.
macro_rules! kinds {
    // `$d` is a dollar sign, for the macro that this one writes.
    ($d:tt; $($module:ident::$kind:ident,)*) => {
        $(pub use $module::$kind;)*

        /// What a transaction does: the fields of its kind. In the order of the protocol's table.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Body {
            $(
                #[doc = stringify!($kind)]
                $kind($kind),
            )*
        }

        $(impl From<$kind> for Body {
            fn from(fields: $kind) -> Self {
                Self::$kind(fields)
            }
        })*

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

            /// The declarations of every kind, in the same order.
            pub const KINDS: &'static [KindSpec] = &[$($kind::SPEC,)*];

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
                    $(Self::$kind(_) => $kind::SPEC.fork,)*
                }
            }
        }
    };
}

kinds! { $;
    chat_turn::ChatTurn,
    agent_request::AgentRequest,
    agent_claim::AgentClaim,
    agent_step::AgentStep,
    agent_finish::AgentFinish,
    agent_cancel::AgentCancel,
    transfer::Transfer,
    miner_register::MinerRegister,
    blob_init::BlobInit,
    blob_chunk::BlobChunk,
    blob_finalize::BlobFinalize,
    validator_vote::ValidatorVote,
    fork_vote::ForkVote,
    param_vote::ParamVote,
    miner_bond::MinerBond,
    miner_unbond::MinerUnbond,
    agent_refuse::AgentRefuse,
    evidence::Evidence,
    agent_register::AgentRegister,
    agent_retire::AgentRetire,
    miner_offer::MinerOffer,
    agent_call::AgentCall,
    call_commit::CallCommit,
    call_reveal::CallReveal,
    call_appeal::CallAppeal,
}

fn unsupported(type_name: &str) -> Rejection {
    let expected = format_args!("one of {}", Body::TYPES.join(", "));
    Rejection::new(Code::UnsupportedType, "type", format_args!("{type_name:?}"), expected)
}

impl Body {
    /// Reads the own fields of a kind from the text of a JSON object, whatever else it has.
    ///
    /// # Errors
    /// UNSUPPORTED_TYPE, or MALFORMED for the first field that is missing or not of its form.
    pub fn parse(type_name: &str, text: &[u8]) -> Result<Self, Rejection> {
        let value = json::parse(text, JSON_DEPTH_MAX)
            .map_err(|e| Rejection::malformed("fields", e, "one flat JSON object"))?;
        let body = Self::read(type_name, &Fields::of(&value)?)?;
        for_kind!(&body, fields => fields.require_later())?;
        for_kind!(&body, fields => fields.require_latest())?;
        Ok(body)
    }

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
            Subject::Blob(_) | Subject::Validators | Subject::Agent(_) | Subject::Call(_) => None,
        }
    }

    /// Whom the transaction pays, as far as it says so itself.
    #[must_use]
    pub fn payee(&self, sender: Address) -> Option<Address> {
        for_kind!(self, fields => fields.payee(sender))
    }

    /// Whether a member of the kind itself is what the block's proposer gets: then there is no `tip`.
    #[must_use]
    pub fn has_own_tip(&self) -> bool {
        for_kind!(self, fields => fields.has_own_tip())
    }

    pub(crate) fn write_required(&self, out: &mut ObjectWriter<'_>) {
        for_kind!(self, fields => fields.write_required(out));
    }

    pub(crate) fn write_optional(&self, out: &mut ObjectWriter<'_>) {
        for_kind!(self, fields => fields.write_optional(out));
    }

    pub(crate) fn check_later(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        for_kind!(self, fields => fields.check_later(view))
    }

    pub(crate) fn check_latest(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        for_kind!(self, fields => fields.check_latest(view))
    }

    pub(crate) fn check_static(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        for_kind!(self, fields => {
            fields.check_members(view).and_then(|()| fields.check_together(view))
        })
    }
}

#[cfg(test)]
mod tests;
