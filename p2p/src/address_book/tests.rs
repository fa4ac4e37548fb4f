//! Only signed records are learned, only addresses that could be dialled, and nobody fills the book.

use libp2p::identity::Keypair;

use super::*;

fn record(key: &Keypair, addresses: &[&str]) -> SignedEnvelope {
    let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
    PeerRecord::new(key, addresses).unwrap().into_signed_envelope()
}

fn dialled(book: &mut Book, now: Instant) -> Vec<PeerId> {
    let dials = book.due(10, now, |_| false);
    dials.iter().filter_map(DialOpts::get_peer_id).collect()
}

fn empty() -> Book {
    Book::new(PeerId::random())
}

/// Has the book meet a node at this address.
fn meet(book: &mut Book, address: &str, now: Instant) -> PeerId {
    let key = Keypair::generate_ed25519();
    let (peer, parsed) = (key.public().to_peer_id(), address.parse().unwrap());
    book.learn(record(&key, &[address]), peer, Reach::SameMachine, now);
    book.met(&peer, ip_of(&parsed), false, now);
    peer
}

#[test]
fn a_signed_record_is_learned_and_dialled_a_few_times_only() {
    let (mut now, key) = (Instant::now(), Keypair::generate_ed25519());
    let (mut book, teller) = (empty(), PeerId::random());
    let peer = key.public().to_peer_id();
    let signed = record(&key, &["/ip4/192.0.2.1/tcp/1"]);
    assert!(book.learn(signed, teller, Reach::Public, now));
    assert_eq!(vec![peer], dialled(&mut book, now));
    assert_eq!(Vec::<PeerId>::new(), dialled(&mut book, now));
    book.failed(&peer, now);
    now += RETRY_AFTER;
    assert_eq!(vec![peer], dialled(&mut book, now));
    book.failed(&peer, now);
    assert!(book.known.is_empty(), "it did not answer twice");
}

#[test]
fn only_nodes_that_were_met_where_they_say_are_told_of() {
    let now = Instant::now();
    let mut book = empty();
    let heard = Keypair::generate_ed25519();
    book.learn(record(&heard, &["/ip4/192.0.2.1/tcp/1"]), PeerId::random(), Reach::Public, now);
    assert!(book.tell(&PeerId::random(), now).is_empty(), "it was only heard of");

    let elsewhere = Keypair::generate_ed25519();
    let peer = elsewhere.public().to_peer_id();
    book.learn(record(&elsewhere, &["/ip4/192.0.2.2/tcp/1"]), peer, Reach::Public, now);
    book.met(&peer, Some([192, 0, 2, 99].into()), false, now);
    assert!(
        book.tell(&PeerId::random(), now).is_empty(),
        "its record names somebody else's address"
    );
    book.met(&peer, Some([192, 0, 2, 2].into()), true, now);
    let told = book.tell(&PeerId::random(), now);
    assert_eq!(1, told.len());
    assert_eq!(Vec::<Vec<u8>>::new(), book.tell(&peer, now), "nobody is told about itself");
    let mut other = empty();
    assert!(other.read(&told[0], PeerId::random(), Reach::Public, now));
    assert_eq!(vec![peer], dialled(&mut other, now));

    book.left(&peer, now);
    assert_eq!(1, book.tell(&PeerId::random(), now + TOLD_WITHIN / 2).len());
    assert!(book.tell(&PeerId::random(), now + TOLD_WITHIN).is_empty(), "that was long ago");
}

#[test]
fn others_are_told_of_by_chance_and_not_by_their_names() {
    let (now, mut book) = (Instant::now(), empty());
    let met: Vec<PeerId> =
        (0..60).map(|n| meet(&mut book, &format!("/ip4/10.0.{n}.1/tcp/1"), now)).collect();
    let mut told = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let sample = book.tell(&PeerId::random(), now);
        assert_eq!(RECORDS_MAX, sample.len());
        told.extend(sample);
    }
    assert_eq!(met.len(), told.len());
}

#[test]
fn a_record_that_somebody_else_changed_is_refused() {
    let now = Instant::now();
    let key = Keypair::generate_ed25519();
    let mut bytes = record(&key, &["/ip4/192.0.2.1/tcp/1"]).into_protobuf_encoding();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let (mut book, teller) = (empty(), PeerId::random());
    assert!(!book.read(&bytes, teller, Reach::Public, now));
    assert!(!book.read(b"anything", teller, Reach::Public, now));
    assert_eq!(Vec::<PeerId>::new(), dialled(&mut book, now));
}

