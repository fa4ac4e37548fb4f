//! Every message survives its way; what cannot be is refused.

use malachitebft_app::types::streaming::StreamId;
use malachitebft_core_types::{
    CommitSignature, Context, NilOrVal, PolkaSignature, Round, RoundCertificate,
    RoundCertificateType, RoundSignature, SignedMessage, Validity, VoteType,
};
use malachitebft_engine::util::streaming::StreamContent;
use malachitebft_sync::ValueRequest;
use types::Hash;

use super::*;
use crate::engine::context::{Address, Proposal, Value, Vote};
use crate::testing::peer;

const ROUND: Round = Round::new(3);

fn address(byte: u8) -> Address {
    types::Address::new([byte; 20]).into()
}

fn value(byte: u8) -> Value {
    Hash::new([byte; 32]).into()
}

fn signature(byte: u8) -> Signature {
    types::Signature::new([byte; 64]).into()
}

fn vote(height: u64, round: Round) -> Vote {
    Ctx.new_precommit(Height(height), round, NilOrVal::Val(value(1)), address(2))
}

fn proposal(height: u64, round: Round, pol_round: Round) -> Proposal {
    Ctx.new_proposal(Height(height), round, value(1), pol_round, address(2))
}

fn certificate() -> CommitCertificate<Ctx> {
    CommitCertificate {
        height: Height(7),
        round: ROUND,
        value_id: value(4),
        commit_signatures: vec![
            CommitSignature::new(address(1), signature(5)),
            CommitSignature::new(address(2), signature(6)),
        ],
    }
}

/// Checks the way there and back, and that longer and shorter bytes are refused.
fn survives<T: PartialEq + std::fmt::Debug>(message: &T)
where
    Borsh: Codec<T, Error = io::Error>,
{
    let decoded = |bytes: Bytes| -> io::Result<T> { Borsh.decode(bytes) };
    let bytes = Borsh.encode(message).expect("encoding");
    assert_eq!(&decoded(bytes.clone()).expect("decoding"), message);
    let mut long = bytes.to_vec();
    long.push(0);
    assert!(decoded(long.into()).is_err(), "trailing bytes are refused");
    for length in 0..bytes.len() {
        assert!(decoded(bytes.slice(..length)).is_err(), "short bytes are refused");
    }
}

/// Whether a message is encoded and not taken back.
fn is_refused<T>(message: &T) -> bool
where
    Borsh: Codec<T, Error = io::Error>,
{
    let bytes = Borsh.encode(message).expect("encoding");
    <Borsh as Codec<T>>::decode(&Borsh, bytes).is_err()
}

#[test]
fn consensus_messages_survive() {
    let vote = SignedMessage::new(vote(1, ROUND), signature(9));
    survives(&SignedConsensusMsg::<Ctx>::Vote(vote.clone()));
    let proposal = SignedMessage::new(proposal(1, ROUND, Round::Nil), signature(9));
    survives(&SignedConsensusMsg::<Ctx>::Proposal(proposal));
    survives(&LivenessMsg::Vote(vote));
    survives(&LivenessMsg::PolkaCertificate(polka()));
    survives(&LivenessMsg::SkipRoundCertificate(RoundCertificate {
        height: Height(1),
        round: ROUND,
        cert_type: RoundCertificateType::Skip,
        round_signatures: vec![RoundSignature::new(
            VoteType::Prevote,
            NilOrVal::Nil,
            address(1),
            signature(1),
        )],
    }));
}

fn polka() -> PolkaCertificate<Ctx> {
    PolkaCertificate {
        height: Height(1),
        round: ROUND,
        value_id: value(2),
        polka_signatures: vec![PolkaSignature::new(address(1), signature(1))],
    }
}

#[test]
fn what_the_log_keeps_survives() {
    survives(&polka());
    survives(&ProposedValue::<Ctx> {
        height: Height(1),
        round: ROUND,
        valid_round: Round::Nil,
        proposer: address(1),
        value: value(1),
        validity: Validity::Invalid,
    });
}

#[test]
fn network_messages_survive() {
    let part = Part::Chunk(vec![1, 2, 3]);
    survives(&part);
    let stream = StreamId::new(Bytes::from_static(b"stream"));
    survives(&StreamMessage::new(stream.clone(), 2, StreamContent::Data(part)));
    survives(&StreamMessage::<Part>::new(stream, 3, StreamContent::Fin));
    survives(&Status::<Ctx> {
        peer_id: peer(1),
        tip_height: Height(9),
        history_min_height: Height(1),
    });
    survives(&Request::<Ctx>::ValueRequest(ValueRequest::new(Height(1)..=Height(5))));
    let value = RawDecidedValue::new(Bytes::from_static(b"block"), extended(certificate()));
    let response = Response::ValueResponse(ValueResponse::new(Height(7), vec![value]));
    survives(&response);
    let length = Borsh.encoded_len(&response).expect("a length");
    assert_eq!(length, Borsh.encode(&response).expect("encoding").len());
    survives(&ValidatorProof::<Ctx>::new(vec![1; 32], vec![2; 38], signature(3)));
}

#[test]
fn impossible_heights_and_rounds_are_refused() {
    for (height, round) in [(0, ROUND), (1, Round::Nil)] {
        let vote = SignedMessage::new(vote(height, round), signature(9));
        assert!(is_refused(&LivenessMsg::Vote(vote.clone())));
        assert!(is_refused(&SignedConsensusMsg::<Ctx>::Vote(vote)));
    }
    for (height, round, pol) in
        [(0, ROUND, Round::Nil), (1, Round::Nil, Round::Nil), (1, ROUND, ROUND)]
    {
        let proposal = SignedMessage::new(proposal(height, round, pol), signature(9));
        assert!(is_refused(&SignedConsensusMsg::<Ctx>::Proposal(proposal)));
    }
}
