//! EVIDENCE: two messages of which an honest validator signs only one (docs/protocol.md section
//! 5.17).

use std::sync::OnceLock;

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::{IntegerLimit, TextLimit};
use super::static_view::StaticView;
use crate::params::INTEGER_MAX;
use crate::sign_bytes::{Domain, ProposalFields, VoteFields, VoteKind};
use crate::{Hash, PublicKey, Rejection, Signature};

/// The kinds of messages of which a validator may sign only one for each height and round.
pub const EVIDENCE_KINDS: &[&str] = &["proposal", "prevote", "precommit"];
/// The written form of a vote for no block.
pub const NIL: &str = "nil";

/// `nil`, or the 64 characters of a hash.
const VALUE: TextLimit = TextLimit::Bytes { min: 3, max: 64 };
/// The largest round of the consensus engine.
const ROUND: IntegerLimit = IntegerLimit::range(0, 0xffff_ffff, "");
const HEIGHT: IntegerLimit = IntegerLimit::range(1, INTEGER_MAX, "blocks");

declare! {
    /// Proves that a validator signed two different messages for the same height and round.
    kind Evidence = "EVIDENCE", section "5.17", fork V7 {
        required {
            /// The consensus key that signed both messages.
            validator_key "validatorKey": PublicKey, Key;
            /// The height of both messages.
            height "height": u64, Integer(HEIGHT);
            /// The round of both messages.
            round "round": u64, Integer(ROUND);
            /// The kind of both messages: `proposal`, `prevote` or `precommit`.
            kind "kind": String, Text(TextLimit::OneOf(EVIDENCE_KINDS));
            /// The value of the first message: a block hash, or `nil`.
            first_value "firstValue": String, Text(VALUE);
            /// The signature of the first message.
            first_signature "firstSignature": Signature, Signature;
            /// The value of the second message: a block hash, or `nil`.
            second_value "secondValue": String, Text(VALUE);
            /// The signature of the second message.
            second_signature "secondSignature": Signature, Signature;
        }
        optional {
            /// The valid round of the first message, if it is a proposal that has one.
            first_valid_round "firstValidRound": u64, Integer(ROUND);
            /// The valid round of the second message, if it is a proposal that has one.
            second_valid_round "secondValidRound": u64, Integer(ROUND);
        }
    }
}

/// One of the two messages of an [`Evidence`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignedMessage {
    /// The member of the transaction with the signature.
    pub member: &'static str,
    /// The signature.
    pub signature: Signature,
    /// The block's hash; `None` for a vote for nil.
    pub value: Option<Hash>,
    valid_round: Option<u64>,
}

impl Evidence {
    /// The two messages in order.
    #[must_use]
    pub fn messages(&self) -> [SignedMessage; 2] {
        let first = (&self.first_value, self.first_signature, self.first_valid_round);
        let second = (&self.second_value, self.second_signature, self.second_valid_round);
        [("firstSignature", first), ("secondSignature", second)].map(
            |(member, (value, signature, valid_round))| SignedMessage {
                member,
                signature,
                value: Hash::parse(value).ok(),
                valid_round,
            },
        )
    }

    /// The bytes that the validator signed for one of the messages; `None` for a proposal of nil,
    /// which nobody signs.
    #[must_use]
    pub fn signed_bytes(&self, message: &SignedMessage, domain: &Domain) -> Option<Vec<u8>> {
        let Self { validator_key, height, kind, .. } = self;
        let (height, validator) = (*height, validator_key.address());
        let round = signed_round(Some(self.round));
        let SignedMessage { value, valid_round, .. } = *message;
        let vote = |kind| domain.vote(&VoteFields { kind, height, round, value, validator });
        match kind.as_str() {
            "prevote" => Some(vote(VoteKind::Prevote)),
            "precommit" => Some(vote(VoteKind::Precommit)),
            _ => {
                let valid_round = signed_round(valid_round);
                let fields =
                    ProposalFields { height, round, valid_round, value: value?, validator };
                Some(domain.proposal(&fields))
            }
        }
    }

    /// The first of the two messages that the validator did not sign.
    #[must_use]
    pub fn forged(&self, domain: &Domain) -> Option<SignedMessage> {
        let is_forged = |message: &SignedMessage| {
            let bytes = self.signed_bytes(message, domain);
            !bytes.is_some_and(|bytes| self.validator_key.verify(&bytes, &message.signature))
        };
        self.messages().into_iter().find(is_forged)
    }

