//! Bodies arrive in any order, some parts twice, some from liars.

use malachitebft_engine::util::streaming::StreamContent::{Data, Fin};
use types::Address;

use super::*;
use crate::parts::{cut, describe};
use crate::testing::{key, peer};

const LIMITS: Limits = Limits {
    body_bytes_max: 4 * CHUNK_BYTES,
    per_proposer_max: 3,
    light_per_proposer_max: 5,
    early_streams_max: 3,
    per_publisher_max: 2,
    early_chunks_max: 2,
};

/// Knows no validator's node.
fn assembler() -> Assembler {
    Assembler::new(LIMITS, ValidatorNodes::default())
}

fn body(size: usize) -> Bytes {
    (0..size).map(|at| u8::try_from(at % 251).unwrap_or(0)).collect()
}

fn head(height: u64, bytes: &[u8]) -> Head {
    head_by(1, height, bytes)
}

fn head_by(proposer: u8, height: u64, bytes: &[u8]) -> Head {
    let fields = describe(height, 0, Address::new([proposer; 20]), Hash::new([2; 32]), bytes);
    let seal = key(1).sign(b"not looked at here");
    Head::new(&fields.expect("a small body"), Form::Whole, &seal)
}

fn messages(id: u8, height: u64, bytes: &Bytes) -> Vec<StreamMessage<Part>> {
    let stream = StreamId::new(Bytes::copy_from_slice(&[id]));
    cut(&stream, head(height, bytes), bytes).collect()
}

/// Adds messages and returns the bodies that came out.
fn add_all(
    assembler: &mut Assembler,
    from: PeerId,
    messages: impl IntoIterator<Item = StreamMessage<Part>>,
) -> Vec<Body> {
    messages.into_iter().filter_map(|message| assembler.add(from, message, |_| true)).collect()
}

#[test]
fn a_body_comes_together_in_any_order() {
    for size in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
        let bytes = body(size);
        let whole = Body { head: head(1, &bytes), bytes: bytes.clone() };
        let peer = peer(1);
        let forward = messages(1, 1, &bytes);
        let mut shuffled = forward.clone();
        // As many chunks come before the head as may.
        shuffled[..forward.len().min(3)].rotate_left(1);
        let twice = shuffled.iter().flat_map(|message| [message.clone(), message.clone()]);
        for order in [forward, shuffled.clone(), twice.collect()] {
            let bodies = add_all(&mut assembler(), peer, order);
            assert!(bodies.first() == Some(&whole), "{size} bytes");
        }
    }
}

#[test]
fn a_compact_block_comes_together_by_its_own_length_and_is_no_longer_than_its_body() {
    let (whole, compact_block) = (body(3 * CHUNK_BYTES), body(CHUNK_BYTES + 1));
    let announced = |bytes: u32| {
        let fields = head(1, &whole).fields();
        Head::new(&fields, Form::CompactBlock(bytes), &head(1, &whole).seal())
    };
    let stream = StreamId::new(Bytes::from_static(b"o"));
    let length = u32::try_from(compact_block.len()).expect("short");
    let messages = cut(&stream, announced(length), &compact_block);
    let bodies = add_all(&mut assembler(), peer(1), messages);
    assert_eq!(bodies, [Body { head: announced(length), bytes: compact_block.clone() }]);
    let messages = cut(&stream, announced(length + 1), &compact_block);
    assert!(add_all(&mut assembler(), peer(1), messages).is_empty());

    let longer = u32::try_from(whole.len() + 1).expect("short");
    let mut assembler = assembler();
    let first = cut(&stream, announced(longer), &compact_block).take(1);
    assert!(add_all(&mut assembler, peer(1), first).is_empty() && assembler.streams.is_empty());
}

#[test]
fn parts_of_another_publisher_do_not_mix() {
    let bytes = body(2 * CHUNK_BYTES);
    let mut assembler = assembler();
    let all = messages(1, 1, &bytes);
    let (honest, liar) = (peer(2), peer(3));
    assert!(add_all(&mut assembler, honest, all[..2].to_vec()).is_empty());
    assert!(add_all(&mut assembler, liar, all[2..].to_vec()).is_empty());
    assert_eq!(add_all(&mut assembler, honest, all[2..].to_vec()).len(), 1);
}

