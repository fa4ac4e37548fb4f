//! Generators of bodies.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::tx::{
    AgentCancel, AgentClaim, AgentFinish, AgentRefuse, AgentRegister, AgentRequest, AgentRetire,
    AgentStep, Attachment, BlobChunk, BlobFinalize, BlobInit, CallAppeal, CallCommit, ChatTurn,
    ForkVote, MinerBond, MinerOffer, MinerRegister, MinerUnbond, ParamVote, ToolCall, Transfer,
    ValidatorVote, WrittenAddress,
};
use crate::{Address, Amount, Body, Hash, PublicKey};

/// Any body whose members have their types, whether within the limits or not.
pub(crate) fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        any_turn().prop_map(Body::ChatTurn),
        any_request().prop_map(Body::AgentRequest),
        any_step().prop_map(Body::AgentStep),
        any_finish().prop_map(Body::AgentFinish),
        any_small_body(),
        any_blob_body(),
    ]
}

fn any_hash() -> impl Strategy<Value = Hash> {
    any::<[u8; 32]>().prop_map(Hash::new)
}

fn any_integer() -> impl Strategy<Value = u64> {
    0..=crate::params::INTEGER_MAX
}

fn any_amount() -> impl Strategy<Value = Amount> {
    any::<u64>().prop_map(Amount::new)
}

fn any_address() -> impl Strategy<Value = (Address, String)> {
    (any::<[u8; 20]>(), any::<bool>()).prop_map(|(bytes, has_prefix)| {
        let address = Address::new(bytes);
        (address, format!("{}{address}", if has_prefix { "ox" } else { "" }))
    })
}

fn any_turn() -> impl Strategy<Value = ChatTurn> {
    let attachment =
        (any::<String>(), any::<String>()).prop_map(|(kind, blob_id)| Attachment { kind, blob_id });
    (
        (any_hash(), any::<String>(), any::<String>(), any::<Option<String>>()),
        (option::of(any_hash()), option::of(any_hash()), option::of(vec(attachment, 0..3))),
    )
        .prop_map(|((conversation_id, role, content, content_blob_id), rest)| ChatTurn {
            conversation_id,
            role,
            content,
            content_blob_id,
            parent_turn_hash: rest.0,
            agent_run_id: rest.1,
            attachments: rest.2,
        })
}

fn any_request() -> impl Strategy<Value = AgentRequest> {
    (
        (any_hash(), any_hash(), any::<String>(), any::<Vec<String>>()),
        (any_amount(), any_integer(), any::<Option<String>>(), any::<Option<String>>()),
    )
        .prop_map(|((agent_run_id, conversation_id, prompt, tools_whitelist), rest)| {
            AgentRequest {
                agent_run_id,
                conversation_id,
                prompt,
                tools_whitelist,
                max_fee: rest.0,
                max_steps: rest.1,
                prompt_blob_id: rest.2,
                model_hint: rest.3,
                protection: crate::Late::default(),
                agent: crate::Late::default(),
            }
        })
}

fn any_step() -> impl Strategy<Value = AgentStep> {
    let call = (any::<String>(), any_hash(), any_hash(), any_integer(), any::<bool>()).prop_map(
        |(name, args_hash, result_hash, duration_ms, ok)| ToolCall {
            name,
            args_hash,
            result_hash,
            duration_ms,
            ok,
        },
    );
    (
        (any_hash(), any_integer(), any_integer(), any_hash()),
        (any::<Option<String>>(), option::of(vec(call, 0..3)), any::<Option<String>>()),
    )
        .prop_map(|((agent_run_id, step_index, output_tokens, output_hash), rest)| AgentStep {
            agent_run_id,
            step_index,
            output_tokens,
            output_hash,
            thought_blob_id: rest.0,
            tool_calls: rest.1,
            output_blob_id: rest.2,
        })
}