    /// What is wrong with one of the messages, whoever signed it.
    fn check_message(
        &self,
        value: (&'static str, &str),
        valid_round: (&'static str, Option<u64>),
    ) -> Result<(), Rejection> {
        let is_proposal = self.kind == "proposal";
        let (name, text) = value;
        if Hash::parse(text).is_err() && (is_proposal || text != NIL) {
            let nil = if is_proposal { "" } else { ", or nil" };
            let expected = format_args!("64 lowercase hex characters{nil}");
            return Err(Rejection::invalid(name, text, expected));
        }
        let (name, round) = valid_round;
        match round.filter(|_| !is_proposal) {
            Some(round) => {
                let expected = format_args!("no valid round, which a {} does not have", self.kind);
                Err(Rejection::invalid(name, round, expected))
            }
            None => Ok(()),
        }
    }
}

/// What [`Evidence::forged`] answered when it was first asked: two signatures take a tenth of a
/// millisecond, and the pool asks under its lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict(OnceLock<Box<(Domain, Option<SignedMessage>)>>);

impl Verdict {
    /// [`Evidence::forged`] of the one evidence that this is the verdict on.
    pub(crate) fn forged(&self, evidence: &Evidence, domain: &Domain) -> Option<SignedMessage> {
        let judge = || Box::new((domain.clone(), evidence.forged(domain)));
        let (judged_in, forged) = &**self.0.get_or_init(judge);
        if judged_in.signs_like(domain, evidence.height) {
            *forged
        } else {
            evidence.forged(domain)
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        self.0.get().is_some()
    }
}

/// A transaction is the same, whether somebody has judged it or not.
impl PartialEq for Verdict {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Verdict {}

/// A round as it is signed; none is −1.
fn signed_round(round: Option<u64>) -> i64 {
    round.map_or(-1, |round| i64::try_from(round).unwrap_or(i64::MAX))
}

impl Kind for Evidence {
    fn check_together(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        let first = ("firstValidRound", self.first_valid_round);
        let second = ("secondValidRound", self.second_valid_round);
        self.check_message(("firstValue", &self.first_value), first)?;
        self.check_message(("secondValue", &self.second_value), second)
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Validators)
    }
}

#[cfg(test)]
mod tests {
    //! What becomes of an evidence whose signatures somebody has looked at.

    use super::*;
    use crate::build::{Envelope, build_tx};
    use crate::{Body, Keypair, Params, SizeLimits, Transaction};

    fn domain(chain_id: &str, v7_from: Option<u64>) -> Domain {
        Domain { chain_id: chain_id.into(), genesis_hash: Hash::ZERO, v7_from }
    }

    /// A transaction with evidence of block 3, signed in the domain.
    fn transaction(domain: &Domain) -> Transaction {
        let key = Keypair::from_seed(&[1; 32]);
        let nothing = Signature::new([0; 64]);
        let said = Evidence {
            validator_key: key.public_key(),
            height: 3,
            round: 0,
            kind: "prevote".to_owned(),
            first_value: Hash::ZERO.to_string(),
            first_signature: nothing,
            second_value: NIL.to_owned(),
            second_signature: nothing,
            first_valid_round: None,
            second_valid_round: None,
        };
        let [first_signature, second_signature] =
            said.messages().map(|it| key.sign(&said.signed_bytes(&it, domain).unwrap()));
        let body = Body::Evidence(Evidence { first_signature, second_signature, ..said });
        let text = build_tx(&key, &body, &Envelope::new(0, 1, None));
        Transaction::parse(text.as_bytes(), &SizeLimits::from(&Params::default())).unwrap()
    }

    #[test]
    fn a_verdict_holds_in_its_own_domain_alone() {
        let (here, there) = (domain("here", Some(1)), domain("there", Some(1)));
        let member =
            |tx: &Transaction, domain: &Domain| tx.forged_message(domain).map(|it| it.member);
        for first in [&here, &there] {
            let tx = transaction(&here);
            assert!(!tx.is_judged());
            let _kept = tx.forged_message(first);
            assert!(tx.is_judged());
            assert_eq!(None, member(&tx, &here));
            assert_eq!(Some("firstSignature"), member(&tx, &there));
            assert_eq!(None, member(&tx, &domain("here", Some(3))), "v7 has begun as well");
            assert_eq!(Some("firstSignature"), member(&tx, &domain("here", Some(4))));
            assert_eq!(transaction(&here), tx, "who has asked makes no difference");
        }
    }
}
