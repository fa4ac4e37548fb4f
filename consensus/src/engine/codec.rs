//! How the engine's messages travel, and how its log keeps them: borsh, canonical, bounded.
//!
//! [`Borsh`] is the codec of the log; [`NetworkCodec`] reads the same bytes and is choosy.
//! Certificates of synced blocks travel without vote extensions, which this chain does not use.
//! Votes and proposals are refused at decoding when their height or round cannot be.

use std::io;

use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use malachitebft_app::types::codec::{Codec, HasEncodedLen};
use malachitebft_app::types::streaming::StreamMessage;
use malachitebft_app::types::sync::{RawDecidedValue, Request, Response, Status};
use malachitebft_app::types::{ProposedValue, SignedConsensusMsg};
use malachitebft_core_types::{
    CommitCertificate, ExtendedCommitCertificate, PolkaCertificate, ValidatorProof, VoteExtensions,
};
use malachitebft_sync::ValueResponse;

use super::context::{Ctx, Height};
use super::scheme::Signature;
use crate::parts::Part;

mod network;

pub(crate) use network::NetworkCodec;

type LivenessMsg = malachitebft_app::consensus::LivenessMsg<Ctx>;

/// Most decided blocks in one sync response that are looked at.
const RESPONSE_VALUES_MAX: usize = 64;

/// The codec of everything. Encoding never fails; decoding refuses what is not canonical.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Borsh;

macro_rules! plain {
    ($($message:ty),+ $(,)?) => { $(
        impl Codec<$message> for Borsh {
            type Error = io::Error;

            fn decode(&self, bytes: Bytes) -> io::Result<$message> {
                borsh::from_slice(&bytes)
            }

            fn encode(&self, message: &$message) -> io::Result<Bytes> {
                borsh::to_vec(message).map(Bytes::from)
            }
        }
    )+ };
}

plain!(
    Part,
    StreamMessage<Part>,
    ProposedValue<Ctx>,
    PolkaCertificate<Ctx>,
    Status<Ctx>,
    Request<Ctx>,
);

macro_rules! from_anybody {
    ($($message:ty),+ $(,)?) => { $(
        impl Codec<$message> for NetworkCodec {
            type Error = io::Error;

            fn decode(&self, bytes: Bytes) -> io::Result<$message> {
                Borsh.decode(bytes)
            }

            fn encode(&self, message: &$message) -> io::Result<Bytes> {
                Borsh.encode(message)
            }
        }
    )+ };
}

from_anybody!(
    Part,
    StreamMessage<Part>,
    ValidatorProof<Ctx>,
    Status<Ctx>,
    Request<Ctx>,
    Response<Ctx>,
);

impl Codec<SignedConsensusMsg<Ctx>> for Borsh {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<SignedConsensusMsg<Ctx>> {
        let message: SignedConsensusMsg<Ctx> = borsh::from_slice(&bytes)?;
        plausible(match &message {
            SignedConsensusMsg::Vote(vote) => vote.is_plausible(),
            SignedConsensusMsg::Proposal(proposal) => proposal.is_plausible(),
        })?;
        Ok(message)
    }

    fn encode(&self, message: &SignedConsensusMsg<Ctx>) -> io::Result<Bytes> {
        borsh::to_vec(message).map(Bytes::from)
    }
}

impl Codec<LivenessMsg> for Borsh {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<LivenessMsg> {
        let message: LivenessMsg = borsh::from_slice(&bytes)?;
        plausible(match &message {
            LivenessMsg::Vote(vote) => vote.is_plausible(),
            LivenessMsg::PolkaCertificate(certificate) => certificate.round.is_defined(),
            LivenessMsg::SkipRoundCertificate(certificate) => certificate.round.is_defined(),
        })?;
        Ok(message)
    }

    fn encode(&self, message: &LivenessMsg) -> io::Result<Bytes> {
        borsh::to_vec(message).map(Bytes::from)
    }
}

fn plausible(holds: bool) -> io::Result<()> {
    if holds {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "height or round cannot be"))
    }
}

#[derive(BorshSerialize, BorshDeserialize)]
struct ProofWire {
    public_key: Vec<u8>,
    peer_id: Vec<u8>,
    signature: Signature,
}

impl Codec<ValidatorProof<Ctx>> for Borsh {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<ValidatorProof<Ctx>> {
        let ProofWire { public_key, peer_id, signature } = borsh::from_slice(&bytes)?;
        Ok(ValidatorProof::new(public_key, peer_id, signature))
    }

    fn encode(&self, proof: &ValidatorProof<Ctx>) -> io::Result<Bytes> {
        let wire = ProofWire {
            public_key: proof.public_key.clone(),
            peer_id: proof.peer_id.clone(),
            signature: proof.signature,
        };
        borsh::to_vec(&wire).map(Bytes::from)
    }
}

/// A sync response: start height, then for each block its bytes and its certificate.
#[derive(BorshSerialize)]
struct ResponseWire<'a> {
    start: Height,
    values: Vec<(&'a [u8], CommitCertificate<Ctx>)>,
}

#[derive(BorshDeserialize)]
struct OwnedResponseWire {
    start: Height,
    values: Vec<(Vec<u8>, CommitCertificate<Ctx>)>,
}

fn response_wire(response: &Response<Ctx>) -> ResponseWire<'_> {
    let Response::ValueResponse(response) = response;
    let values = response
        .values
        .iter()
        .map(|value| (&*value.value_bytes, value.certificate.trim_vote_extensions()))
        .collect();
    ResponseWire { start: response.start_height, values }
}

impl Codec<Response<Ctx>> for Borsh {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<Response<Ctx>> {
        let OwnedResponseWire { start, values } = borsh::from_slice(&bytes)?;
        if values.len() > RESPONSE_VALUES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "too many blocks"));
        }
        let values = values
            .into_iter()
            .map(|(bytes, certificate)| RawDecidedValue::new(bytes.into(), extended(certificate)))
            .collect();
        Ok(Response::ValueResponse(ValueResponse::new(start, values)))
    }

    fn encode(&self, response: &Response<Ctx>) -> io::Result<Bytes> {
        borsh::to_vec(&response_wire(response)).map(Bytes::from)
    }
}

impl HasEncodedLen<Response<Ctx>> for Borsh {
    fn encoded_len(&self, response: &Response<Ctx>) -> io::Result<usize> {
        borsh::object_length(&response_wire(response))
    }
}

impl HasEncodedLen<Response<Ctx>> for NetworkCodec {
    fn encoded_len(&self, response: &Response<Ctx>) -> io::Result<usize> {
        Borsh.encoded_len(response)
    }
}

/// Lifts a certificate to the engine's form that could carry vote extensions.
pub(crate) fn extended(certificate: CommitCertificate<Ctx>) -> ExtendedCommitCertificate<Ctx> {
    ExtendedCommitCertificate::from_commit_certificate_and_extensions(
        certificate,
        VoteExtensions::default(),
    )
}

#[cfg(test)]
mod tests;
