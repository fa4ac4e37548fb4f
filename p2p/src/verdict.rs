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

/// The code of the first answer that is the sender's fault.
pub(crate) fn offence(outcomes: &[Outcome]) -> Option<Code> {
    outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Refused(code) if code.is_peer_fault() => Some(*code),
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
