//! The schemas and what the chain's own reader takes.

use std::collections::BTreeSet;

use fixtures::{
    appeal, blob_chunk, blob_finalize, blob_init, bond, call, cancel, claim, commit, evidence,
    finish, fork_vote, offer, param_vote, plain_step, refuse, register_judge, register_miner,
    request, retire, reveal, tool_call, transfer, turn, unbond,
};
use types::build::{Envelope, build_tx};
use types::tx::{
    AgentCall, AgentFinish, AgentRequest, AgentStep, Attachment, CallReveal, ChatTurn, Evidence,
    OnResult, Protection, RunOfAgent, ValidatorVote,
};
use types::{Amount, Bid, Body, Hash, Keypair, Late, Params, Signature, SizeLimits, Transaction};

use super::*;

const HASH: Hash = Hash::new([1; 32]);

fn text() -> String {
    "some".to_owned()
}

fn key() -> Keypair {
    Keypair::from_seed(&[1; 32])
}

/// One of each kind that may have optional members, with all of them.
fn bodies_with_options() -> Vec<Body> {
    let from = key().address();
    let attachment = Attachment { kind: "file".to_owned(), blob_id: text() };
    let protection = Protection {
        miners: Some(vec![from.into()]),
        claim_bond: Some(Amount::MAX),
        max_tokens_per_step: Some(1),
        refuse_ms: Some(0),
    };
    let (when, to, amount) = ("success".to_owned(), from.into(), Amount::MAX);
    vec![
        Body::ChatTurn(ChatTurn {
            content_blob_id: Some(text()),
            parent_turn_hash: Some(HASH),
            agent_run_id: Some(HASH),
            attachments: Some(vec![attachment]),
            ..turn("some")
        }),
        Body::AgentRequest(AgentRequest {
            tools_whitelist: vec![text()],
            prompt_blob_id: Some(text()),
            model_hint: Some(text()),
            protection: Late::from(protection),
            agent: Late::from(RunOfAgent { agent_id: Some(HASH), agent_version: Some(text()) }),
            ..request(from, 0, "some", u64::MAX, 1)
        }),
        Body::AgentStep(AgentStep {
            thought_blob_id: Some(text()),
            tool_calls: Some(vec![tool_call("some")]),
            output_blob_id: Some(text()),
            ..plain_step(HASH, 0, 1)
        }),
        Body::AgentFinish(AgentFinish {
            final_answer_inline: Some(text()),
            final_answer_blob_id: Some(text()),
            ..finish(HASH, 1, [0; 3])
        }),
        Body::ValidatorVote(
            ValidatorVote::new(key().public_key(), 1, 2)
                .with_acceptance(Signature::new([0xff; 64])),
        ),
        Body::Evidence(Evidence {
            first_valid_round: Some(0),
            second_valid_round: Some(0),
            ..evidence(
                key().public_key(),
                1,
                "proposal",
                [HASH, Hash::ZERO].map(|it| it.to_string()),
            )
        }),
        Body::AgentCall(AgentCall {
            threshold: Some(1),
            appealable: Some(true),
            on_result: Some(vec![OnResult { when, to, amount }]),
            conversation_id: Some(HASH),
            ..call("some", from, 0, HASH)
        }),
        Body::CallReveal(CallReveal { reason: Some(text()), ..reveal(HASH, b"") }),
    ]
}

/// One of each other kind.
fn bodies_without_options() -> Vec<Body> {
    let from = key().address();
    vec![
        claim(from, HASH).into(),
        cancel(HASH),
        transfer(from, 0),
        register_miner("some"),
        blob_init("some", &[1]).into(),
        blob_chunk("some", 0, &[1]),
        blob_finalize("some"),
        fork_vote("v8", 1),
        param_vote("some", 1, 2),
        bond(u64::MAX),
        unbond(u64::MAX),
        refuse(HASH),
        register_judge(from, text()),
        retire(HASH),
        offer("some", 1, [u64::MAX; 4]).into(),
        commit(from, &reveal(HASH, b"")).into(),
        appeal(HASH),
    ]
}

/// The signed object with all members that it can have.
fn whole(body: &Body) -> Map<String, Value> {
    let tip = (!matches!(body, Body::Transfer(_))).then_some(Amount::MAX);
    let bid = Bid { max_base_fee: Some(Amount::MAX), tip };
    let envelope = Envelope { bid, ..Envelope::new(0, 1, Some(text())) };
    serde_json::from_str(&build_tx(&key(), body, &envelope)).expect("an object")
}

fn is_taken(members: &Map<String, Value>) -> bool {
    let text = serde_json::to_string(members).expect("plain data");
    Transaction::parse_unsigned(text.as_bytes(), &SizeLimits::from(&Params::default())).is_ok()
}

#[test]
fn there_is_a_schema_for_every_type_with_the_members_that_the_chain_reads() {
    let mut generator = SchemaGenerator::default();
    generator.subschema_for::<TxObject>();
    let schemas = generator.take_definitions(true);
    let mut seen = BTreeSet::new();
    for body in [bodies_with_options(), bodies_without_options()].concat() {
        let kind = body.type_name();
        seen.insert(kind);
        let (schema, whole) = (&schemas[kind], whole(&body));
        let named: BTreeSet<_> =
            schema["properties"].as_object().expect("members").keys().collect();
        assert_eq!(whole.keys().collect::<BTreeSet<_>>(), named, "{kind}");

        let required = schema["required"].as_array().expect("names");
        let is_required = |name: &String| required.iter().any(|it| it == name);
        let mut bare = whole.clone();
        bare.retain(|name, _| is_required(name));
        assert!(is_taken(&bare), "{kind} with the required members: {bare:?}");
        for name in required {
            let mut less = bare.clone();
            assert!(less.remove(name.as_str().expect("a name")).is_some(), "{name} of {kind}");
            assert!(!is_taken(&less), "{kind} without {name}");
        }
    }
    assert_eq!(Body::KINDS.len(), seen.len(), "a type is not looked at here");
}
