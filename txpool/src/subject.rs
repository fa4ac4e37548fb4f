//! What a transaction is about, so that those that hang together can fall together.

use types::{Body, Code, Hash};

/// The run or the blob that a transaction works on, or the validator set. A transaction that merely
/// mentions a run (a turn) has no subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Subject<'a> {
    Run(Hash),
    Blob(&'a str),
    Validators,
}

impl<'a> Subject<'a> {
    pub(crate) fn of(body: &'a Body) -> Option<Self> {
        match body {
            Body::AgentRequest(_)
            | Body::AgentClaim(_)
            | Body::AgentStep(_)
            | Body::AgentFinish(_)
            | Body::AgentCancel(_) => body.agent_run_id().map(Self::Run),
            Body::BlobInit(blob) => Some(Self::Blob(&blob.blob_id)),
            Body::BlobChunk(blob) => Some(Self::Blob(&blob.blob_id)),
            Body::BlobFinalize(blob) => Some(Self::Blob(&blob.blob_id)),
            Body::ValidatorVote(_) => Some(Self::Validators),
            Body::ChatTurn(_) | Body::Transfer(_) | Body::MinerRegister(_) => None,
        }
    }
}

/// Whether a refusal says that its sender has no business with the subject: then the sender's later
/// transactions about it cannot be right either. (Any other refusal may be about one transaction
/// alone, and the sender may put another one in its place.)
pub(crate) const fn is_about_the_subject(code: Code) -> bool {
    matches!(
        code,
        Code::RunIdMismatch
            | Code::RunExists
            | Code::RunNotFound
            | Code::RunNotPending
            | Code::RunNotActive
            | Code::NotRunMiner
            | Code::NotSubmitter
            | Code::MinerExcluded
            | Code::BlobNotFound
            | Code::BlobExists
            | Code::NotBlobOwner
            | Code::NotValidator
    )
}