#[test]
fn other_bytes_than_the_sealed_ones_come_to_nothing() {
    let bytes = body(CHUNK_BYTES);
    let mut forged = messages(1, 1, &bytes);
    forged[1].content = Data(Part::Chunk(vec![0; CHUNK_BYTES]));
    let mut assembler = assembler();
    let peer = peer(4);
    assert!(add_all(&mut assembler, peer, forged).is_empty());
    assert_eq!(add_all(&mut assembler, peer, messages(1, 1, &bytes)).len(), 1);
}

#[test]
fn unwanted_or_oversized_bodies_keep_no_memory() {
    let mut assembler = assembler();
    let peer = peer(5);
    let unwanted = messages(1, 1, &body(CHUNK_BYTES)).swap_remove(0);
    assert!(assembler.add(peer, unwanted, |_| false).is_none());
    let large = body(5 * CHUNK_BYTES);
    let first = messages(2, 1, &large).swap_remove(0);
    assert!(assembler.add(peer, first, |_| true).is_none());
    let stream = StreamId::new(Bytes::copy_from_slice(&[3; STREAM_ID_BYTES_MAX + 1]));
    let long_id = StreamMessage::new(stream.clone(), 1, Data(Part::Chunk(vec![1])));
    assert!(assembler.add(peer, long_id, |_| true).is_none());
    let misplaced = StreamMessage::new(stream, 0, Data(Part::Chunk(vec![1])));
    assert!(assembler.add(peer, misplaced, |_| true).is_none());
    assert!(assembler.streams.is_empty());
}

/// A part of a stream without a head.
fn stray(id: u8, number: u64) -> StreamMessage<Part> {
    let stream = StreamId::new(Bytes::copy_from_slice(&[id]));
    StreamMessage::new(stream, number, Data(Part::Chunk(vec![0; 9])))
}

#[test]
fn early_chunks_and_streams_are_bounded() {
    let mut assembler = assembler();
    let [honest, liar, other] = [6, 7, 8].map(peer);
    let wanted = messages(9, 1, &body(2 * CHUNK_BYTES));
    let early = messages(10, 1, &body(CHUNK_BYTES));
    assert!(add_all(&mut assembler, honest, wanted[..1].to_vec()).is_empty());
    assert!(add_all(&mut assembler, honest, early[1..].to_vec()).is_empty());
    for (id, number) in (0..8).flat_map(|id| (1..10).map(move |number| (id, number))) {
        assert!(assembler.add(liar, stray(id, number), |_| true).is_none());
    }
    let of = |assembler: &Assembler, peer| {
        assembler.streams.keys().filter(|key| key.publisher == peer).count()
    };
    assert_eq!((of(&assembler, honest), of(&assembler, liar)), (2, LIMITS.per_publisher_max));
    assert!(
        assembler.streams.values().all(|stream| stream.chunks.len() <= LIMITS.early_chunks_max)
    );
    assert_eq!(add_all(&mut assembler, honest, early[..1].to_vec()).len(), 1, "it was kept");
    for id in 0..8 {
        assert!(assembler.add(other, stray(id, 1), |_| true).is_none());
    }
    assert_eq!(assembler.streams.len(), 1 + LIMITS.early_streams_max);
    assert_eq!(add_all(&mut assembler, honest, wanted[1..].to_vec()).len(), 1, "it was kept");
}

#[test]
fn nobody_pushes_out_what_another_proposer_sealed() {
    let mut assembler = assembler();
    let honest = peer(9);
    let wanted = messages(1, 1, &body(2 * CHUNK_BYTES));
    assert!(add_all(&mut assembler, honest, wanted[..2].to_vec()).is_empty());
    // A liar seals body after body, and has others announce them too.
    for (publisher, id) in (0..8).flat_map(|publisher| (0..8).map(move |id| (publisher, id))) {
        let bytes = body(usize::from(id) + 1);
        let stream = StreamId::new(Bytes::copy_from_slice(&[id]));
        let announced = cut(&stream, head_by(2, 1, &bytes), &bytes).next().expect("a head");
        assert!(assembler.add(peer(publisher), announced, |_| true).is_none());
    }
    assert_eq!(assembler.streams.len(), 1 + LIMITS.light_per_proposer_max);
    assert_eq!(add_all(&mut assembler, honest, wanted[2..].to_vec()).len(), 1);
}

