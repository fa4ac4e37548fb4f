//! A vote for fork v7, the first fork that validators agree on, from the time before there was a
//! kind for such votes: a TRANSFER of an account to itself with two members that no kind defines
//! (docs/protocol.md section 8.1).

use crate::json::{self, Json};
use crate::params::{INTEGER_MAX, JSON_DEPTH_MAX};
use crate::{Amount, Body, ForkVote, Transaction};

/// The member that names the fork.
pub(crate) const FORK_MEMBER: &str = "forkVote";
/// The member with the height.
pub(crate) const HEIGHT_MEMBER: &str = "forkHeight";

impl ForkVote {
    /// Whether a transaction can be a vote. Cheap, because it does not parse the text again.
    #[must_use]
    pub fn may_be(tx: &Transaction) -> bool {
        let Body::Transfer(transfer) = tx.body() else { return false };
        let is_empty = transfer.amount == Amount::ZERO && transfer.fee == Amount::ZERO;
        // The payload is in canonical form, so a member's name stands in it as it is.
        is_empty && transfer.to.address == tx.from() && tx.payload().contains(FORK_MEMBER)
    }

    /// What a transaction votes for; `None` if it does not have exactly the form of a vote. Does
    /// not check who may vote, and for which forks and heights.
    #[must_use]
    pub fn of(tx: &Transaction) -> Option<Self> {
        if !Self::may_be(tx) {
            return None;
        }
        let Ok(Json::Object(members)) = json::parse(tx.payload().as_bytes(), JSON_DEPTH_MAX) else {
            return None;
        };
        let member = |name| members.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let fork = member(FORK_MEMBER)?.as_str()?.to_owned();
        let literal = member(HEIGHT_MEMBER)?.as_number()?;
        let is_plain = literal.bytes().all(|byte| byte.is_ascii_digit());
        let height = literal.parse().ok().filter(|height| is_plain && *height <= INTEGER_MAX)?;
        Some(Self { fork, height })
    }
}

#[cfg(test)]
mod tests {
    //! What is a vote, and what only looks like one.

    use super::*;
    use crate::build::{Envelope, Unsigned};
    use crate::transaction::SizeLimits;
    use crate::{Keypair, Params};

    fn key() -> Keypair {
        Keypair::from_seed(&[7; 32])
    }

    fn parsed(payload: &str) -> Transaction {
        Transaction::parse_unsigned(payload.as_bytes(), &SizeLimits::from(&Params::default()))
            .expect("a transaction")
    }

    /// A transfer with these fields, and `rest` after the timestamp.
    fn transfer(to: &str, amount: &str, fee: &str, rest: &str) -> Transaction {
        let (from, key) = (key().address(), key().public_key());
        parsed(&format!(
            r#"{{"type":"TRANSFER","from":"{from}","to":"{to}","amount":"{amount}","fee":"{fee}","nonce":0,"timestamp":1{rest},"publicKey":"{key}"}}"#
        ))
    }

    #[test]
    fn what_is_built_as_a_vote_is_read_as_one() {
        let envelope = Envelope::new(3, 5, Some("c".to_owned()));
        let vote = ForkVote { fork: "v7".to_owned(), height: 200_000 };
        let unsigned = Unsigned::fork_vote(&vote, &key().public_key(), &envelope);
        let tx = parsed(unsigned.payload());
        assert_eq!(tx.hash(), unsigned.hash());
        assert_eq!(ForkVote::of(&tx), Some(vote));
        assert_eq!((tx.nonce(), tx.chain_id()), (3, Some("c")));
    }

    #[test]
    fn a_vote_is_a_transfer_of_nothing_to_oneself_in_either_written_form() {
        let own = key().address().to_string();
        let rest = r#","forkVote":"v7","forkHeight":9"#;
        let vote = Some(ForkVote { fork: "v7".to_owned(), height: 9 });
        assert_eq!(ForkVote::of(&transfer(&own, "0", "0", rest)), vote);
        assert_eq!(ForkVote::of(&transfer(&format!("ox{own}"), "0", "0", rest)), vote);
        let other = Keypair::from_seed(&[8; 32]).address().to_string();
        assert_eq!(ForkVote::of(&transfer(&other, "0", "0", rest)), None);
        assert_eq!(ForkVote::of(&transfer(&own, "1", "0", rest)), None);
        assert_eq!(ForkVote::of(&transfer(&own, "0", "1", rest)), None);
    }

    #[test]
    fn members_of_any_other_type_or_place_are_no_vote() {
        let own = key().address().to_string();
        for rest in [
            "",
            r#","forkVote":"v7""#,
            r#","forkHeight":9"#,
            r#","forkVote":7,"forkHeight":9"#,
            r#","forkVote":null,"forkHeight":9"#,
            r#","forkVote":["v7"],"forkHeight":9"#,
            r#","forkVote":{"forkVote":"v7","forkHeight":9},"forkHeight":9"#,
            r#","deeper":{"forkVote":"v7","forkHeight":9}"#,
            r#","forkVote":"v7","forkHeight":"9""#,
            r#","forkVote":"v7","forkHeight":-9"#,
            r#","forkVote":"v7","forkHeight":9.0"#,
            r#","forkVote":"v7","forkHeight":9e0"#,
            r#","forkVote":"v7","forkHeight":true"#,
            r#","forkVote":"v7","forkHeight":null"#,
            r#","forkVote":"v7","forkHeight":[9]"#,
            r#","forkVote":"v7","forkHeight":9007199254740992"#,
            r#","forkVote":"v7","forkHeight":99999999999999999999999999"#,
        ] {
            assert_eq!(ForkVote::of(&transfer(&own, "0", "0", rest)), None, "{rest}");
        }
    }
}
