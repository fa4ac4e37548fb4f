//! The exact bytes that validators sign.
//!
//! Every message begins with a tag that no other message of the chain begins with, and with the
//! chain id, so that a signature means one thing on one chain. All integers are big-endian. A
//! round is 8 bytes, two's complement; -1 stands for "none". `Ed25519` signs the bytes as they
//! are, unhashed; signatures are checked by the rule of docs/protocol.md section 3.
//!
//! Heights from fork v7 on have the second version of the tags, with `v2` at their ends. It binds
//! signatures to the genesis file as well: two chains may have the same id.
//!
//! ```text
//! every message
//!   tag             ASCII, as below
//!   chain id length 4 bytes
//!   chain id        UTF-8
//!   genesis hash    32 bytes, in the second version only
//!
//! "ombra/vote/v1"   then
//!   kind            1 byte: 1 prevote, 2 precommit
//!   height          8 bytes
//!   round           8 bytes
//!   value           1 byte 0 (nil), or 1 byte 1 and the 32 bytes of the block hash
//!   validator       20 bytes of the voter's address
//!
//! "ombra/proposal/v1" then
//!   height          8 bytes
//!   round           8 bytes
//!   valid round     8 bytes: the round in which the block was prevoted by a quorum, or -1
//!   value           32 bytes of the block hash
//!   validator       20 bytes of the proposer's address
//!
//! "ombra/body/v1"   then
//!   height          8 bytes
//!   round           8 bytes
//!   proposer        20 bytes of the proposer's address
//!   value           32 bytes of the block hash
//!   size            4 bytes: length of the encoded block
//!   digest          32 bytes: SHA-256 of the encoded block
//! ```
//!
//! Each message is longer than 32 bytes, whatever the chain id: proofs of randomness ([`crate::vrf`])
//! derive their nonces from as many.
//!
//! A block is final when precommits for its hash, of one height and round, are signed by more
//! than two thirds of the voting power.

use std::sync::{Arc, OnceLock};

use crate::{Address, Hash};

/// A tag in both versions.
struct Tag([&'static [u8]; 2]);

const VOTE: Tag = Tag([b"ombra/vote/v1", b"ombra/vote/v2"]);
const PROPOSAL: Tag = Tag([b"ombra/proposal/v1", b"ombra/proposal/v2"]);
const BODY: Tag = Tag([b"ombra/body/v1", b"ombra/body/v2"]);

/// What makes the signatures of one chain's validators differ from those of every other chain's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domain {
    /// The id of the chain.
    pub chain_id: Arc<str>,
    /// The hash of its genesis file.
    pub genesis_hash: Hash,
    /// The first height whose messages have the second version; `None` if there is none.
    pub v7_from: Option<u64>,
}

/// The [`Domain`] of a running chain, shared by everything that signs and checks there. If genesis
/// does not name fork v7, the validators may fix its height by votes (docs/protocol.md section
/// 8.1); all copies then learn it at the same moment. This happens at least `forkDelayBlocks`,
/// which is at least one block, before anything at that height is signed.
#[derive(Clone, Debug)]
pub struct SharedDomain {
    chain_id: Arc<str>,
    genesis_hash: Hash,
    v7_from: Arc<OnceLock<u64>>,
}

impl From<Domain> for SharedDomain {
    fn from(domain: Domain) -> Self {
        let Domain { chain_id, genesis_hash, v7_from } = domain;
        let cell = OnceLock::new();
        if let Some(height) = v7_from {
            // A new cell is empty.
            let _is_first = cell.set(height);
        }
        Self { chain_id, genesis_hash, v7_from: Arc::new(cell) }
    }
}

impl SharedDomain {
    /// The domain as far as it is known now.
    #[must_use]
    pub fn now(&self) -> Domain {
        Domain {
            chain_id: Arc::clone(&self.chain_id),
            genesis_hash: self.genesis_hash,
            v7_from: self.v7_from(),
        }
    }

    /// The first height whose messages have the second version, as far as it is known.
    #[must_use]
    pub fn v7_from(&self) -> Option<u64> {
        self.v7_from.get().copied()
    }

    /// Tells all copies the height of v7, which never changes. Returns the height that they have
    /// now; it differs from `height` if another height was told before.
    #[must_use]
    pub fn fix_v7(&self, height: u64) -> u64 {
        *self.v7_from.get_or_init(|| height)
    }
}

/// Which of the two votes of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteKind {
    /// This round's block was seen and is valid.
    Prevote,
    /// A quorum prevoted the block.
    Precommit,
}

