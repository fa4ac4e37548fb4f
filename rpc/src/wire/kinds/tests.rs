//! The schemas and what the chain's own reader takes.

use std::collections::BTreeSet;

use types::build::{Envelope, build_tx};
use types::tx::{
    AgentCall, AgentCancel, AgentClaim, AgentFinish, AgentRefuse, AgentRegister, AgentRequest,
    AgentRetire, AgentStep, Attachment, BlobChunk, BlobFinalize, BlobInit, CallAppeal, CallCommit,
    CallPrices, CallReveal, ChatTurn, Evidence, ForkVote, HexBytes, MinerBond, MinerOffer,
    MinerRegister, MinerUnbond, OnResult, ParamVote, Protection, RunOfAgent, ToolCall, Transfer,
    ValidatorVote, WorkLimits, WrittenAddress,
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
    let attachment = Attachment { kind: "file".to_owned(), blob_id: text() };
    let (args_hash, result_hash) = (HASH, HASH);
    let protection = Protection {
        miners: Some(vec![key().address().into()]),
        claim_bond: Some(Amount::MAX),
        max_tokens_per_step: Some(1),
        refuse_ms: Some(0),
    };
    let call = ToolCall { name: text(), args_hash, result_hash, duration_ms: 1, ok: true };
    vec![
        Body::ChatTurn(ChatTurn {
            conversation_id: HASH,
            role: "user".to_owned(),
            content: text(),
            content_blob_id: Some(text()),
            parent_turn_hash: Some(HASH),
            agent_run_id: Some(HASH),
            attachments: Some(vec![attachment]),
        }),
        Body::AgentRequest(AgentRequest {
            agent_run_id: HASH,
            conversation_id: HASH,
            prompt: text(),
            tools_whitelist: vec![text()],
            max_fee: Amount::MAX,
            max_steps: 1,
            prompt_blob_id: Some(text()),
            model_hint: Some(text()),
            protection: Late::from(protection),
            agent: Late::from(RunOfAgent { agent_id: Some(HASH), agent_version: Some(text()) }),
        }),
        Body::AgentStep(AgentStep {
            agent_run_id: HASH,
            step_index: 0,
            output_tokens: 1,
            output_hash: HASH,
            thought_blob_id: Some(text()),
            tool_calls: Some(vec![call]),
            output_blob_id: Some(text()),
        }),
        Body::AgentFinish(AgentFinish {
            agent_run_id: HASH,
            total_tokens_out: 1,
            status: "completed".to_owned(),
            miner_reward: Amount::ZERO,
            user_refund: Amount::ZERO,
            network_fee: Amount::ZERO,
            final_answer_inline: Some(text()),
            final_answer_blob_id: Some(text()),
        }),
    ]
}

/// One of each other kind.
fn bodies_without_options() -> Vec<Body> {
    vec![
        Body::AgentClaim(AgentClaim {
            agent_run_id: HASH,
            miner_address: key().address().into(),
            model_info: text(),
            hardware_tier: "laptop".to_owned(),
        }),
        Body::AgentCancel(AgentCancel { agent_run_id: HASH }),
        Body::Transfer(Transfer::new(key().address(), Amount::ZERO, Amount::ZERO)),
        Body::MinerRegister(MinerRegister {
            name: text(),
            capabilities: vec![text()],
            model_info: text(),
        }),
        Body::BlobInit(BlobInit {
            blob_id: text(),
            content_type: text(),
            total_bytes: 1,
            total_chunks: 1,
            content_hash: HASH,
        }),
        Body::BlobChunk(BlobChunk { blob_id: text(), chunk_index: 0, chunk_data: vec![1] }),
        Body::BlobFinalize(BlobFinalize { blob_id: text() }),
        Body::ValidatorVote(
            ValidatorVote::new(key().public_key(), 1, 2)
                .with_acceptance(Signature::new([0xff; 64])),
        ),
        Body::ForkVote(ForkVote { fork: "v8".to_owned(), height: 1 }),
        Body::ParamVote(ParamVote { name: text(), value: 1, height: 2 }),
        Body::MinerBond(MinerBond { amount: Amount::MAX }),
        Body::MinerUnbond(MinerUnbond { amount: Amount::MAX }),
        Body::AgentRefuse(AgentRefuse { agent_run_id: HASH }),
        Body::Evidence(Evidence {
            validator_key: key().public_key(),
            height: 1,
            round: 0,
            kind: "proposal".to_owned(),
            first_value: HASH.to_string(),
            first_signature: Signature::new([0xff; 64]),
            second_value: Hash::ZERO.to_string(),
            second_signature: Signature::new([0xff; 64]),
            first_valid_round: Some(0),
            second_valid_round: Some(0),
        }),
    ]
}

/// One of each kind of the agent market.
fn bodies_of_the_market() -> Vec<Body> {
    let [per_call, prompt_per_m, completion_per_m, fuel_per_g] = [Amount::MAX; 4];
    vec![
        Body::AgentRegister(AgentRegister { agent_id: HASH, metadata: text() }),
        Body::AgentRetire(AgentRetire { agent_id: HASH }),
        Body::MinerOffer(MinerOffer {
            executor: text(),
            capacity: 1,
            per_call,
            prompt_per_m,
            completion_per_m,
            fuel_per_g,
        }),
        Body::AgentCall(AgentCall {
            call_id: HASH,
            agent_id: HASH,
            agent_version: text(),
            payload: HexBytes(vec![0, 255]),
            consensus: "threshold".to_owned(),
            committee_size: 3,
            prices: CallPrices { per_call, prompt_per_m, completion_per_m, fuel_per_g },
            limits: WorkLimits { input_tokens: 1, output_tokens: 1, fuel: 1, result_bytes: 1 },
            max_fee: Amount::MAX,
            timeout_ms: 10_000,
            threshold: Some(1),
            appealable: Some(true),
            on_result: Some(vec![OnResult {
                when: "success".to_owned(),
                to: WrittenAddress::from(key().address()),
                amount: Amount::MAX,
            }]),
            conversation_id: Some(HASH),
        }),
        Body::CallCommit(CallCommit { call_id: HASH, round: 0, commitment: HASH }),
        Body::CallReveal(CallReveal {
            call_id: HASH,
            round: 1,
            salt: HASH,
            outcome: "success".to_owned(),
            result: HexBytes(Vec::new()),
            input_tokens: 1,
            output_tokens: 1,
            fuel: 1,
            receipt_hash: HASH,
            reason: Some(text()),
        }),
        Body::CallAppeal(CallAppeal { call_id: HASH }),
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
    for body in [bodies_with_options(), bodies_without_options(), bodies_of_the_market()].concat() {
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
