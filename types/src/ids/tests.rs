//! Ids against the vectors, and the cut at 256 code units.

use proptest::prelude::*;

use super::{
    Committer, compute_agent_id, compute_agent_run_id, compute_call_id, compute_commitment,
    compute_content_hash, compute_conversation_id, compute_result_hash,
};
use crate::call::{Answer, Outcome};
use crate::json::Json;
use crate::testing::{MARKET, VECTORS, fixture, items, member, text_of};
use crate::{Address, Hash, Usage};

fn number(value: &Json<'_>, key: &str) -> u64 {
    let Json::Number(literal) = member(value, key) else { panic!("{key}") };
    literal.parse().unwrap()
}

#[test]
fn ids_of_the_vectors() {
    let vectors = fixture(VECTORS);
    let run = member(&vectors, "inferred_agentRunId");
    let id =
        compute_agent_run_id(text_of(run, "from"), number(run, "nonce"), text_of(run, "prompt"));
    assert_eq!(id.to_string(), text_of(run, "id"));

    let conversation = member(&vectors, "inferred_conversationId");
    let (creator, seed) = (text_of(conversation, "creator"), text_of(conversation, "seed"));
    let id = compute_conversation_id(creator, Some(seed), number(conversation, "now"));
    assert_eq!(id.to_string(), text_of(conversation, "id"));
}

#[test]
fn agents_have_the_ids_of_the_vectors_whichever_way_the_owner_is_written() {
    let vectors = fixture(MARKET);
    for vector in items(member(&vectors, "agentIds")) {
        let owner = Address::parse(text_of(vector, "owner")).unwrap();
        let id = compute_agent_id(&owner, text_of(vector, "name"));
        assert_eq!(id.to_string(), text_of(vector, "agentId"));
    }
}

#[test]
fn calls_have_the_ids_of_the_vectors_whichever_way_the_sender_is_written() {
    let vectors = fixture(MARKET);
    for vector in items(member(&vectors, "callIds")) {
        let from = Address::parse(text_of(vector, "from")).unwrap();
        let id = compute_call_id(text_of(vector, "chainId"), &from, number(vector, "nonce"));
        assert_eq!(id.to_string(), text_of(vector, "callId"));
    }
}

#[test]
fn commitments_are_those_of_the_vectors() {
    let vectors = fixture(MARKET);
    let vectors = items(member(&vectors, "commitments"));
    assert_eq!(vectors.len(), 4);
    for vector in vectors {
        let hash = |key| Hash::parse(text_of(vector, key)).unwrap();
        let result = text_of(vector, "result").strip_prefix("0x").unwrap();
        let result_hash = compute_result_hash(&const_hex::decode(result).unwrap());
        assert_eq!(result_hash, hash("resultHash"));
        let by = Committer {
            call_id: hash("callId"),
            round: number(vector, "round"),
            member: Address::parse(text_of(vector, "member")).unwrap(),
        };
        let answer = Answer {
            outcome: Outcome::parse(text_of(vector, "outcome")).unwrap(),
            result_hash,
            usage: Usage {
                input_tokens: number(vector, "inputTokens"),
                output_tokens: number(vector, "outputTokens"),
                fuel: number(vector, "fuel"),
            },
            receipt_hash: hash("receiptHash"),
        };
        let commitment = compute_commitment(&by, &hash("salt"), &answer);
        assert_eq!(commitment.to_string(), text_of(vector, "commitment"));
    }
}

#[test]
fn a_missing_seed_is_empty() {
    let without = compute_conversation_id("creator", None, 5);
    assert_eq!(without, compute_conversation_id("creator", Some(""), 5));
    assert_eq!(without, Hash::digest(b"creator|5|"));
}

#[test]
fn content_is_hashed_as_utf8() {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(compute_content_hash("").to_string(), empty);
    assert_eq!(compute_content_hash("țară"), Hash::digest("țară".as_bytes()));
}

#[test]
fn a_pair_cut_at_unit_256_becomes_a_replacement_character() {
    let id = |prompt: &str| compute_agent_run_id("f", 0, prompt);
    let expected = |text: String| Hash::digest(format!("f0{text}").as_bytes());
    let a = |count| "a".repeat(count);
    assert_eq!(id(&(a(255) + "😀b")), expected(a(255) + "\u{fffd}"));
    assert_eq!(id(&(a(254) + "😀b")), expected(a(254) + "😀"));
    assert_eq!(id(&(a(256) + "😀b")), expected(a(256)));
    assert_eq!(id(&a(257)), expected(a(256)));
    assert_eq!(id(&a(255)), expected(a(255)));
    assert_eq!(id(&"ț".repeat(300)), expected("ț".repeat(256)));
}

#[test]
fn nothing_separates_nonce_and_prompt() {
    assert_eq!(compute_agent_run_id("f", 1, "2x"), compute_agent_run_id("f", 12, "x"));
}

proptest! {
    #[test]
    fn the_cut_is_that_of_utf16(prompt in "[a😀ț\u{ffff}]{120,270}", nonce in any::<u64>()) {
        let units: Vec<u16> = prompt.encode_utf16().take(256).collect();
        let cut = String::from_utf16_lossy(&units);
        let expected = Hash::digest(format!("from{nonce}{cut}").as_bytes());
        prop_assert_eq!(compute_agent_run_id("from", nonce, &prompt), expected);
    }
}