/// The signed fields of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoteFields {
    /// Prevote or precommit.
    pub kind: VoteKind,
    /// The height that is being decided.
    pub height: u64,
    /// The round; −1 for none.
    pub round: i64,
    /// The hash of the block; `None` for a vote against every block of the round.
    pub value: Option<Hash>,
    /// The voter.
    pub validator: Address,
}

/// The signed fields of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProposalFields {
    /// The height that is being decided.
    pub height: u64,
    /// The round; −1 for none.
    pub round: i64,
    /// The earlier round in which a quorum prevoted this block; −1 for none.
    pub valid_round: i64,
    /// The block's hash.
    pub value: Hash,
    /// The proposer.
    pub validator: Address,
}

/// The signed fields of the head of a block's body, which a proposer sends to the other validators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyFields {
    /// The height that is being decided.
    pub height: u64,
    /// The round in which the block was first proposed.
    pub round: u32,
    /// The validator that proposed it then.
    pub proposer: Address,
    /// The block's hash.
    pub value: Hash,
    /// The length of the encoded block in bytes.
    pub size: u32,
    /// The SHA-256 of the encoded block.
    pub digest: Hash,
}

/// The text that the key of a new validator signs to agree to become one (docs/protocol.md section
/// 5.11). Votes for the key must have this time as `expiresAt`, in milliseconds since 1970.
#[must_use]
pub fn acceptance(genesis_hash: &Hash, address: &Address, expires_at: u64) -> Vec<u8> {
    format!("ombra-validator|{genesis_hash}|{address}|{expires_at}").into_bytes()
}

impl Domain {
    /// The bytes that a validator signs for a vote.
    #[must_use]
    pub fn vote(&self, fields: &VoteFields) -> Vec<u8> {
        let VoteFields { kind, height, round, value, validator } = *fields;
        let mut bytes = self.begin(&VOTE, height);
        bytes.push(match kind {
            VoteKind::Prevote => 1,
            VoteKind::Precommit => 2,
        });
        bytes.extend_from_slice(&height.to_be_bytes());
        bytes.extend_from_slice(&round.to_be_bytes());
        match value {
            None => bytes.push(0),
            Some(hash) => {
                bytes.push(1);
                bytes.extend_from_slice(hash.as_bytes());
            }
        }
        bytes.extend_from_slice(validator.as_bytes());
        bytes
    }

    /// The bytes that a validator signs for a proposal.
    #[must_use]
    pub fn proposal(&self, fields: &ProposalFields) -> Vec<u8> {
        let ProposalFields { height, round, valid_round, value, validator } = *fields;
        let mut bytes = self.begin(&PROPOSAL, height);
        bytes.extend_from_slice(&height.to_be_bytes());
        bytes.extend_from_slice(&round.to_be_bytes());
        bytes.extend_from_slice(&valid_round.to_be_bytes());
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(validator.as_bytes());
        bytes
    }

