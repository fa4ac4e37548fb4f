//! What is said to gossipsub about a message, and so about who sent it.
//!
//! | the pool's answers | verdict | what it means |
//! |---|---|---|
//! | one of them is wrong for every node at every time | reject | the sender is at fault, its score falls |
//! | else one was new to the pool | accept | the message is forwarded |
//! | else | ignore | not forwarded, nobody's fault |
//!
//! A node packs only what its own pool accepted, and forwards a pack only after this verdict. So
//! one bad signature in a pack is the fault of whoever sent it, and so fair to count against the
//! whole pack; a transaction in it that lost a race here may have won it there.
//!
//! What is known already is not forwarded: whoever gave it to this node spreads it too. Replays of
//! old transactions, and copies signed again by their own signer, so end at the first node.

use libp2p::gossipsub::MessageAcceptance;
use types::Code;

use crate::ports::Outcome;

/// Whose fault a refusal is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// Of whoever sent it: it could be seen without any state.
    Sender,
    /// Nobody's: it depends on the state, on the room in the pool, or on the time.
    Nobody,
}

/// Whose fault a refusal with this code is.
pub(crate) const fn fault_of(code: Code) -> Fault {
    match code {
        Code::Malformed
        | Code::UnsupportedType
        | Code::AddressMismatch
        | Code::HashMismatch
        | Code::BadSignature
        | Code::ChainIdMismatch
        | Code::InvalidField => Fault::Sender,
        // A peer that is ahead may be past the fork, and its clock may differ.
        Code::ForkNotActive
        | Code::ClockSkew
        | Code::NonceStale
        | Code::NonceTooHigh
        | Code::NonceTaken
        | Code::InsufficientBalance
        | Code::RunIdMismatch
        | Code::RunExists
        | Code::RunNotFound
        | Code::RunNotPending
        | Code::RunNotActive
        | Code::NotRunMiner
        | Code::NotSubmitter
        | Code::MinerExcluded
        | Code::StepOutOfOrder
        | Code::StepLimit
        | Code::TokensLimit
        | Code::EscrowExhausted
        | Code::SettlementMismatch
        | Code::BlobNotFound
        | Code::BlobNotFinal
        | Code::BlobExists
        | Code::BlobChunk
        | Code::BlobHash
        | Code::NotBlobOwner
        | Code::TurnNotFound
        | Code::NotValidator
        | Code::ValidatorUnchanged
        | Code::ValidatorSetLimit
        | Code::VoteLimit
        | Code::PoolFull
        | Code::SenderLimit => Fault::Nobody,
    }
}

/// The code of the first answer that is the sender's fault.
pub(crate) fn offence(outcomes: &[Outcome]) -> Option<Code> {
    outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Refused(code) if fault_of(*code) == Fault::Sender => Some(*code),
        Outcome::New | Outcome::Known | Outcome::Refused(_) | Outcome::Unable => None,
    })
}

/// The verdict on a message with these transactions.
pub(crate) fn verdict(outcomes: &[Outcome]) -> MessageAcceptance {
    if offence(outcomes).is_some() {
        MessageAcceptance::Reject
    } else if outcomes.contains(&Outcome::New) {
        MessageAcceptance::Accept
    } else {
        MessageAcceptance::Ignore
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_without_state_is_the_senders_fault() {
        for code in Code::ALL {
            assert_eq!(code.is_peer_fault(), fault_of(code) == Fault::Sender, "{code}");
        }
    }

    #[test]
    fn verdicts_by_the_pools_answers() {
        let lost = Outcome::Refused(Code::RunNotPending);
        let bad = Outcome::Refused(Code::BadSignature);
        let cases: [(&[Outcome], &str); 8] = [
            (&[Outcome::New], "Accept"),
            (&[Outcome::Known], "Ignore"),
            (&[lost], "Ignore"),
            (&[Outcome::Unable], "Ignore"),
            (&[bad], "Reject"),
            (&[Outcome::New, bad], "Reject"),
            (&[lost, Outcome::New], "Accept"),
            (&[Outcome::Known, lost], "Ignore"),
        ];
        for (outcomes, expected) in cases {
            assert_eq!(expected, format!("{:?}", verdict(outcomes)), "{outcomes:?}");
        }
    }
}
