//! The letters by which vocabularies of byte-level encodings write bytes: printable characters of
//! Latin-1 stand for themselves, and the other bytes, in their order, for U+0100 and what follows.

/// The first letter of a byte that does not stand for itself.
const FIRST: u32 = 0x100;
/// The bytes that do not stand for themselves: these, in order.
const OTHERS: [(u8, u8); 3] = [(0x00, 0x20), (0x7f, 0xa0), (0xad, 0xad)];

/// The letter of a byte.
pub(super) fn letter(byte: u8) -> char {
    let mut number = FIRST;
    for (first, last) in OTHERS {
        if (first..=last).contains(&byte) {
            let letter = number + u32::from(byte - first);
            return char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER);
        }
        number += u32::from(last - first) + 1;
    }
    char::from(byte)
}

/// The bytes of a text of letters; none if a character is not such a letter.
pub(super) fn bytes(text: &str) -> Option<Box<[u8]>> {
    text.chars().map(byte).collect()
}

fn byte(letter: char) -> Option<u8> {
    let mut number = FIRST;
    for (first, last) in OTHERS {
        let count = u32::from(last - first) + 1;
        if (number..number + count).contains(&u32::from(letter)) {
            return u8::try_from(u32::from(letter) - number).ok().map(|at| first + at);
        }
        number += count;
    }
    let byte = u8::try_from(u32::from(letter)).ok()?;
    let stands_for_itself = OTHERS.iter().all(|(first, last)| !(*first..=*last).contains(&byte));
    stands_for_itself.then_some(byte)
}
