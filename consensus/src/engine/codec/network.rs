//! What comes in from others: votes and proposals for later heights only if they are
//! [admitted](crate::admission).

use std::io;

use bytes::Bytes;
use malachitebft_app::types::SignedConsensusMsg;
use malachitebft_app::types::codec::Codec;
use malachitebft_core_types::{
    Context, NilOrVal, Round, SignedMessage, SignedProposal, SignedVote,
};
use types::{Address, Hash};

use super::{Borsh, LivenessMsg};
use crate::admission::{Admission, Admitted, Message};
use crate::engine::context::{Ctx, Height};
use crate::engine::scheme::Signature;
use crate::engine::signing::Verifier;

/// The codec of the engine's network.
#[derive(Clone, Debug)]
pub(crate) struct NetworkCodec {
    pub(crate) admission: Admission,
    pub(crate) verifier: Verifier,
}

impl NetworkCodec {
    fn admits_vote(&self, vote: &SignedVote<Ctx>) -> io::Result<bool> {
        let fields = vote.message.fields();
        let signed = self.verifier.vote_bytes(&fields);
        self.admits(fields.height, fields.validator, &signed, &vote.signature)
    }

    fn admits_proposal(&self, proposal: &SignedProposal<Ctx>) -> io::Result<bool> {
        let fields = proposal.message.fields();
        let signed = self.verifier.proposal_bytes(&fields);
        self.admits(fields.height, fields.validator, &signed, &proposal.signature)
    }

    /// Whether the engine gets a message. One that is not an honest validator's is an error, which the
    /// engine logs with its sender.
    fn admits(
        &self,
        height: u64,
        validator: Address,
        signed: &[u8],
        signature: &Signature,
    ) -> io::Result<bool> {
        let message = Message { height, validator, digest: Hash::digest(signed) };
        let admitted = self.admission.admit(&message, |validator| {
            self.verifier.is_signed(signed, &validator.public_key, &signature.get())
        });
        match admitted {
            Admitted::Yes => Ok(true),
            Admitted::Useless => Ok(false),
            Admitted::No => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "of a later height, and not admitted",
            )),
        }
    }
}

/// What the engine gets in the place of a message that is of no use: a vote for a height that is over,
/// which it drops at once.
fn nothing() -> SignedVote<Ctx> {
    let nobody = Address::default().into();
    let vote = Ctx.new_prevote(Height(0), Round::new(0), NilOrVal::Nil, nobody);
    SignedMessage::new(vote, types::Signature::new([0; 64]).into())
}

impl Codec<SignedConsensusMsg<Ctx>> for NetworkCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<SignedConsensusMsg<Ctx>> {
        let message: SignedConsensusMsg<Ctx> = Borsh.decode(bytes)?;
        let is_admitted = match &message {
            SignedConsensusMsg::Vote(vote) => self.admits_vote(vote)?,
            SignedConsensusMsg::Proposal(proposal) => self.admits_proposal(proposal)?,
        };
        Ok(if is_admitted { message } else { SignedConsensusMsg::Vote(nothing()) })
    }

    fn encode(&self, message: &SignedConsensusMsg<Ctx>) -> io::Result<Bytes> {
        Borsh.encode(message)
    }
}

impl Codec<LivenessMsg> for NetworkCodec {
    type Error = io::Error;

    /// The engine keeps no certificates for later heights.
    fn decode(&self, bytes: Bytes) -> io::Result<LivenessMsg> {
        let message: LivenessMsg = Borsh.decode(bytes)?;
        let is_admitted = match &message {
            LivenessMsg::Vote(vote) => self.admits_vote(vote)?,
            LivenessMsg::PolkaCertificate(_) | LivenessMsg::SkipRoundCertificate(_) => true,
        };
        Ok(if is_admitted { message } else { LivenessMsg::Vote(nothing()) })
    }

    fn encode(&self, message: &LivenessMsg) -> io::Result<Bytes> {
        Borsh.encode(message)
    }
}

#[cfg(test)]
mod tests;
