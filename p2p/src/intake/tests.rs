//! One peer's flood takes neither the room nor the time of the others.

use types::Signature;

use super::*;

fn queues(count_max: usize, bytes_max: usize) -> Queues {
    Queues { count_max, bytes_max, count: 0, bytes: 0, of: BTreeMap::new(), last: None }
}

fn message(from: PeerId, number: u32, txs: usize) -> Waiting {
    let tx = |at| SignedTx::new(&format!("{number} {at}"), Signature::new([7; 64]));
    let id = MessageId::new(&number.to_le_bytes());
    Waiting { id, from, txs: (0..txs).map(tx).collect() }
}

#[test]
fn who_has_most_in_line_loses_its_latest_when_there_is_no_room() {
    let (flooder, honest) = (PeerId::random(), PeerId::random());
    let mut queues = queues(10, usize::MAX / 100);
    for number in 0..10 {
        assert!(queues.push(message(flooder, number, 1)).is_empty());
    }
    let own = queues.push(message(flooder, 10, 1));
    assert_eq!(vec![flooder], own.iter().map(|it| it.from).collect::<Vec<_>>());
    for number in 20..25 {
        let out = queues.push(message(honest, number, 1));
        assert_eq!(vec![flooder], out.iter().map(|it| it.from).collect::<Vec<_>>());
    }
    let out = queues.push(message(honest, 25, 1));
    assert_eq!(vec![honest], out.iter().map(|it| it.from).collect::<Vec<_>>(), "its own share");
    assert_eq!(10, queues.count);
}

#[test]
fn bytes_are_shared_as_messages_are() {
    let (flooder, honest) = (PeerId::random(), PeerId::random());
    let small = message(honest, 0, 1).bytes();
    let mut queues = queues(1_000, small * 50);
    for number in 0..10 {
        queues.push(message(flooder, number, 40));
    }
    for number in 20..30 {
        assert!(queues.push(message(honest, number, 1)).iter().all(|it| it.from == flooder));
    }
    assert!(queues.bytes <= small * 50);
    assert_eq!(10, queues.of.get(&honest).map_or(0, |it| it.messages.len()));
}

#[test]
fn a_message_waits_for_one_turn_of_each_other_peer() {
    let (flooder, honest) = (PeerId::random(), PeerId::random());
    let mut queues = queues(10_000, usize::MAX / 100_000);
    for number in 0..100 {
        queues.push(message(flooder, number, TURN_TXS));
    }
    queues.batch();
    queues.push(message(honest, 200, 1));
    let batch = queues.batch();
    let place = batch.iter().position(|it| it.from == honest);
    assert!(place.is_some_and(|place| place <= 1), "{place:?}");
}

#[test]
fn everything_comes_out_in_each_peers_order_and_nothing_is_left() {
    let peers = [PeerId::random(), PeerId::random(), PeerId::random()];
    let mut queues = queues(10_000, usize::MAX / 100_000);
    for number in 0..90_u32 {
        let peer = peers.iter().cycle().nth(usize::try_from(number).unwrap()).unwrap();
        queues.push(message(*peer, number, 3));
    }
    let mut seen: BTreeMap<PeerId, Vec<u32>> = BTreeMap::new();
    loop {
        let batch = queues.batch();
        if batch.is_empty() {
            break;
        }
        assert!(batch.len() <= JOINED_MAX);
        for it in batch {
            let number = u32::from_le_bytes(it.id.0.clone().try_into().unwrap());
            seen.entry(it.from).or_default().push(number);
        }
    }
    assert!(seen.values().all(|numbers| numbers.len() == 30 && numbers.is_sorted()));
    assert_eq!((0, 0, true), (queues.count, queues.bytes, queues.of.is_empty()));
}
