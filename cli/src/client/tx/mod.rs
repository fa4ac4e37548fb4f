//! `ombra tx`: one transaction of any kind, built, signed here, sent and waited for.

pub(super) mod agent;
mod any;
mod appeal;
mod blob;
mod command;
mod deliver;
mod escrow;
mod evidence;
mod fork_vote;
mod kinds;
mod options;
mod param_vote;
mod protection;
mod refuse;
mod stake;

pub use agent::{AgentRegisterArgs, AgentRetireArgs};
pub use any::AnyArgs;
pub use appeal::AppealArgs;
pub use blob::BlobArgs;
pub use command::{TxCommand, run};
pub use evidence::EvidenceArgs;
pub use fork_vote::ForkVoteArgs;
pub use kinds::{
    CancelArgs, ChatArgs, ClaimArgs, FinishArgs, RegisterArgs, RequestArgs, StepArgs,
    StepOutputArgs, TermsArgs, TransferArgs, ValidatorVoteArgs,
};
pub(super) use options::SECONDS_MAX;
pub use options::{EnvelopeArgs, SendArgs, WaitArgs};
pub use param_vote::ParamVoteArgs;
pub use protection::ProtectionArgs;
pub use refuse::RefuseArgs;
pub use stake::{BondArgs, OfferArgs, UnbondArgs};

pub(crate) use super::signer::Sender;
pub(super) use blob::bodies as blob_bodies;
pub(crate) use deliver::block_of;
pub(super) use deliver::rejection_of;
