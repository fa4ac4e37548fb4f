//! What the tests of this crate share: the golden wallet, one body of each kind, generators, and a
//! draft of a transaction that can be spoilt member by member.

mod generators;
mod golden;
mod members;

use std::fmt::Write as _;

use crate::build::{Envelope, Unsigned};
use crate::forks::Fork;
use crate::json::{self, Json};
use crate::tx::{
    AgentCall, AgentCancel, AgentClaim, AgentFinish, AgentRefuse, AgentRegister, AgentRequest,
    AgentRetire, AgentStep, Attachment, BlobChunk, BlobFinalize, BlobInit, CallAppeal, CallCommit,
    CallPrices, CallReveal, ChatTurn, Evidence, ForkVote, HexBytes, MinerBond, MinerOffer,
    MinerRegister, MinerUnbond, ParamVote, ToolCall, Transfer, ValidatorVote, WorkLimits,
    WrittenAddress,
};
use crate::{
    Address, Amount, Body, Hash, Keypair, Params, Rejection, Signature, SizeLimits, Transaction,
};

pub(crate) use self::generators::Generated;
pub(crate) use self::golden::{assert_bytes, number, numbers};
pub(crate) use self::members::{TABLE, members};

/// The published vectors.
pub(crate) const VECTORS: &str = include_str!("../vectors.json");
/// The chain of drafts that have to name one.
pub(crate) const CHAIN: &str = "test-chain";
/// The golden values of the market.
pub(crate) const MARKET: &str = include_str!("../market_vectors.json");
/// What JavaScript and Python clients send.
pub(crate) const CLIENTS: &str = include_str!("../fixtures/clients.json");

/// The limits of a chain with default parameters.
pub(crate) fn limits() -> SizeLimits {
    SizeLimits::from(&Params::default())
}

/// Reads a fixture.
pub(crate) fn fixture(text: &'static str) -> Json<'static> {
    json::parse(text.as_bytes(), 16).unwrap()
}

/// The member of an object, by key.
pub(crate) fn member<'a, 'b>(value: &'a Json<'b>, key: &str) -> &'a Json<'b> {
    let Json::Object(members) = value else { panic!("no object: {value:?}") };
    let found = members.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value).unwrap_or_else(|| panic!("no member {key}"))
}

/// The text of a string.
pub(crate) fn text<'a>(value: &'a Json<'_>) -> &'a str {
    let Json::String(text) = value else { panic!("no string: {value:?}") };
    text
}

/// The text of a string member.
pub(crate) fn text_of<'a>(value: &'a Json<'_>, key: &str) -> &'a str {
    text(member(value, key))
}

/// The items of an array.
pub(crate) fn items<'a, 'b>(value: &'a Json<'b>) -> &'a [Json<'b>] {
    let Json::Array(items) = value else { panic!("no array: {value:?}") };
    items
}

/// The canonical form of a value.
pub(crate) fn written(value: &Json<'_>) -> String {
    let mut text = String::new();
    value.write_to(&mut text);
    text
}

/// The key of the golden wallet, index 0.
pub(crate) fn golden_key() -> Keypair {
    let vectors = fixture(VECTORS);
    let seed = text_of(member(member(&vectors, "wallet"), "index0"), "privateKey");
    Keypair::from_seed(Hash::parse(seed).unwrap().as_bytes())
}

/// Adds the order of the group of the base point to a little-endian number.
pub(crate) fn add_order(number: &mut [u8]) {
    let order = *b"\xed\xd3\xf5\x5c\x1a\x63\x12\x58\xd6\x9c\xf7\xa2\xde\xf9\xde\x14\
                   \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10";
    let mut carry = 0_u16;
    for (byte, more) in number.iter_mut().zip(order) {
        carry += u16::from(*byte) + u16::from(more);
        *byte = carry.to_le_bytes()[0];
        carry >>= 8;
    }
}

/// A transaction as JSON members that can be changed one by one.
#[derive(Clone)]
pub(crate) struct Draft {
    members: Vec<(String, String)>,
    hash: Option<String>,
    signature: Option<String>,
}

impl Draft {
    /// The builder's members for `body`, from the golden wallet with nonce 6. Kinds that have to name their
    /// chain name [`CHAIN`].
    pub(crate) fn of(body: &Body) -> Self {
        let key = golden_key();
        let chain_id = (body.fork() == Some(Fork::V8)).then(|| CHAIN.to_owned());
        let envelope = Envelope::new(6, 1_715_990_000_000, chain_id);
        let from = key.address().to_string();
        let unsigned = Unsigned::build(body, &from, &key.public_key(), &envelope);
        let value = json::parse(unsigned.payload().as_bytes(), 8).unwrap();
        let Json::Object(members) = value else { panic!("no object") };
        let members = members.iter().map(|(key, value)| (key.to_string(), written(value)));
        Self { members: members.collect(), hash: None, signature: None }
    }

