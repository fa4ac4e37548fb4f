//! What comes in of what others send.

use malachitebft_app::types::codec::Codec;
use types::Keypair;
use types::sign_bytes::VoteFields;

use super::*;
use crate::engine::context::Value;
use crate::testing::{CHAIN, TIP, domain, key, tip, verifier};

fn codec() -> NetworkCodec {
    let admission = Admission::default();
    admission.set_tip(&tip());
    admission.start(TIP);
    NetworkCodec { admission, verifier: verifier(domain(CHAIN)) }
}

/// A vote of one validator, signed with a key.
fn vote(height: u64, validator: &Keypair, signer: &Keypair) -> SignedVote<Ctx> {
    let block = NilOrVal::Val(Value::from(Hash::ZERO));
    let vote = Ctx.new_prevote(Height(height), Round::new(0), block, validator.address().into());
    let fields: VoteFields = vote.fields();
    SignedMessage::new(vote, signer.sign(&domain(CHAIN).vote(&fields)).into())
}

/// What comes in of it, on both of its ways; none if it is an error.
fn came(codec: &NetworkCodec, vote: &SignedVote<Ctx>) -> [Option<SignedVote<Ctx>>; 2] {
    let gossip = SignedConsensusMsg::Vote(vote.clone());
    let gossip = Codec::<SignedConsensusMsg<Ctx>>::encode(codec, &gossip).expect("encoding");
    let gossip = match codec.decode(gossip) {
        Ok(SignedConsensusMsg::Vote(vote)) => Some(vote),
        Ok(other) => panic!("{other:?}"),
        Err(_) => None,
    };
    let again = LivenessMsg::Vote(vote.clone());
    let again = Codec::<LivenessMsg>::encode(codec, &again).expect("encoding");
    let again = match codec.decode(again) {
        Ok(LivenessMsg::Vote(vote)) => Some(vote),
        Ok(other) => panic!("{other:?}"),
        Err(_) => None,
    };
    [gossip, again]
}

#[test]
fn votes_for_later_heights_come_in_once_and_only_if_their_validators_signed_them() {
    let codec = codec();
    for height in TIP + 1..TIP + 3 {
        let forged = vote(height, &key(1), &key(2));
        assert_eq!(came(&codec, &forged), [None, None], "{height}");
        let good = vote(height, &key(1), &key(1));
        assert_eq!(came(&codec, &good), [Some(good), Some(nothing())], "{height}");
    }
    let now = vote(TIP, &key(1), &key(2));
    assert_eq!(came(&codec, &now), [Some(now.clone()), Some(now)], "the engine checks it");
    let far = vote(TIP + 99, &key(1), &key(1));
    assert_eq!(came(&codec, &far), [Some(nothing()), Some(nothing())]);
}

#[test]
fn proposals_for_later_heights_come_in_only_if_their_validators_signed_them() {
    let codec = codec();
    let came = |signer: &Keypair| {
        let (height, proposer) = (Height(TIP + 1), key(1).address().into());
        let proposal =
            Ctx.new_proposal(height, Round::new(0), Hash::ZERO.into(), Round::Nil, proposer);
        let signature = signer.sign(&domain(CHAIN).proposal(&proposal.fields())).into();
        let message = SignedConsensusMsg::Proposal(SignedMessage::new(proposal, signature));
        let bytes = Codec::<SignedConsensusMsg<Ctx>>::encode(&codec, &message).expect("encoding");
        let came: io::Result<SignedConsensusMsg<Ctx>> = codec.decode(bytes);
        came.ok().map(|came| came == message)
    };
    assert_eq!((came(&key(2)), came(&key(1))), (None, Some(true)));
    assert_eq!(came(&key(1)), Some(false), "it is there already");
}
