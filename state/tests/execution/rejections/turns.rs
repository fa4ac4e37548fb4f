//! CHAT_TURN.

use types::tx::{Attachment, ChatTurn};
use types::{Body, Hash};

use crate::world::{ALICE, BOB, World, blob_init, chat, turn};

fn attachment(blob_id: &str) -> Attachment {
    Attachment { kind: "file".to_owned(), blob_id: blob_id.to_owned() }
}

#[test]
fn a_turn_is_refused_in_order() {
    let mut world = World::new();
    let elsewhere = ChatTurn { conversation_id: Hash::ZERO, ..turn("elsewhere") };
    let elsewhere = world.must(BOB, &Body::ChatTurn(elsewhere)).hash();
    world.must(BOB, &blob_init("unfinished", b"x"));
    world.blob(BOB, "finished", b"x");
    world.next_block();
    let unknown = Some(Hash::new([3; 32]));
    let of_blob = |id: &str, attachments| ChatTurn {
        content_blob_id: Some(id.to_owned()),
        attachments,
        parent_turn_hash: unknown,
        ..turn("hello")
    };
    let missing = Some(vec![attachment("finished"), attachment("missing")]);
    let unfinished = Some(vec![attachment("unfinished")]);
    for (code, what, body) in [
        ("RUN_NOT_FOUND", "all", ChatTurn { agent_run_id: unknown, ..of_blob("missing", None) }),
        ("BLOB_NOT_FOUND", "missing and unfinished", of_blob("unfinished", missing)),
        ("BLOB_NOT_FINAL", "unfinished", of_blob("finished", unfinished)),
        ("TURN_NOT_FOUND", "parent", ChatTurn { parent_turn_hash: unknown, ..turn("hello") }),
        (
            "TURN_NOT_FOUND",
            "parent elsewhere",
            ChatTurn { parent_turn_hash: Some(elsewhere), ..turn("hello") },
        ),
    ] {
        assert_eq!(world.code(ALICE, &Body::ChatTurn(body)), code, "{what}");
    }
}

#[test]
fn a_turn_may_name_run_blobs_and_parent_of_the_same_block() {
    let mut world = World::new();
    let run = world.request(ALICE, 300, 3);
    world.blob(ALICE, "picture", b"x");
    let parent = world.must(BOB, &chat("first")).hash();
    let body = ChatTurn {
        content_blob_id: Some("picture".to_owned()),
        attachments: Some(vec![attachment("picture")]),
        agent_run_id: Some(run),
        parent_turn_hash: Some(parent),
        ..turn("")
    };
    world.must(ALICE, &Body::ChatTurn(body));
    world.next_block();
}