    /// Sets a member to raw JSON text; a new one goes to the end.
    pub(crate) fn with(mut self, key: &str, raw: &str) -> Self {
        match (key, self.members.iter_mut().find(|(name, _)| name == key)) {
            ("hash", _) => self.hash = Some(raw.to_owned()),
            ("signature", _) => self.signature = Some(raw.to_owned()),
            (_, Some((_, value))) => *value = raw.to_owned(),
            (_, None) => self.members.push((key.to_owned(), raw.to_owned())),
        }
        self
    }

    /// Removes a member of the payload.
    pub(crate) fn without(mut self, key: &str) -> Self {
        self.members.retain(|(name, _)| name != key);
        self
    }

    fn payload(&self) -> String {
        let mut payload = String::from("{");
        for (index, (key, value)) in self.members.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(payload, "{comma}\"{key}\":{value}").unwrap();
        }
        payload + "}"
    }

    /// The text with the golden wallet's hash and signature, unless they were set.
    pub(crate) fn text(&self) -> String {
        let payload = self.payload();
        let hash = Hash::digest(payload.as_bytes());
        let signature = golden_key().sign(&hash.to_hex());
        let hash = self.hash.clone().unwrap_or_else(|| format!("\"{hash}\""));
        let signature = self.signature.clone().unwrap_or_else(|| format!("\"{signature}\""));
        let open = payload.strip_suffix('}').unwrap();
        format!("{open},\"hash\":{hash},\"signature\":{signature}}}")
    }

    pub(crate) fn parse(&self) -> Result<Transaction, Rejection> {
        Transaction::parse(self.text().as_bytes(), &limits())
    }
}

/// One body of each kind, with every optional member, in the order of the protocol's table.
pub(crate) fn bodies() -> Vec<Body> {
    [agent_bodies(), other_bodies(), market_bodies(), call_bodies()].concat()
}

const RUN: Hash = Hash::new([1; 32]);
const CONVERSATION: Hash = Hash::new([2; 32]);
const HASH: Hash = Hash::new([3; 32]);

fn agent_bodies() -> Vec<Body> {
    let some = |text: &str| Some(text.to_owned());
    let address = golden_key().address();
    vec![
        Body::ChatTurn(ChatTurn {
            conversation_id: CONVERSATION,
            role: "tool".to_owned(),
            content: "țară 😀".to_owned(),
            content_blob_id: some("content-blob"),
            parent_turn_hash: Some(HASH),
            agent_run_id: Some(RUN),
            attachments: Some(vec![Attachment {
                kind: "image".to_owned(),
                blob_id: "picture_1".to_owned(),
            }]),
        }),
        Body::AgentRequest(AgentRequest {
            agent_run_id: RUN,
            conversation_id: CONVERSATION,
            prompt: "What is my balance?".to_owned(),
            tools_whitelist: vec!["chain_get_balance".to_owned(), "now".to_owned()],
            max_fee: Amount::new(1_000_000),
            max_steps: 50,
            prompt_blob_id: some("prompt-blob"),
            model_hint: some("small"),
            protection: crate::Late::default(),
            agent: crate::Late::default(),
        }),
        Body::AgentClaim(AgentClaim {
            agent_run_id: RUN,
            miner_address: WrittenAddress { address, text: format!("ox{address}") },
            model_info: "llama".to_owned(),
            hardware_tier: "desktop".to_owned(),
        }),
        Body::AgentStep(AgentStep {
            agent_run_id: RUN,
            step_index: 3,
            output_tokens: 500,
            output_hash: HASH,
            thought_blob_id: some("thought"),
            tool_calls: Some(vec![ToolCall {
                name: "now".to_owned(),
                args_hash: HASH,
                result_hash: RUN,
                duration_ms: 87,
                ok: true,
            }]),
            output_blob_id: some("output"),
        }),
        Body::AgentFinish(AgentFinish {
            agent_run_id: RUN,
            total_tokens_out: 5_000,
            status: "completed".to_owned(),
            miner_reward: Amount::new(5_000),
            user_refund: Amount::new(994_200),
            network_fee: Amount::new(800),
            final_answer_inline: some("12.34 OMBRA"),
            final_answer_blob_id: some("answer"),
        }),
        Body::AgentCancel(AgentCancel { agent_run_id: RUN }),
    ]
}