#[test]
fn a_book_full_of_ground_names_still_takes_in_meets_and_dials_others() {
    let (mut now, own) = (Instant::now(), Keypair::generate_ed25519());
    let mut book = Book::new(own.public().to_peer_id());
    book.learn(record(&own, &["/ip4/192.0.2.1/tcp/1"]), PeerId::random(), Reach::Public, now);
    assert!(book.known.is_empty(), "it never holds its owner");
    let tell = |book: &mut Book, teller: PeerId, address: &str, now| {
        let key = Keypair::generate_ed25519();
        book.learn(record(&key, &[address]), teller, Reach::SameMachine, now);
        key.public().to_peer_id()
    };
    // One teller, with addresses everywhere.
    let liar = PeerId::random();
    for n in 0..200 {
        tell(&mut book, liar, &format!("/ip4/10.0.{n}.1/tcp/1"), now);
    }
    assert_eq!(TOLD_MAX, book.known.len());
    // Many tellers, with addresses in one group.
    for n in 1..200 {
        tell(&mut book, PeerId::random(), &format!("/ip4/10.1.0.{n}/tcp/1"), now);
    }
    assert_eq!(TOLD_MAX + GROUP_MAX, book.known.len());
    // Many tellers, with addresses everywhere.
    for n in 0..4 * HEARD_MAX {
        tell(&mut book, PeerId::random(), &format!("/ip4/10.{}.{}.1/tcp/1", n / 200, n % 200), now);
    }
    assert_eq!(HEARD_MAX, book.known.len());
    let neighbour = meet(&mut book, "/ip4/10.1.0.250/tcp/1", now);
    assert!(book.known.contains_key(&neighbour), "who is met has room beside them");
    book.forget(&neighbour);
    let honest = tell(&mut book, PeerId::random(), "/ip4/172.16.0.1/tcp/1", now);
    assert!(book.known.contains_key(&honest), "there is always room for one more");

    let met: Vec<PeerId> =
        (0..9).map(|n| meet(&mut book, &format!("/ip4/172.17.{n}.1/tcp/1"), now)).collect();
    for peer in &met {
        book.left(peer, now);
    }
    for n in 0..4 * HEARD_MAX {
        tell(&mut book, PeerId::random(), &format!("/ip4/10.{}.{}.9/tcp/1", n / 200, n % 200), now);
    }
    let picked = dialled(&mut book, now);
    assert_eq!(5, picked.iter().filter(|peer| met.contains(peer)).count(), "half of ten were met");
    now += HEARD_KEPT;
    dialled(&mut book, now);
    assert!(book.known.keys().all(|peer| met.contains(peer)), "what was only heard of is over");
}

#[test]
fn whoever_tells_of_itself_in_an_answer_has_no_more_room_than_others() {
    let (now, mut book) = (Instant::now(), empty());
    for n in 0..4 * HEARD_MAX {
        let key = Keypair::generate_ed25519();
        let address = format!("/ip4/10.{}.{}.1/tcp/1", n / 200, n % 200);
        let bytes = record(&key, &[&address]).into_protobuf_encoding();
        // A name of its own each time, and the name's own record as the answer.
        assert!(book.read(&bytes, key.public().to_peer_id(), Reach::SameMachine, now));
    }
    assert_eq!(HEARD_MAX, book.known.len());
}

#[test]
fn whoever_comes_with_many_names_displaces_only_its_neighbours() {
    let (now, mut book) = (Instant::now(), empty());
    let honest: Vec<PeerId> =
        (0..20).map(|n| meet(&mut book, &format!("/ip4/10.0.{n}.1/tcp/1"), now)).collect();
    for n in 0..500 {
        let later = now + Duration::from_secs(n);
        let peer = meet(&mut book, &format!("/ip4/10.1.0.{}/tcp/1", n % 250), later);
        book.left(&peer, later);
    }
    assert_eq!(honest.len() + GROUP_MAX, book.known.len());
    assert!(honest.iter().all(|peer| book.known.contains_key(peer)));
}
