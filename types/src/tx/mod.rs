//! The kinds of transactions: one file each, with the declaration of the kind's fields.
//!
//! The file of a kind has what a wallet needs; the file of the same name in the crate `state` has
//! what the kind does to the state. CONTRIBUTING.md has the recipe for a new kind.

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
mod kind;
mod miner_bond;
mod miner_offer;
mod miner_register;
mod miner_unbond;
mod param_vote;
pub mod spec;
mod static_view;
mod transfer;
mod validator_vote;
pub(crate) mod value;

pub use agent_call::{CallPrices, OnResult, WorkLimits};
pub use agent_claim::HARDWARE_TIERS;
pub use agent_finish::FINISH_STATUSES;
pub use agent_request::{MINERS_MAX, Protection, REFUSE_MS_MAX, RunOfAgent, TOOL_BYTES_MAX};
pub use agent_step::{TOOL_CALLS_MAX, ToolCall};
pub use chat_turn::{ATTACHMENT_TYPES, ATTACHMENTS_MAX, Attachment, ROLES};
pub(crate) use evidence::Verdict;
pub use evidence::{EVIDENCE_KINDS, NIL, SignedMessage};
pub use kind::Subject;
pub(crate) use static_view::StaticView;
pub use validator_vote::Consent;
pub use value::{HexBytes, WrittenAddress};

use declare::{Declared, Members};
use fields::Fields;
use kind::Kind;
use spec::KindSpec;

use crate::forks::Fork;
use crate::json::{self, ObjectWriter};
use crate::params::JSON_DEPTH_MAX;
use crate::{Address, Code, Hash, Rejection};

/// The one list of kinds: makes [`Body`] and everything that depends on a body's kind.
macro_rules! kinds {
    // `$d` is a dollar sign, for the macro that this one writes.
    ($d:tt; $($module:ident::$kind:ident,)*) => {
        $(pub use $module::$kind;)*

        /// What a transaction does: the fields of its kind. The variants are in the order of the
        /// protocol's table.
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

        #[cfg(test)]
        impl crate::testing::Generated for Body {
            fn any() -> proptest::strategy::BoxedStrategy<Self> {
                use proptest::strategy::Strategy as _;
                let kinds = [$($kind::any().prop_map(Self::$kind).boxed(),)*];
                proptest::strategy::Union::new(kinds).boxed()
            }
        }

        /// Evaluates an expression with the fields of a [`Body`](crate::Body), whatever its kind:
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

            /// The fork that the kind requires; `None` if it is valid from block 1 on.
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
    /// Reads a kind's own fields from the text of a JSON object, and ignores all other members.
    ///
    /// # Errors
    /// UNSUPPORTED_TYPE, or MALFORMED for the first field that is missing or has the wrong form.
    pub fn parse(type_name: &str, text: &[u8]) -> Result<Self, Rejection> {
        let value = json::parse(text, JSON_DEPTH_MAX)
            .map_err(|e| Rejection::malformed("fields", e, "one flat JSON object"))?;
        let body = Self::read(type_name, &Fields::of(&value)?)?;
        for_kind!(&body, fields => fields.require_later())?;
        for_kind!(&body, fields => fields.require_latest())?;
        Ok(body)
    }

    /// What the transaction works on. A turn that only mentions a run has no subject.
    #[must_use]
    pub fn subject(&self) -> Option<Subject<'_>> {
        for_kind!(self, fields => fields.subject())
    }

    /// The run that an AGENT transaction is about. A turn that only mentions a run has none.
    #[must_use]
    pub fn agent_run_id(&self) -> Option<Hash> {
        match self.subject()? {
            Subject::Run(id) => Some(id),
            Subject::Blob(_) | Subject::Validators | Subject::Agent(_) | Subject::Call(_) => None,
        }
    }

    /// The account that the transaction pays, as far as its own fields say.
    #[must_use]
    pub fn payee(&self, sender: Address) -> Option<Address> {
        for_kind!(self, fields => fields.payee(sender))
    }

    /// Whether one of the kind's own fields is the tip for the block's proposer; such a kind has no
    /// `tip`.
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