fn other_bodies() -> Vec<Body> {
    vec![
        Body::Transfer(Transfer::new(Address::new([9; 20]), Amount::MAX, Amount::ZERO)),
        Body::MinerRegister(MinerRegister {
            name: "my-miner".to_owned(),
            capabilities: vec!["chat".to_owned()],
            model_info: "llama".to_owned(),
        }),
        Body::BlobInit(BlobInit {
            blob_id: "blob".to_owned(),
            content_type: "text/plain".to_owned(),
            total_bytes: 400_001,
            total_chunks: 2,
            content_hash: HASH,
        }),
        Body::BlobChunk(BlobChunk {
            blob_id: "blob".to_owned(),
            chunk_index: 1,
            chunk_data: vec![0, 127, 255, 1],
        }),
        Body::BlobFinalize(BlobFinalize { blob_id: "blob".to_owned() }),
        Body::ValidatorVote(ValidatorVote::new(golden_key().public_key(), 10, 1_716_000_000_000)),
        Body::ForkVote(ForkVote { fork: "v8".to_owned(), height: 200_000 }),
        Body::ParamVote(ParamVote { name: "baseFeeFloor".to_owned(), value: 20, height: 200_000 }),
        Body::MinerBond(MinerBond { amount: Amount::new(5) }),
        Body::MinerUnbond(MinerUnbond { amount: Amount::new(5) }),
        Body::AgentRefuse(AgentRefuse { agent_run_id: Hash::new([0xa1; 32]) }),
        Body::Evidence(Evidence {
            validator_key: golden_key().public_key(),
            height: 7,
            round: 1,
            kind: "proposal".to_owned(),
            first_value: HASH.to_string(),
            first_signature: Signature::new([0xc1; 64]),
            second_value: RUN.to_string(),
            second_signature: Signature::new([0xc2; 64]),
            first_valid_round: Some(0),
            second_valid_round: Some(0),
        }),
    ]
}

/// Those of the agent market.
fn market_bodies() -> Vec<Body> {
    vec![
        Body::AgentRegister(AgentRegister {
            agent_id: HASH,
            metadata: "{\"name\":\"țară\"}".to_owned(),
        }),
        Body::AgentRetire(AgentRetire { agent_id: HASH }),
        Body::MinerOffer(MinerOffer {
            executor: format!("model-1:{HASH}"),
            capacity: 4,
            per_call: Amount::new(1_000),
            prompt_per_m: Amount::new(20_000),
            completion_per_m: Amount::new(60_000),
            fuel_per_g: Amount::ZERO,
        }),
    ]
}

fn call_bodies() -> Vec<Body> {
    let call_id = Hash::new([0xca; 32]);
    vec![
        Body::AgentCall(AgentCall {
            call_id,
            agent_id: HASH,
            agent_version: "1.0.0".to_owned(),
            payload: HexBytes(vec![0xfe, 0x7c, 0xa0, 0x98]),
            consensus: "threshold".to_owned(),
            committee_size: 3,
            prices: CallPrices {
                per_call: Amount::new(1_000),
                prompt_per_m: Amount::ZERO,
                completion_per_m: Amount::ZERO,
                fuel_per_g: Amount::ZERO,
            },
            limits: WorkLimits {
                input_tokens: 4_096,
                output_tokens: 512,
                fuel: 0,
                result_bytes: 1_024,
            },
            max_fee: Amount::new(1_000_000),
            timeout_ms: 60_000,
            threshold: Some(2),
            appealable: Some(false),
            on_result: Some(Vec::new()),
            conversation_id: Some(CONVERSATION),
        }),
        Body::CallCommit(CallCommit { call_id, round: 0, commitment: HASH }),
        Body::CallReveal(CallReveal {
            call_id,
            round: 1,
            salt: HASH,
            outcome: "success".to_owned(),
            result: HexBytes(b"yes".to_vec()),
            input_tokens: 100,
            output_tokens: 10,
            fuel: 0,
            receipt_hash: RUN,
            reason: Some("no reason".to_owned()),
        }),
        Body::CallAppeal(CallAppeal { call_id }),
    ]
}

/// The body of that kind in [`bodies`].
pub(crate) fn body(type_name: &str) -> Body {
    bodies().into_iter().find(|body| body.type_name() == type_name).unwrap()
}
