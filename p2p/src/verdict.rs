//! What is said to gossipsub about a message, and so about who sent it.
//!
//! | the pool's answers | verdict | what it means |
//! |---|---|---|
//! | one of them is wrong for every node at every time | reject | the sender is at fault, its score falls |
//! | else one was refused, or none was new | ignore | not forwarded; what was new goes out in packs of this node's own |
//! | else | accept | the message is forwarded |
//!
//! A node packs only what its own pool accepted, and forwards a pack only after this verdict. So
//! one bad signature in a pack is the fault of whoever sent it, and so fair to count against the
//! whole pack; a transaction in it that lost a race here may have won it there. And what a node's
//! pool refused it does not pass on, so that nobody can have an honest node bring others what they
//! refuse (`credit.rs`).
//!
//! What is known already is not forwarded: whoever gave it to this node spreads it too. Replays of
//! old transactions, and copies signed again by their own signer, so end at the first node.

use libp2p::gossipsub::MessageAcceptance;
use types::Code;

use crate::SignedTx;
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
    } else if outcomes.contains(&Outcome::New) && !has_refused(outcomes) {
        MessageAcceptance::Accept
    } else {
        MessageAcceptance::Ignore
    }
}

/// The new transactions of a message that is ignored because others in it were refused.
pub(crate) fn fresh(txs: Vec<SignedTx>, outcomes: &[Outcome]) -> Vec<SignedTx> {
    if offence(outcomes).is_some() || !has_refused(outcomes) {
        return Vec::new();
    }
    let new = txs.into_iter().zip(outcomes).filter(|(_, outcome)| **outcome == Outcome::New);
    new.map(|(tx, _)| tx).collect()
}

fn has_refused(outcomes: &[Outcome]) -> bool {
    outcomes.iter().any(|outcome| matches!(outcome, Outcome::Refused(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_by_the_pools_answers() {
        let lost = Outcome::Refused(Code::RunNotPending);
        let bad = Outcome::Refused(Code::BadSignature);
        let cases: [(&[Outcome], &str); 9] = [
            (&[Outcome::New], "Accept"),
            (&[Outcome::Known], "Ignore"),
            (&[lost], "Ignore"),
            (&[Outcome::Unable], "Ignore"),
            (&[bad], "Reject"),
            (&[Outcome::New, bad], "Reject"),
            (&[lost, Outcome::New], "Ignore"),
            (&[Outcome::Known, Outcome::New], "Accept"),
            (&[Outcome::Known, lost], "Ignore"),
        ];
        for (outcomes, expected) in cases {
            assert_eq!(expected, format!("{:?}", verdict(outcomes)), "{outcomes:?}");
        }
    }

    #[test]
    fn what_is_new_goes_on_without_what_was_refused_beside_it() {
        let tx = |text: &str| SignedTx::new(text, types::Signature::new([7; 64]));
        let txs = || vec![tx("one"), tx("two"), tx("three")];
        let lost = Outcome::Refused(Code::RunNotPending);
        let bad = Outcome::Refused(Code::BadSignature);
        let of = |outcomes: &[Outcome]| fresh(txs(), outcomes);
        assert_eq!(vec![tx("two")], of(&[lost, Outcome::New, Outcome::Known]));
        assert!(of(&[Outcome::New, Outcome::New, Outcome::Known]).is_empty(), "it is forwarded");
        assert!(of(&[bad, Outcome::New, lost]).is_empty(), "nothing of an offender");
    }
}
