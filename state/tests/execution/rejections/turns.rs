//! CHAT_TURN.

use types::tx::{Attachment, ChatTurn};
use types::{Body, Hash};

use crate::world::{ALICE, BOB, World, blob_init, turn};

fn attachment(blob_id: &str) -> Attachment {
    Attachment { kind: "file".to_owned(), blob_id: blob_id.to_owned() }
}

fn code(world: &World, change: impl FnOnce(&mut ChatTurn)) -> &'static str {
    let mut body = turn("hello");
    change(&mut body);
    world.code(ALICE, &Body::ChatTurn(body))
}

#[test]
fn a_turn_is_refused_in_order() {
    let mut world = World::new();
    let mut elsewhere = turn("elsewhere");
    elsewhere.conversation_id = Hash::ZERO;
    let elsewhere = world.must(BOB, &Body::ChatTurn(elsewhere)).hash();
    world.must(BOB, &blob_init("unfinished", b"x"));
    world.blob(BOB, "finished", b"x");
    world.next_block();
    let unknown = Some(Hash::new([3; 32]));
    let all_wrong = code(&world, |body| {
        body.agent_run_id = unknown;
        body.content_blob_id = Some("missing".to_owned());
        body.parent_turn_hash = unknown;
    });
    assert_eq!(all_wrong, "RUN_NOT_FOUND");
    let missing_beats_unfinished = code(&world, |body| {
        body.content_blob_id = Some("unfinished".to_owned());
        body.attachments = Some(vec![attachment("finished"), attachment("missing")]);
        body.parent_turn_hash = unknown;
    });
    assert_eq!(missing_beats_unfinished, "BLOB_NOT_FOUND");
    let unfinished = code(&world, |body| {
        body.content_blob_id = Some("finished".to_owned());
        body.attachments = Some(vec![attachment("unfinished")]);
        body.parent_turn_hash = unknown;
    });
    assert_eq!(unfinished, "BLOB_NOT_FINAL");
    for parent in [unknown, Some(elsewhere)] {
        assert_eq!(code(&world, |body| body.parent_turn_hash = parent), "TURN_NOT_FOUND");
    }
}

#[test]
fn a_turn_may_name_run_blobs_and_parent_of_the_same_block() {
    let mut world = World::new();
    let run = world.request(ALICE, 300, 3);
    world.blob(ALICE, "picture", b"x");
    let parent = world.must(BOB, &crate::world::chat("first")).hash();
    let mut body = turn("");
    body.content_blob_id = Some("picture".to_owned());
    body.attachments = Some(vec![attachment("picture")]);
    body.agent_run_id = Some(run);
    body.parent_turn_hash = Some(parent);
    world.must(ALICE, &Body::ChatTurn(body));
    world.next_block();
}
