//! What builders write: the order of the protocol's table, and signatures made elsewhere.

use super::{Envelope, Unsigned, build_tx};
use crate::json::{self, Json};
use crate::testing::{Draft, TABLE, bodies, body, golden_key, limits, members};
use crate::{Body, Code, Transaction};

fn envelope() -> Envelope {
    Envelope::new(6, 1_715_990_000_000, None)
}

fn keys(text: &str) -> Vec<String> {
    let Json::Object(members) = json::parse(text.as_bytes(), 8).unwrap() else { panic!("{text}") };
    members.into_iter().map(|(key, _)| key.into_owned()).collect()
}

#[test]
fn members_stand_in_the_order_of_the_protocols_table() {
    assert_eq!(TABLE.map(|(name, _)| name), Body::TYPES);
    assert_eq!(TABLE.len(), bodies().len());
    for (body, (name, _)) in bodies().iter().zip(TABLE) {
        assert_eq!(body.type_name(), name);
        let [required, optional] = members(name).map(|half| half.into_iter().map(|(key, _)| key));
        let own = required.chain(["nonce", "timestamp"]).chain(optional);
        let own = own.collect::<Vec<_>>().join(" ");
        for (chain_id, named) in [(None, ""), (Some("test".to_owned()), "chainId ")] {
            let text = build_tx(&golden_key(), body, &Envelope { chain_id, ..envelope() });
            let expected = format!("type from {own} {named}publicKey hash signature");
            assert_eq!(keys(&text).join(" "), expected);
        }
    }
}

#[test]
fn absent_optional_members_are_left_out() {
    for body in bodies() {
        let [_, optional] = members(body.type_name());
        let draft = optional.iter().fold(Draft::of(&body), |draft, (key, _)| draft.without(key));
        let body = draft.parse().unwrap().body().clone();
        let text = build_tx(&golden_key(), &body, &envelope());
        let after =
            keys(&text).split_off(keys(&text).iter().position(|key| key == "timestamp").unwrap());
        assert_eq!(after, ["timestamp", "publicKey", "hash", "signature"]);
        let tx = Transaction::parse(text.as_bytes(), &limits()).unwrap();
        assert_eq!(tx.body(), &body, "absent and empty are different things");
    }
}

