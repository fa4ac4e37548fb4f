//! What happens on a chain: every type of transaction, with texts of one's choice in every field that
//! takes any.

use anyhow::Context;
use serde_json::{Value, json};
use testkit::actor::{self, Actor};
use types::tx::{AgentStep, Attachment, BlobInit, ChatTurn, MinerRegister, ToolCall};
use types::{Body, Hash};

use crate::scene::Scene;

/// What stands in the fields: the name of a field and its limit in bytes give the text.
pub(crate) trait Texts {
    fn text(&self, field: &str, bytes_max: usize) -> String;
}

/// Where to find what happened.
pub(crate) struct Story {
    pub(crate) run: String,
    pub(crate) waiting_run: String,
    pub(crate) conversation: String,
    pub(crate) submitter: String,
    pub(crate) miner: String,
    pub(crate) blob: String,
    /// The hash of one transaction of each type.
    pub(crate) txs: Vec<(String, String)>,
    /// Every text with its field.
    pub(crate) texts: Vec<(&'static str, String)>,
}

const SHORT: usize = 64;
const LABEL: usize = 256;
const INLINE: usize = 16_384;
const BLOB: &[u8] = b"a picture of a cat";

/// The fields that take any text, and their limits.
const FIELDS: [(&str, usize); 11] = [
    ("content", INLINE),
    ("answer turn", INLINE),
    ("prompt", INLINE),
    ("toolsWhitelist", SHORT),
    ("modelHint", LABEL),
    ("modelInfo", LABEL),
    ("toolCalls.name", LABEL),
    ("finalAnswerInline", INLINE),
    ("name", LABEL),
    ("capabilities", SHORT),
    ("contentType", LABEL),
];

/// Plays the story with two of the people. `number` tells one story from the next of the same people.
pub(crate) fn play(scene: &mut Scene, texts: &dyn Texts, number: usize) -> anyhow::Result<Story> {
    let texts = FIELDS.map(|(field, bytes_max)| (field, texts.text(field, bytes_max)));
    let said = |field: &str| {
        let found = texts.iter().find(|(known, _)| *known == field);
        found.map(|(_, text)| text.clone()).with_context(|| field.to_owned())
    };
    let (mut asks, mut mines) = (scene.people[0].clone(), scene.people[1].clone());
    let blob = format!("cat-{number}");
    let conversation = Hash::digest(format!("conversation {number}").as_bytes());

    let first = begun(&mut asks, &mut mines, &blob, &said)?;
    let mut hashes = scene.include(&first)?;

    let question = ChatTurn {
        conversation_id: conversation,
        attachments: Some(vec![Attachment { kind: "image".to_owned(), blob_id: blob.clone() }]),
        ..actor::turn(&said("content")?)
    };
    let mut request = asks.request(&said("prompt")?, 100_000, 8);
    request.conversation_id = conversation;
    request.tools_whitelist = vec![said("toolsWhitelist")?];
    request.model_hint = Some(said("modelHint")?);
    let run = request.agent_run_id;
    let asked = [asks.sign(&Body::AgentRequest(request)), asks.sign(&Body::ChatTurn(question))];
    hashes.extend(scene.include(&asked)?);

    let mut work = worked(&mut mines, run, &said)?;
    let answer = ChatTurn {
        conversation_id: conversation,
        role: "assistant".to_owned(),
        agent_run_id: Some(run),
        ..actor::turn(&said("answer turn")?)
    };
    work.push(mines.sign(&Body::ChatTurn(answer)));
    hashes.extend(scene.include(&work)?);

    let (cancelled, waits) = (asks.request(&said("prompt")?, 1_000, 1), asks.at(asks.nonce + 2));
    let waits = waits.request(&said("prompt")?, 20_000, 3);
    let (cancelled_run, waiting_run) = (cancelled.agent_run_id, waits.agent_run_id);
    let last = [
        asks.sign(&Body::AgentRequest(cancelled)),
        asks.sign(&actor::cancel(cancelled_run)),
        asks.sign(&Body::AgentRequest(waits)),
    ];
    hashes.extend(scene.include(&last)?);
    // It waits for a nonce that nobody uses.
    let waits = scene.people[8].at(u64::try_from(number)? + 2);
    let queued = waits.draft(&Body::ChatTurn(actor::turn(&said("content")?)));
    hashes.extend(scene.send(&[queued])?);

    let txs = by_type(scene, &hashes)?;
    let (submitter, miner) = (asks.address().to_string(), mines.address().to_string());
    [scene.people[0], scene.people[1]] = [asks, mines];
    Ok(Story {
        run: run.to_string(),
        waiting_run: waiting_run.to_string(),
        conversation: conversation.to_string(),
        submitter,
        miner,
        blob,
        txs,
        texts: texts.to_vec(),
    })
}

/// A miner registers, gets some money, and a blob is stored.
fn begun(
    asks: &mut Actor,
    mines: &mut Actor,
    blob: &str,
    said: &dyn Fn(&str) -> anyhow::Result<String>,
) -> anyhow::Result<Vec<String>> {
    let register = MinerRegister {
        name: said("name")?,
        capabilities: vec![said("capabilities")?],
        model_info: said("modelInfo")?,
    };
    let mut init = actor::blob_init(blob, BLOB);
    init.content_type = said("contentType")?;
    let texts = vec![
        mines.sign(&Body::MinerRegister(register)),
        asks.sign(&actor::transfer(mines.address(), 1_500_000)),
        asks.sign(&Body::BlobInit(init)),
        asks.sign(&actor::blob_chunk(blob, 0, BLOB)),
        asks.sign(&actor::blob_finalize(blob)),
    ];
    Ok(texts)
}

/// Claim, two steps with tool calls, settlement.
fn worked(
    mines: &mut Actor,
    run: Hash,
    said: &dyn Fn(&str) -> anyhow::Result<String>,
) -> anyhow::Result<Vec<String>> {
    let mut claim = mines.claim(run);
    claim.model_info = said("modelInfo")?;
    let mut texts = vec![mines.sign(&Body::AgentClaim(claim))];
    for (index, ok) in [(0, true), (1, false)] {
        let call = ToolCall { ok, ..actor::tool_call(&said("toolCalls.name")?) };
        let step = AgentStep {
            tool_calls: Some(vec![call]),
            thought_blob_id: Some("thought-of-the-step".to_owned()),
            ..actor::plain_step(run, index, 2_500)
        };
        texts.push(mines.sign(&step.into()));
    }
    let mut finish = actor::finish(run, 5_000, [5_000, 94_800, 200]);
    finish.final_answer_inline = Some(said("finalAnswerInline")?);
    texts.push(mines.sign(&Body::AgentFinish(finish)));
    Ok(texts)
}

/// The first hash of each type.
fn by_type(scene: &Scene, hashes: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let mut txs: Vec<(String, String)> = Vec::new();
    for hash in hashes {
        let found: Value = scene.node.call("ombra_getTransaction", &json!([hash]))?;
        let kind = found["tx"]["type"].as_str().context("a type")?.to_owned();
        if !txs.iter().any(|(known, _)| *known == kind) {
            txs.push((kind, hash.clone()));
        }
    }
    Ok(txs)
}

/// The transactions that store a blob.
pub(crate) fn stored(owner: &mut Actor, id: &str, content_type: &str, bytes: &[u8]) -> Vec<String> {
    let mut bodies = fixtures::blob(id, bytes);
    bodies[0] =
        BlobInit { content_type: content_type.to_owned(), ..actor::blob_init(id, bytes) }.into();
    bodies.iter().map(|body| owner.sign(body)).collect()
}
