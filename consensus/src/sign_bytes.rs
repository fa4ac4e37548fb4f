//! The exact bytes that validators sign.
//!
//! Every message begins with a tag that no other message of the chain begins with, and with the
//! chain id, so that a signature means one thing on one chain. All integers are big-endian. A
//! round is 8 bytes, two's complement; -1 stands for "none". `Ed25519` signs the bytes as they
//! are, unhashed; signatures are checked by the rule of docs/protocol.md section 3.
//!
//! ```text
//! every message
//!   tag             ASCII, as below
//!   chain id length 4 bytes
//!   chain id        UTF-8
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
//! A block is final when precommits for its hash, of one height and round, are signed by more
//! than two thirds of the voting power: that is what a [`Certificate`](crate::Certificate) holds.

use types::{Address, Hash};

const VOTE_TAG: &[u8] = b"ombra/vote/v1";
const PROPOSAL_TAG: &[u8] = b"ombra/proposal/v1";
const BODY_TAG: &[u8] = b"ombra/body/v1";

/// Which of the two votes of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteKind {
    /// The block of this round was seen and is valid.
    Prevote,
    /// A quorum prevoted the block.
    Precommit,
}

/// A vote, as far as it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoteFields {
    /// Prevote or precommit.
    pub kind: VoteKind,
    /// The height that is being decided.
    pub height: u64,
    /// The round, -1 for none.
    pub round: i64,
    /// The block's hash, or nothing for a vote against every block of the round.
    pub value: Option<Hash>,
    /// The voter.
    pub validator: Address,
}

/// A proposal, as far as it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProposalFields {
    /// The height that is being decided.
    pub height: u64,
    /// The round, -1 for none.
    pub round: i64,
    /// The earlier round in which a quorum prevoted this block, -1 for none.
    pub valid_round: i64,
    /// The block's hash.
    pub value: Hash,
    /// The proposer.
    pub validator: Address,
}

/// The header of a block body on its way to the other validators, as far as it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyFields {
    /// The height that is being decided.
    pub height: u64,
    /// The round in which it was first proposed.
    pub round: u32,
    /// Who proposed it then.
    pub proposer: Address,
    /// The block's hash.
    pub value: Hash,
    /// Length of the encoded block in bytes.
    pub size: u32,
    /// SHA-256 of the encoded block.
    pub digest: Hash,
}

/// What a validator signs to vote.
#[must_use]
pub fn vote(chain_id: &str, fields: &VoteFields) -> Vec<u8> {
    let VoteFields { kind, height, round, value, validator } = *fields;
    let mut bytes = begin(VOTE_TAG, chain_id);
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

/// What a validator signs to propose.
#[must_use]
pub fn proposal(chain_id: &str, fields: &ProposalFields) -> Vec<u8> {
    let ProposalFields { height, round, valid_round, value, validator } = *fields;
    let mut bytes = begin(PROPOSAL_TAG, chain_id);
    bytes.extend_from_slice(&height.to_be_bytes());
    bytes.extend_from_slice(&round.to_be_bytes());
    bytes.extend_from_slice(&valid_round.to_be_bytes());
    bytes.extend_from_slice(value.as_bytes());
    bytes.extend_from_slice(validator.as_bytes());
    bytes
}

/// What a validator signs so that others take the body of its proposal.
#[must_use]
pub fn body(chain_id: &str, fields: &BodyFields) -> Vec<u8> {
    let BodyFields { height, round, proposer, value, size, digest } = *fields;
    let mut bytes = begin(BODY_TAG, chain_id);
    bytes.extend_from_slice(&height.to_be_bytes());
    bytes.extend_from_slice(&i64::from(round).to_be_bytes());
    bytes.extend_from_slice(proposer.as_bytes());
    bytes.extend_from_slice(value.as_bytes());
    bytes.extend_from_slice(&size.to_be_bytes());
    bytes.extend_from_slice(digest.as_bytes());
    bytes
}

fn begin(tag: &[u8], chain_id: &str) -> Vec<u8> {
    let length =
        u32::try_from(chain_id.len()).expect("genesis bounds the chain id far below 4 GiB");
    let mut bytes = Vec::with_capacity(192);
    bytes.extend_from_slice(tag);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(chain_id.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    const CHAIN: &str = "ombra-1";

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
        assert_eq!(hex(&vote(CHAIN, &fields)), expected.concat());
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
        assert_eq!(hex(&vote(CHAIN, &fields)), expected.concat());
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
        assert_eq!(hex(&proposal(CHAIN, &fields)), expected.concat());
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
        assert_eq!(hex(&body(CHAIN, &fields)), expected.concat());
    }
}
