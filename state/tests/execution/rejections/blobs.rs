//! SOCIAL_BLOB_INIT, SOCIAL_BLOB_CHUNK, SOCIAL_BLOB_FINALIZE.

use types::Body;

use crate::world::{ALICE, BOB, World, blob_chunk, blob_finalize, blob_init};

const BIG: usize = 400_003;

/// ALICE announced `big` with two chunks and sent the first; `small` is final.
fn world() -> World {
    let mut world = World::new();
    world.must(ALICE, &blob_init("big", &[1; BIG]));
    world.must(ALICE, &blob_chunk("big", 0, &[1; 400_000]));
    world.blob(ALICE, "small", b"abc");
    world.next_block();
    world
}

#[test]
fn an_announcement_needs_a_new_id() {
    let world = world();
    for id in ["big", "small"] {
        assert_eq!(world.code(BOB, &blob_init(id, b"x")), "BLOB_EXISTS");
    }
}

#[test]
fn a_chunk_is_refused_in_order() {
    let world = world();
    let cases = [
        ("BLOB_NOT_FOUND", blob_chunk("missing", 9, b"")),
        ("BLOB_CHUNK", blob_chunk("big", 2, b"xyz")),
        ("BLOB_CHUNK", blob_chunk("big", u64::from(u32::MAX) + 1, b"xyz")),
        ("BLOB_CHUNK", blob_chunk("big", 0, &[1; 400_000])),
        ("BLOB_CHUNK", blob_chunk("big", 1, b"xy")),
        ("BLOB_CHUNK", blob_chunk("big", 1, b"xyzx")),
        ("BLOB_CHUNK", blob_chunk("small", 0, b"abc")),
        ("NOT_BLOB_OWNER", blob_chunk("big", 1, b"xyz")),
    ];
    for (code, body) in cases {
        let Body::BlobChunk(chunk) = &body else { panic!("{body:?}") };
        let (index, bytes) = (chunk.chunk_index, chunk.chunk_data.len());
        assert_eq!(world.code(BOB, &body), code, "chunk {index} of {bytes} bytes");
    }
}

#[test]
fn finalising_is_refused_in_order() {
    let mut world = world();
    assert_eq!(world.code(BOB, &blob_finalize("missing")), "BLOB_NOT_FOUND");
    assert_eq!(world.code(BOB, &blob_finalize("small")), "BLOB_EXISTS");
    assert_eq!(world.code(BOB, &blob_finalize("big")), "BLOB_CHUNK");
    world.must(ALICE, &blob_chunk("big", 1, &[2; 3]));
    world.must(ALICE, &blob_init("right", b"abc"));
    world.must(ALICE, &blob_chunk("right", 0, b"abc"));
    world.next_block();
    assert_eq!(world.code(BOB, &blob_finalize("big")), "BLOB_HASH");
    assert_eq!(world.code(ALICE, &blob_finalize("big")), "BLOB_HASH");
    assert_eq!(world.code(BOB, &blob_finalize("right")), "NOT_BLOB_OWNER");
    world.must(ALICE, &blob_finalize("right"));
    world.next_block();
}
