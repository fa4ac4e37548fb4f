//! What is refused about blobs, and about those who name them.

use testkit::actor::{Actor, blob_chunk, blob_finalize, blob_init, turn};
use types::tx::{AgentRequest, Attachment, ChatTurn};
use types::{Body, Code, Hash};

use super::case::{Case, case};
use super::scene::Scene;
use crate::support::dev;

pub(super) const CODES: &[Code] = &[
    Code::BlobNotFound,
    Code::BlobNotFinal,
    Code::BlobExists,
    Code::BlobChunk,
    Code::BlobHash,
    Code::NotBlobOwner,
];

const BYTES: &[u8] = b"bytes";
/// As long as [`BYTES`], with another hash.
const LIES: &[u8] = b"lies!";

#[test]
fn what_is_wrong_about_blobs_is_told_and_changes_nothing() -> anyhow::Result<()> {
    let mut scene = Scene::of(dev(&[]))?;
    let (mut owner, other) = (scene.actor(0), scene.actor(1));
    let init = |id: &str| Body::BlobInit(blob_init(id, BYTES));
    let work = [
        init("final"),
        blob_chunk("final", 0, BYTES),
        blob_finalize("final"),
        init("open"),
        init("whole"),
        blob_chunk("whole", 0, BYTES),
        init("liar"),
        blob_chunk("liar", 0, LIES),
    ];
    let work: Vec<String> = work.iter().map(|body| owner.sign(body)).collect();
    scene.include(&work)?;

    let cases = [references(&owner), announcements(&owner, &other), pieces(&owner, &other)];
    scene.refuse(CODES, &cases.concat())
}

/// Every member that names a blob.
fn references(owner: &Actor) -> Vec<Case> {
    let missing = |field: &str, body: &Body| {
        let case = case(Code::BlobNotFound, owner, body);
        case.says(field, "missing", "the id of an announced blob")
    };
    let unfinished = |field: &str, body: &Body| {
        let case = case(Code::BlobNotFinal, owner, body);
        case.says(field, "whole", "the id of a finalised blob")
    };
    let content = |id: &str| -> Body {
        ChatTurn { content_blob_id: Some(id.to_owned()), ..turn("hello") }.into()
    };
    let attached = |id: &str| -> Body {
        let attachment = Attachment { kind: "file".to_owned(), blob_id: id.to_owned() };
        ChatTurn { attachments: Some(vec![attachment]), ..turn("hello") }.into()
    };
    let prompt = |id: &str| -> Body {
        let prompt_blob_id = Some(id.to_owned());
        AgentRequest { prompt_blob_id, ..owner.request("prompt", 300, 3) }.into()
    };
    vec![
        missing("blobId", &blob_chunk("missing", 0, BYTES)),
        missing("blobId", &blob_finalize("missing")),
        missing("contentBlobId", &content("missing")),
        missing("attachments.blobId", &attached("missing")),
        missing("promptBlobId", &prompt("missing")),
        unfinished("contentBlobId", &content("whole")),
        unfinished("attachments.blobId", &attached("whole")),
        unfinished("promptBlobId", &prompt("whole")),
    ]
}

fn announcements(owner: &Actor, other: &Actor) -> Vec<Case> {
    let again = |id: &str| {
        let case = case(Code::BlobExists, other, &Body::BlobInit(blob_init(id, BYTES)));
        case.says("blobId", id, "a new id")
    };
    let once = case(Code::BlobExists, owner, &blob_finalize("final"));
    let once = once.says("blobId", "final", "a blob that is not final yet");
    vec![again("open"), again("final"), once]
}

fn pieces(owner: &Actor, other: &Actor) -> Vec<Case> {
    let wrong = |body: &Body| case(Code::BlobChunk, owner, body);
    let foreign = |id: &str, body: &Body| {
        let case = case(Code::NotBlobOwner, other, body);
        case.says("from", other.address(), owner.address()).with("blobId", id)
    };
    vec![
        wrong(&blob_chunk("open", 1, BYTES)).says(
            "chunkIndex",
            1,
            "less than 1, the blob's totalChunks",
        ),
        wrong(&blob_chunk("open", 0, b"byte")).says("chunkDataBase64", "4 bytes", "5 bytes"),
        wrong(&blob_chunk("whole", 0, BYTES)).says(
            "chunkIndex",
            0,
            "a chunk that is not there yet",
        ),
        wrong(&blob_finalize("open")).says("totalChunks", 0, "all 1"),
        case(Code::BlobHash, owner, &blob_finalize("liar")).says(
            "contentHash",
            Hash::digest(LIES),
            Hash::digest(BYTES),
        ),
        foreign("open", &blob_chunk("open", 0, BYTES)),
        foreign("whole", &blob_finalize("whole")),
    ]
}