#[test]
fn a_body_is_read_back_from_the_members_that_were_written() {
    for body in bodies() {
        let text = build_tx(&golden_key(), &body, &envelope());
        assert_eq!(Body::parse(body.type_name(), text.as_bytes()), Ok(body));
    }
    let rejection = Body::parse("NO_KIND", b"{}").unwrap_err();
    assert_eq!(rejection.code(), Code::UnsupportedType);
    let rejection = Body::parse("AGENT_CANCEL", br#"{"agentRunId":1}"#).unwrap_err();
    assert_eq!((rejection.code(), rejection.field()), (Code::Malformed, "agentRunId"));
    let rejection = Body::parse("AGENT_CANCEL", b"[]").unwrap_err();
    assert_eq!((rejection.code(), rejection.field()), (Code::Malformed, "transaction"));
    let rejection = Body::parse("AGENT_CANCEL", b"{").unwrap_err();
    assert_eq!((rejection.code(), rejection.field()), (Code::Malformed, "fields"));
}

#[test]
fn a_signature_made_elsewhere_can_be_attached() {
    let key = golden_key();
    for body in bodies() {
        let from = format!("ox{}", key.address());
        let unsigned = Unsigned::build(&body, &from, &key.public_key(), &envelope());
        assert_eq!(unsigned.signing_message(), unsigned.hash().to_string());
        let signature = key.sign(unsigned.signing_message().as_bytes());
        let text = unsigned.attach(&signature);
        assert_eq!(text, unsigned.sign(&key));
        let tx = Transaction::parse(text.as_bytes(), &limits()).unwrap();
        assert_eq!((tx.payload(), tx.from_text()), (unsigned.payload(), from));
    }
}

/// Asserts what the golden wallet signs for a kind: the members beside its address and its key, with the
/// name of a chain if it has to be named, and the hash.
#[track_caller]
fn assert_golden(kind: &str, chain_id: Option<&str>, members: &str, hash: &str) {
    let key = golden_key();
    let envelope = Envelope::new(0, 1_715_990_000_000, chain_id.map(str::to_owned));
    let from = key.address().to_string();
    let unsigned = Unsigned::build(&body(kind), &from, &key.public_key(), &envelope);
    let expected = format!(
        "{{\"type\":\"{kind}\",\"from\":\"94bfbb5fbd2fea4c67be283d36528a3cfd1cfda3\",{members},\
         \"publicKey\":\"ed5509fe8b726488ca7bd896040755bb1fe6377fc30cfa595f4d223ca1976f67\"}}"
    );
    assert_eq!(unsigned.payload(), expected);
    assert_eq!(unsigned.hash().to_string(), hash);
}

/// What a VALIDATOR_VOTE looks like, and its hash: changing one of these makes signed votes invalid.
#[test]
fn a_vote_has_its_golden_payload_and_hash() {
    let vote = concat!(
        r#""candidateKey":"ed5509fe8b726488ca7bd896040755bb1fe6377fc30cfa595f4d223ca1976f67","#,
        r#""power":10,"expiresAt":1716000000000,"nonce":0,"timestamp":1715990000000"#,
    );
    let hash = "82624f4028159642403d8fbc79a665cf97c51eedb8a32f963052f4b82f0dc3d9";
    assert_golden("VALIDATOR_VOTE", None, vote, hash);
}

/// What the kinds of agents look like, and their hashes: changing one of these makes signed ones invalid.
#[test]
fn an_agent_is_published_and_retired_with_golden_payloads_and_hashes() {
    let registered = concat!(
        r#""agentId":"0303030303030303030303030303030303030303030303030303030303030303","#,
        r#""metadata":"{\"name\":\"țară\"}","nonce":0,"timestamp":1715990000000,"chainId":"test""#,
    );
    let hash = "65d12371646ccbb3b10c5d662314efc4465dd397781aaac0f2bbbcf384fb21c7";
    assert_golden("AGENT_REGISTER", Some("test"), registered, hash);
    let retired = concat!(
        r#""agentId":"0303030303030303030303030303030303030303030303030303030303030303","#,
        r#""nonce":0,"timestamp":1715990000000,"chainId":"test""#,
    );
    let hash = "cbaaa7c8502afdf73fc3ed60db1da316bb5d0229dbf8d751806ee1e1a3b27d1f";
    assert_golden("AGENT_RETIRE", Some("test"), retired, hash);
}

/// What a MINER_OFFER looks like, and its hash: changing one of these makes signed offers invalid.
#[test]
fn an_offer_has_its_golden_payload_and_hash() {
    let offer = concat!(
        r#""executor":"model-1:0303030303030303030303030303030303030303030303030303030303030303","#,
        r#""capacity":4,"perCall":"1000","promptPerM":"20000","completionPerM":"60000","#,
        r#""fuelPerG":"0","nonce":0,"timestamp":1715990000000,"chainId":"ombra-dev""#,
    );
    let hash = "e1f2755907e4c2ca30d88eef97f8081ae946ee5d3ffa696da20a90259ca38510";
    assert_golden("MINER_OFFER", Some("ombra-dev"), offer, hash);
}

/// What the kinds of a call look like, and their hashes: changing one of these makes signed ones invalid.
#[test]
fn the_kinds_of_a_call_have_their_golden_payloads_and_hashes() {
    let agent_call = concat!(
        r#""agentId":"0303030303030303030303030303030303030303030303030303030303030303","#,
        r#""agentVersion":"1.0.0","payload":"0xfe7ca098","consensus":"threshold","committeeSize":3,"#,
        r#""prices":{"perCall":"1000","promptPerM":"0","completionPerM":"0","fuelPerG":"0"},"#,
        r#""limits":{"inputTokens":4096,"outputTokens":512,"fuel":0,"resultBytes":1024},"#,
        r#""maxFee":"1000000","timeoutMs":60000,"nonce":0,"timestamp":1715990000000,"threshold":2,"#,
        r#""appealable":false,"onResult":[],"#,
        r#""conversationId":"0202020202020202020202020202020202020202020202020202020202020202""#,
    );
    let call_commit = concat!(
        r#""round":0,"#,
        r#""commitment":"0303030303030303030303030303030303030303030303030303030303030303","#,
        r#""nonce":0,"timestamp":1715990000000"#,
    );
    let call_reveal = concat!(
        r#""round":1,"#,
        r#""salt":"0303030303030303030303030303030303030303030303030303030303030303","outcome":"success","#,
        r#""result":"0x796573","inputTokens":100,"outputTokens":10,"fuel":0,"#,
        r#""receiptHash":"0101010101010101010101010101010101010101010101010101010101010101","#,
        r#""nonce":0,"timestamp":1715990000000,"reason":"no reason""#,
    );
    let call_appeal = r#""nonce":0,"timestamp":1715990000000"#;
    let golden = [
        ("AGENT_CALL", agent_call),
        ("CALL_COMMIT", call_commit),
        ("CALL_REVEAL", call_reveal),
        ("CALL_APPEAL", call_appeal),
    ];
    let hashes = [
        "09a01c71f623e213ef7603c02e2b92b67b2ce2922f26bcb12e126852649d3582",
        "9393efc5926350392dcbb88488ac96d1dca6abc57a2e72db255c5fae3bbe8b13",
        "29dc6cb43f92a5c80655e94dffa2499a65c2d558163b86e4278a003d915e6d43",
        "f6190bc8ca019271cffcab720faa8b7b6ba83b552f1d6e41e0c19be5acbe2cb3",
    ];
    let call_id = "ca".repeat(32);
    for ((kind, members), hash) in golden.into_iter().zip(hashes) {
        let members = format!(r#""callId":"{call_id}",{members},"chainId":"ombra-dev""#);
        assert_golden(kind, Some("ombra-dev"), &members, hash);
    }
}
