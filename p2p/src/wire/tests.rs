//! Messages come back as they were written, and nothing else is read.

use super::*;

fn tx(text: &str) -> SignedTx {
    SignedTx::new(text, Signature::new([7; 64]))
}

#[test]
fn packs_questions_lists_and_records_come_back_as_they_were_written() {
    let txs = [tx("{}"), tx(""), tx("{\"emoji\":\"🦀\"}")];
    assert_eq!(Ok(txs.to_vec()), read_pack(&write_pack(&txs), 3));
    let wishes = [
        Wish::List { after: None },
        Wish::List { after: Some(Address::new([3; 20])) },
        Wish::Fetch { hashes: vec![Hash::digest(b"a"), Hash::digest(b"b")] },
    ];
    for wish in wishes {
        let question = Question { height: 9, wish };
        assert_eq!(Ok(question.clone()), Question::read(&question.write()));
    }
    let listing = Listing { hashes: vec![Hash::digest(b"a")], next: Some(Address::new([3; 20])) };
    assert_eq!(Ok((4, listing.clone())), read_listing(&write_listing(4, &listing)));
    let records = [vec![1, 2], vec![]];
    assert_eq!(Ok(vec![&[1, 2][..], &[]]), read_records(&write_records(records)));
}

#[test]
fn every_beginning_of_a_message_is_refused_or_a_shorter_message() {
    let pack = write_pack(&[tx("{}"), tx("{}")]);
    let one = write_pack(&[tx("{}")]).len();
    for end in 0..pack.len() {
        let expected = match end {
            0 => Err(WireError::Empty),
            end if end == one => Ok(1),
            _ => Err(WireError::Truncated),
        };
        assert_eq!(expected, read_pack(&pack[..end], 2).map(|txs| txs.len()), "{end} bytes");
    }
    let question = Question { height: 1, wish: Wish::List { after: Some(Address::new([3; 20])) } };
    let bytes = question.write();
    for end in 0..bytes.len() {
        assert_eq!(Err(WireError::Truncated), Question::read(&bytes[..end]), "{end} bytes");
    }
}

#[test]
fn what_is_too_much_or_unknown_is_refused() {
    let three = write_pack(&[tx("{}"), tx("{}"), tx("{}")]);
    assert_eq!(Err(WireError::TooMany { max: 2 }), read_pack(&three, 2));
    let far = [&u32::MAX.to_le_bytes()[..], &[0; 100]].concat();
    assert_eq!(Err(WireError::Truncated), read_pack(&far, 2));
    let not_text = [&2_u32.to_le_bytes()[..], &[0xff; 66]].concat();
    assert_eq!(Err(WireError::NotText), read_pack(&not_text, 2));
    let kind = [&[0; 8][..], &[2]].concat();
    assert_eq!(Err(WireError::Kind { kind: 2 }), Question::read(&kind));
    let wish = Wish::Fetch { hashes: vec![Hash::ZERO; PACK_MAX + 1] };
    let many = Question { height: 0, wish }.write();
    assert_eq!(Err(WireError::TooMany { max: PACK_MAX }), Question::read(&many));
}