    /// The bytes that a proposer signs for the body of its proposal, so that others accept it.
    #[must_use]
    pub fn body(&self, fields: &BodyFields) -> Vec<u8> {
        let BodyFields { height, round, proposer, value, size, digest } = *fields;
        let mut bytes = self.begin(&BODY, height);
        bytes.extend_from_slice(&height.to_be_bytes());
        bytes.extend_from_slice(&i64::from(round).to_be_bytes());
        bytes.extend_from_slice(proposer.as_bytes());
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(&size.to_be_bytes());
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    /// Whether messages of a height have the same bytes in both.
    pub(crate) fn signs_like(&self, other: &Self, height: u64) -> bool {
        self.chain_id == other.chain_id
            && self.genesis_hash == other.genesis_hash
            && self.is_second(height) == other.is_second(height)
    }

    /// Whether messages of a height have the second version.
    fn is_second(&self, height: u64) -> bool {
        self.v7_from.is_some_and(|from| height >= from)
    }

    fn begin(&self, tag: &Tag, height: u64) -> Vec<u8> {
        let Self { chain_id, genesis_hash, v7_from: _ } = self;
        let Tag([first, second]) = tag;
        let is_second = self.is_second(height);
        let length =
            u32::try_from(chain_id.len()).expect("genesis bounds the chain id far below 4 GiB");
        let mut bytes = Vec::with_capacity(224);
        bytes.extend_from_slice(if is_second { second } else { first });
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(chain_id.as_bytes());
        if is_second {
            bytes.extend_from_slice(genesis_hash.as_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(v7_from: Option<u64>) -> Domain {
        Domain { chain_id: "ombra-1".into(), genesis_hash: Hash::new([0x99; 32]), v7_from }
    }

    #[test]
    fn a_precommit_is_signed_over_these_bytes() {
        let fields = VoteFields {
            kind: VoteKind::Precommit,
            height: 258,
            round: 1,
            value: Some(Hash::new([0xaa; 32])),
            validator: Address::new([0xbb; 20]),
        };
        let expected = [
            "6f6d6272612f766f74652f7631", // ombra/vote/v1
            "00000007",
            "6f6d6272612d31", // ombra-1
            "02",
            "0000000000000102",
            "0000000000000001",
            "01",
            &"aa".repeat(32),
            &"bb".repeat(20),
        ];
        assert_eq!(const_hex::encode(domain(None).vote(&fields)), expected.concat());
    }

    #[test]
    fn a_nil_prevote_is_signed_over_these_bytes() {
        let fields = VoteFields {
            kind: VoteKind::Prevote,
            height: u64::MAX,
            round: -1,
            value: None,
            validator: Address::new([0x01; 20]),
        };
        let expected = [
            "6f6d6272612f766f74652f7631",
            "00000007",
            "6f6d6272612d31",
            "01",
            "ffffffffffffffff",
            "ffffffffffffffff",
            "00",
            &"01".repeat(20),
        ];
        assert_eq!(const_hex::encode(domain(None).vote(&fields)), expected.concat());
    }

    #[test]
    fn a_proposal_is_signed_over_these_bytes() {
        let fields = ProposalFields {
            height: 3,
            round: 2,
            valid_round: -1,
            value: Hash::new([0xcc; 32]),
            validator: Address::new([0xdd; 20]),
        };
        let expected = [
            "6f6d6272612f70726f706f73616c2f7631", // ombra/proposal/v1
            "00000007",
            "6f6d6272612d31",
            "0000000000000003",
            "0000000000000002",
            "ffffffffffffffff",
            &"cc".repeat(32),
            &"dd".repeat(20),
        ];
        assert_eq!(const_hex::encode(domain(None).proposal(&fields)), expected.concat());
    }

    #[test]
    fn a_body_is_sealed_over_these_bytes() {
        let fields = BodyFields {
            height: 3,
            round: 2,
            proposer: Address::new([0x11; 20]),
            value: Hash::new([0x22; 32]),
            size: 65_537,
            digest: Hash::new([0x33; 32]),
        };
        let expected = [
            "6f6d6272612f626f64792f7631", // ombra/body/v1
            "00000007",
            "6f6d6272612d31",
            "0000000000000003",
            "0000000000000002",
            &"11".repeat(20),
            &"22".repeat(32),
            "00010001",
            &"33".repeat(32),
        ];
        assert_eq!(const_hex::encode(domain(None).body(&fields)), expected.concat());
    }

    #[test]
    fn every_copy_learns_the_height_of_v7_once() {
        let shared = SharedDomain::from(domain(None));
        let copy = shared.clone();
        assert_eq!(copy.now(), domain(None));
        assert_eq!(shared.fix_v7(5), 5);
        assert_eq!(copy.now(), domain(Some(5)));
        assert_eq!(copy.fix_v7(6), 5, "it is fixed for good");
        assert_eq!(shared.now(), domain(Some(5)));
        assert_eq!(SharedDomain::from(domain(Some(7))).fix_v7(5), 7, "genesis has fixed it");
    }

    #[test]
    fn no_message_is_as_short_as_what_a_proof_of_randomness_derives_its_nonce_from() {
        let (height, round, value, validator) = (1, 0, Hash::ZERO, Address::new([0; 20]));
        let kind = VoteKind::Prevote;
        let vote = VoteFields { kind, height, round, value: None, validator };
        let proposal = ProposalFields { height, round, valid_round: -1, value, validator };
        let (proposer, digest) = (validator, Hash::ZERO);
        let body = BodyFields { height, round: 0, proposer, value, size: 1, digest };
        for v7_from in [None, Some(0)] {
            let shortest = Domain { chain_id: "".into(), ..domain(v7_from) };
            let messages =
                [shortest.vote(&vote), shortest.proposal(&proposal), shortest.body(&body)];
            assert!(messages.iter().all(|message| message.len() > 32), "{messages:?}");
        }
    }

    #[test]
    fn a_new_validator_agrees_with_this_text() {
        let text = acceptance(&Hash::new([0x99; 32]), &Address::new([0xbb; 20]), 1_700_000_000_000);
        let expected =
            format!("ombra-validator|{}|{}|1700000000000", "99".repeat(32), "bb".repeat(20));
        assert_eq!(text, expected.as_bytes());
    }

    #[test]
    fn from_v7_on_the_genesis_hash_is_signed_too() {
        let validator = Address::new([0xbb; 20]);
        let vote = |height| VoteFields {
            kind: VoteKind::Prevote,
            height,
            round: 0,
            value: None,
            validator,
        };
        let rest =
            |height: &str| ["01", height, "0000000000000000", "00", &"bb".repeat(20)].concat();
        let expected = [
            "6f6d6272612f766f74652f7632", // ombra/vote/v2
            "00000007",
            "6f6d6272612d31", // ombra-1
            &"99".repeat(32),
            &rest("0000000000000005"),
        ];
        assert_eq!(const_hex::encode(domain(Some(5)).vote(&vote(5))), expected.concat());
        let before = ["6f6d6272612f766f74652f7631", "00000007", "6f6d6272612d31"];
        let before = before.concat() + &rest("0000000000000004");
        assert_eq!(const_hex::encode(domain(Some(5)).vote(&vote(4))), before);
        assert_eq!(domain(Some(5)).vote(&vote(4)), domain(None).vote(&vote(4)));

        let (height, round, value) = (5, 0, Hash::ZERO);
        let proposal = ProposalFields { height, round, valid_round: -1, value, validator };
        let (proposer, digest) = (validator, Hash::ZERO);
        let body = BodyFields { height, round: 0, proposer, value, size: 1, digest };
        let of = |domain: Domain| [domain.proposal(&proposal), domain.body(&body)];
        for (message, tag) in of(domain(Some(5))).iter().zip(["ombra/proposal/v2", "ombra/body/v2"])
        {
            assert!(message.starts_with(tag.as_bytes()));
            assert!(message.windows(32).any(|bytes| bytes == [0x99; 32]));
        }
        let other = Domain { genesis_hash: Hash::ZERO, ..domain(Some(5)) };
        assert!(of(domain(Some(5))).iter().zip(of(other)).all(|(one, other)| *one != other));
    }
}