/// A part of another stream than its own.
fn copied(part: &StreamMessage<Part>, id: u8) -> StreamMessage<Part> {
    let stream = StreamId::new(Bytes::copy_from_slice(&[id]));
    StreamMessage::new(stream, part.sequence, part.content.clone())
}

#[test]
fn copies_of_a_head_take_no_room_from_what_holds_more() {
    let mut assembler = assembler();
    let wanted = messages(1, 1, &body(2 * CHUNK_BYTES));
    assert!(add_all(&mut assembler, peer(9), wanted[..2].to_vec()).is_empty());
    for (publisher, id) in (0..8).flat_map(|publisher| (10..12).map(move |id| (publisher, id))) {
        assert!(assembler.add(peer(publisher), copied(&wanted[0], id), |_| true).is_none());
        let Data(Part::Chunk(chunk)) = &wanted[1].content else { panic!("a chunk") };
        let little = Data(Part::Chunk(chunk[1..].to_vec()));
        let little = StreamMessage::new(copied(&wanted[1], id).stream_id, 1, little);
        assert!(assembler.add(peer(publisher), little, |_| true).is_none());
    }
    assert_eq!(assembler.streams.len(), 1 + LIMITS.light_per_proposer_max);
    assert_eq!(add_all(&mut assembler, peer(9), wanted[2..].to_vec()).len(), 1);
}

#[test]
fn nobody_pushes_out_what_the_node_of_a_validator_publishes() {
    let validator = key(1).address();
    let validator_nodes = ValidatorNodes::default().with(validator, peer(9));
    let mut assembler = Assembler::new(LIMITS, validator_nodes);
    let wanted = messages(1, 1, &body(3 * CHUNK_BYTES));
    let early = messages(2, 1, &body(CHUNK_BYTES));
    assert!(add_all(&mut assembler, peer(9), early[1..].to_vec()).is_empty());
    // However much of it the liar sends, and before each part.
    for part in &wanted {
        for (publisher, id) in (0..8).flat_map(|publisher| (10..12).map(move |id| (publisher, id)))
        {
            let copies = wanted[..3].iter().map(|part| copied(part, id));
            assert!(add_all(&mut assembler, peer(publisher), copies).is_empty());
            assert!(assembler.add(peer(publisher), stray(id + 2, 1), |_| true).is_none());
        }
        let came = add_all(&mut assembler, peer(9), [part.clone()]);
        assert_eq!(came.len(), usize::from(part == &wanted[3]));
    }
    assert_eq!(add_all(&mut assembler, peer(9), early[..1].to_vec()).len(), 1);
    let others = LIMITS.per_proposer_max + LIMITS.early_streams_max;
    assert_eq!(assembler.streams.len(), others);
}

#[test]
fn a_stalled_stream_makes_room_for_one_of_the_same_proposer() {
    let mut assembler = assembler();
    let all: Vec<_> = (1..=4).map(|id| messages(id, 1, &body(2 * CHUNK_BYTES))).collect();
    for id in 0..4_u8 {
        let of_stream = &all[usize::from(id)];
        assert!(add_all(&mut assembler, peer(id), of_stream[..2].to_vec()).is_empty());
        // The first goes on, so the second has waited longest when the fourth comes.
        assert!(add_all(&mut assembler, peer(0), all[0][1..2].to_vec()).is_empty());
    }
    let mut finish =
        |id: u8| add_all(&mut assembler, peer(id), all[usize::from(id)][1..].to_vec()).len();
    assert_eq!([0, 1, 2, 3].map(&mut finish), [1, 0, 1, 1]);
}

#[test]
fn old_heights_are_forgotten() {
    let mut assembler = assembler();
    let peer = peer(7);
    for (id, height) in [(1, 1), (2, 2), (3, 3)] {
        let first = messages(id, height, &body(CHUNK_BYTES)).swap_remove(0);
        assert!(assembler.add(peer, first, |_| true).is_none());
    }
    assembler.prune(2);
    assert_eq!(assembler.streams.len(), 1);
    let end = StreamMessage::new(StreamId::new(Bytes::from_static(b"x")), 1, Fin);
    assert!(assembler.add(peer, end, |_| true).is_none());
    assert_eq!(assembler.streams.len(), 1);
}