fn any_finish() -> impl Strategy<Value = AgentFinish> {
    (
        (any_hash(), any_integer(), any::<String>()),
        (any_amount(), any_amount(), any_amount()),
        (any::<Option<String>>(), any::<Option<String>>()),
    )
        .prop_map(|((agent_run_id, total_tokens_out, status), amounts, answers)| AgentFinish {
            agent_run_id,
            total_tokens_out,
            status,
            miner_reward: amounts.0,
            user_refund: amounts.1,
            network_fee: amounts.2,
            final_answer_inline: answers.0,
            final_answer_blob_id: answers.1,
        })
}

fn any_small_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        (any_hash(), any_address(), any::<String>(), any::<String>()).prop_map(
            |(agent_run_id, (address, text), model_info, hardware_tier)| {
                let miner_address = WrittenAddress { address, text };
                Body::AgentClaim(AgentClaim {
                    agent_run_id,
                    miner_address,
                    model_info,
                    hardware_tier,
                })
            }
        ),
        any_hash().prop_map(|agent_run_id| Body::AgentCancel(AgentCancel { agent_run_id })),
        (any_address(), any_amount(), any_amount()).prop_map(|((address, text), amount, fee)| {
            let to = WrittenAddress { address, text };
            Body::Transfer(Transfer { to, amount, fee })
        }),
        (any::<String>(), any::<Vec<String>>(), any::<String>()).prop_map(
            |(name, capabilities, model_info)| {
                Body::MinerRegister(MinerRegister { name, capabilities, model_info })
            }
        ),
        (any::<[u8; 32]>(), any_integer(), any_integer()).prop_map(|(key, power, expires_at)| {
            let candidate_key = PublicKey::new(key);
            Body::ValidatorVote(ValidatorVote::new(candidate_key, power, expires_at))
        }),
        (any::<String>(), any_integer())
            .prop_map(|(fork, height)| Body::ForkVote(ForkVote { fork, height })),
        (any::<String>(), any_integer(), any_integer())
            .prop_map(|(name, value, height)| Body::ParamVote(ParamVote { name, value, height })),
        any::<u64>().prop_map(|amount| Body::MinerBond(MinerBond { amount: Amount::new(amount) })),
        any::<u64>()
            .prop_map(|amount| Body::MinerUnbond(MinerUnbond { amount: Amount::new(amount) })),
        any_hash().prop_map(|agent_run_id| Body::AgentRefuse(AgentRefuse { agent_run_id })),
        (any_hash(), any::<String>()).prop_map(|(agent_id, metadata)| {
            Body::AgentRegister(AgentRegister { agent_id, metadata })
        }),
        any_hash().prop_map(|agent_id| Body::AgentRetire(AgentRetire { agent_id })),
        any_hash().prop_map(|call_id| Body::CallAppeal(CallAppeal { call_id })),
        (any_hash(), any_integer(), any_hash()).prop_map(|(call_id, round, commitment)| {
            Body::CallCommit(CallCommit { call_id, round, commitment })
        }),
        (any::<String>(), any_integer(), any::<[u64; 4]>()).prop_map(
            |(executor, capacity, prices)| {
                let [per_call, prompt_per_m, completion_per_m, fuel_per_g] =
                    prices.map(Amount::new);
                Body::MinerOffer(MinerOffer {
                    executor,
                    capacity,
                    per_call,
                    prompt_per_m,
                    completion_per_m,
                    fuel_per_g,
                })
            }
        ),
    ]
}

fn any_blob_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        (any::<String>(), any::<String>(), any_integer(), any_integer(), any_hash()).prop_map(
            |(blob_id, content_type, total_bytes, total_chunks, content_hash)| {
                Body::BlobInit(BlobInit {
                    blob_id,
                    content_type,
                    total_bytes,
                    total_chunks,
                    content_hash,
                })
            }
        ),
        (any::<String>(), any_integer(), any::<Vec<u8>>()).prop_map(
            |(blob_id, chunk_index, chunk_data)| {
                Body::BlobChunk(BlobChunk { blob_id, chunk_index, chunk_data })
            }
        ),
        any::<String>().prop_map(|blob_id| Body::BlobFinalize(BlobFinalize { blob_id })),
    ]
}
