//! Only signed records are learned, and only addresses that could be dialled.

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

#[test]
fn a_signed_record_is_learned_told_and_dialled_once_in_a_while() {
    let (now, key) = (Instant::now(), Keypair::generate_ed25519());
    let mut book = Book::new(PeerId::random());
    let peer = key.public().to_peer_id();
    assert!(book.learn(record(&key, &["/ip4/192.0.2.1/tcp/1"]), Reach::Elsewhere, now));
    assert_eq!(vec![peer], dialled(&mut book, now));
    assert_eq!(Vec::<PeerId>::new(), dialled(&mut book, now));
    assert_eq!(vec![peer], dialled(&mut book, now + RETRY_AFTER));

    assert_eq!(Vec::<Vec<u8>>::new(), book.tell(&peer), "nobody is told about itself");
    let told = book.tell(&PeerId::random());
    let mut other = Book::new(PeerId::random());
    assert!(other.read(&told[0], Reach::Elsewhere, now));
    assert_eq!(vec![peer], dialled(&mut other, now));
}

#[test]
fn a_record_that_somebody_else_changed_is_refused() {
    let now = Instant::now();
    let key = Keypair::generate_ed25519();
    let mut bytes = record(&key, &["/ip4/192.0.2.1/tcp/1"]).into_protobuf_encoding();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let mut book = Book::new(PeerId::random());
    assert!(!book.read(&bytes, Reach::Elsewhere, now));
    assert!(!book.read(b"anything", Reach::Elsewhere, now));
    assert_eq!(Vec::<PeerId>::new(), dialled(&mut book, now));
}

#[test]
fn addresses_that_lead_nowhere_are_not_learned() {
    let now = Instant::now();
    let cases = [
        ("/ip4/0.0.0.0/tcp/1", Reach::SameMachine, 0),
        ("/ip4/224.0.0.1/tcp/1", Reach::SameMachine, 0),
        ("/ip4/169.254.0.1/tcp/1", Reach::SameMachine, 0),
        ("/dns4/example.org/tcp/1", Reach::SameMachine, 0),
        ("/ip4/127.0.0.1/tcp/1", Reach::Elsewhere, 0),
        ("/ip4/127.0.0.1/tcp/1", Reach::SameMachine, 1),
        ("/ip6/2001:db8::1/tcp/1", Reach::Elsewhere, 1),
    ];
    for (address, reach, expected) in cases {
        let mut book = Book::new(PeerId::random());
        book.learn(record(&Keypair::generate_ed25519(), &[address]), reach, now);
        assert_eq!(expected, dialled(&mut book, now).len(), "{address} {reach:?}");
    }
}

#[test]
fn the_book_has_a_bound_and_never_holds_its_owner() {
    let (now, own) = (Instant::now(), Keypair::generate_ed25519());
    let mut book = Book::new(own.public().to_peer_id());
    book.learn(record(&own, &["/ip4/192.0.2.1/tcp/1"]), Reach::Elsewhere, now);
    assert!(book.known.is_empty());
    for _ in 0..KNOWN_MAX + 3 {
        let key = Keypair::generate_ed25519();
        book.learn(record(&key, &["/ip4/192.0.2.1/tcp/1"]), Reach::Elsewhere, now);
    }
    assert_eq!(KNOWN_MAX, book.known.len());
}
