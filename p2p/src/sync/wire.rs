//! The bytes of questions about the chain. Integers are little-endian.
//!
//! ```text
//! question    kind (1) | content
//!   kind 0    status: the status of the asking node
//!   kind 1    blocks: first height (8) | count (4)
//!   kind 2    snapshots of the first format, of which there are none any more
//!   kind 3    piece: hash (32) | offset (8)
//!   kind 4    snapshots of a format: its number (4); only in version 2 of the protocol
//! answer      nothing: the peer has no time; else 1 (1) | content
//!   to 0      status
//!   to 1      blocks in a row
//!   to 2, 4   snapshots, the newest first
//!   to 3      bytes from the offset on: as many as fit, or the rest; none if there is no such thing
//!
//! status      earliest height (8) | height of the tip (8)
//! snapshot    height (8) | hash of its offer (32) | length of that (8)
//! block       block's length (4) | certificate's length (4) | block | certificate
//! ```

use types::Hash;

use crate::ports::{EncodedBlock, SnapshotHead, Status};
use crate::wire::{WireError, take, take_bytes, write_length};

/// Blocks in one answer, however small they are.
pub(crate) const BLOCKS_MAX: u32 = 512;
/// Bytes of an answer with blocks, from which on no further one is added.
pub(crate) const BLOCKS_BYTES_WANTED: usize = 1024 * 1024;
/// Bytes of a piece of a snapshot in one answer.
pub(crate) const PIECE_BYTES_MAX: usize = BLOCKS_BYTES_WANTED;
/// Snapshots in one answer.
pub(crate) const SNAPSHOTS_MAX: usize = 4;
/// Bytes of a question of any kind.
pub(crate) const QUESTION_BYTES_MAX: u64 = 64;
/// The largest certificate: so many signatures of so many bytes, and what surrounds them.
const CERTIFICATE_BYTES_MAX: usize = 64 * 84 + 64;

const STATUS: u8 = 0;
const BLOCKS: u8 = 1;
const SNAPSHOTS: u8 = 2;
const PIECE: u8 = 3;
const SNAPSHOTS_OF: u8 = 4;
/// The format of the snapshots that kind 2 asks for.
const FIRST_FORMAT: u32 = 1;
/// How the name of the protocol ends that does not have kind 4.
const FIRST_VERSION: &str = "/sync/1";
/// What an answer begins with that is not a refusal.
const GRANTED: u8 = 1;

/// What one node asks of another's chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// How far the other is; the asking node says the same of itself.
    Status(Status),
    /// Blocks from a height on.
    Blocks { first: u64, count: u32 },
    /// Which snapshots of the state it offers, of a format.
    Snapshots { format: u32 },
    /// Part of an offer or of a chunk of a snapshot.
    Piece { hash: Hash, offset: u64 },
}

impl Question {
    pub(crate) fn write(&self) -> Vec<u8> {
        match self {
            Self::Status(status) => {
                let mut out = vec![STATUS];
                status_into(status, &mut out);
                out
            }
            Self::Blocks { first, count } => {
                let mut out = vec![BLOCKS];
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
                out
            }
            Self::Snapshots { format } => {
                let mut out = vec![SNAPSHOTS_OF];
                out.extend_from_slice(&format.to_le_bytes());
                out
            }
            Self::Piece { hash, offset } => {
                let mut out = vec![PIECE];
                out.extend_from_slice(hash.as_bytes());
                out.extend_from_slice(&offset.to_le_bytes());
                out
            }
        }
    }

    pub(crate) fn read(mut bytes: &[u8]) -> Result<Self, WireError> {
        let [kind] = take(&mut bytes)?;
        let question = match kind {
            STATUS => Self::Status(take_status(&mut bytes)?),
            BLOCKS => Self::Blocks {
                first: u64::from_le_bytes(take(&mut bytes)?),
                count: u32::from_le_bytes(take(&mut bytes)?),
            },
            SNAPSHOTS => Self::Snapshots { format: FIRST_FORMAT },
            SNAPSHOTS_OF => Self::Snapshots { format: u32::from_le_bytes(take(&mut bytes)?) },
            PIECE => Self::Piece {
                hash: Hash::new(take(&mut bytes)?),
                offset: u64::from_le_bytes(take(&mut bytes)?),
            },
            kind => return Err(WireError::Kind { kind }),
        };
        if bytes.is_empty() { Ok(question) } else { Err(WireError::TooMany { max: 1 }) }
    }
}

/// Whether a protocol of this name has a question.
pub(crate) fn has_question(protocol: &str, question: &[u8]) -> bool {
    !(protocol.ends_with(FIRST_VERSION) && question.first() == Some(&SNAPSHOTS_OF))
}

/// The largest answer, when no block has more than `block_bytes_max`.
pub(crate) fn answer_bytes_max(block_bytes_max: usize) -> u64 {
    let last = block_bytes_max.saturating_add(CERTIFICATE_BYTES_MAX).saturating_add(8);
    u64::try_from(BLOCKS_BYTES_WANTED.saturating_add(last).saturating_add(1)).unwrap_or(u64::MAX)
}

pub(crate) fn write_status(status: &Status) -> Vec<u8> {
    let mut out = vec![GRANTED];
    status_into(status, &mut out);
    out
}

/// Reads an answer; none if the peer has no time.
pub(crate) fn read_status(bytes: &[u8]) -> Result<Option<Status>, WireError> {
    let Some(mut content) = granted(bytes)? else { return Ok(None) };
    let status = take_status(&mut content)?;
    if content.is_empty() { Ok(Some(status)) } else { Err(WireError::TooMany { max: 1 }) }
}

/// The blocks, up to the first that goes over what is wanted in one answer.
pub(crate) fn write_blocks(blocks: &[EncodedBlock]) -> Vec<u8> {
    let mut out = vec![GRANTED];
    for EncodedBlock { bytes, certificate } in blocks {
        if out.len() >= BLOCKS_BYTES_WANTED {
            break;
        }
        write_length(bytes.len(), &mut out);
        write_length(certificate.len(), &mut out);
        out.extend_from_slice(bytes);
        out.extend_from_slice(certificate);
    }
    out
}

/// Reads an answer of at most `max` blocks; none if the peer has no time.
pub(crate) fn read_blocks(bytes: &[u8], max: u32) -> Result<Option<Vec<EncodedBlock>>, WireError> {
    let Some(mut content) = granted(bytes)? else { return Ok(None) };
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let mut blocks = Vec::new();
    while !content.is_empty() {
        if blocks.len() >= max {
            return Err(WireError::TooMany { max });
        }
        let lengths = [take::<4>(&mut content)?, take::<4>(&mut content)?];
        let [block, certificate] = lengths.map(u32::from_le_bytes);
        let bytes = take_bytes(&mut content, block)?.to_vec();
        let certificate = take_bytes(&mut content, certificate)?.to_vec();
        blocks.push(EncodedBlock { bytes, certificate });
    }
    Ok(Some(blocks))
}

pub(crate) fn write_snapshots(snapshots: &[SnapshotHead]) -> Vec<u8> {
    let mut out = vec![GRANTED];
    for SnapshotHead { height, hash, bytes } in snapshots.iter().take(SNAPSHOTS_MAX) {
        out.extend_from_slice(&height.to_le_bytes());
        out.extend_from_slice(hash.as_bytes());
        out.extend_from_slice(&bytes.to_le_bytes());
    }
    out
}

/// Reads an answer; none if the peer has no time.
pub(crate) fn read_snapshots(bytes: &[u8]) -> Result<Option<Vec<SnapshotHead>>, WireError> {
    let Some(mut content) = granted(bytes)? else { return Ok(None) };
    let mut snapshots = Vec::new();
    while !content.is_empty() {
        if snapshots.len() >= SNAPSHOTS_MAX {
            return Err(WireError::TooMany { max: SNAPSHOTS_MAX });
        }
        snapshots.push(SnapshotHead {
            height: u64::from_le_bytes(take(&mut content)?),
            hash: Hash::new(take(&mut content)?),
            bytes: u64::from_le_bytes(take(&mut content)?),
        });
    }
    Ok(Some(snapshots))
}

pub(crate) fn write_piece(piece: &[u8]) -> Vec<u8> {
    [&[GRANTED], piece].concat()
}

/// Reads an answer; none if the peer has no time.
pub(crate) fn read_piece(bytes: &[u8]) -> Result<Option<Vec<u8>>, WireError> {
    match granted(bytes)? {
        Some(piece) if piece.len() > PIECE_BYTES_MAX => {
            Err(WireError::TooMany { max: PIECE_BYTES_MAX })
        }
        piece => Ok(piece.map(<[u8]>::to_vec)),
    }
}

fn granted(mut bytes: &[u8]) -> Result<Option<&[u8]>, WireError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    match take::<1>(&mut bytes)? {
        [GRANTED] => Ok(Some(bytes)),
        [kind] => Err(WireError::Kind { kind }),
    }
}

fn status_into(status: &Status, out: &mut Vec<u8>) {
    let Status { earliest, tip } = status;
    out.extend_from_slice(&earliest.to_le_bytes());
    out.extend_from_slice(&tip.to_le_bytes());
}

fn take_status(bytes: &mut &[u8]) -> Result<Status, WireError> {
    let earliest = u64::from_le_bytes(take(bytes)?);
    let tip = u64::from_le_bytes(take(bytes)?);
    Ok(Status { earliest, tip })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: usize) -> EncodedBlock {
        EncodedBlock { bytes: vec![7; bytes], certificate: vec![8; 3] }
    }

    #[test]
    fn questions_come_back_as_they_were_and_are_small() {
        let status = Question::Status(Status { earliest: 5, tip: u64::MAX });
        let blocks = Question::Blocks { first: 1 << 40, count: 9 };
        let piece = Question::Piece { hash: Hash::new([7; 32]), offset: 1 << 40 };
        let snapshots = Question::Snapshots { format: 2 };
        for question in [status, blocks, snapshots, piece] {
            let bytes = question.write();
            assert!(u64::try_from(bytes.len()).unwrap() <= QUESTION_BYTES_MAX);
            assert_eq!(Ok(question), Question::read(&bytes));
            let longer = [bytes.as_slice(), &[0]].concat();
            assert_eq!(Err(WireError::TooMany { max: 1 }), Question::read(&longer));
            let shorter = bytes.get(..bytes.len() - 1).unwrap();
            assert_eq!(Err(WireError::Truncated), Question::read(shorter));
        }
        assert_eq!(Err(WireError::Kind { kind: 250 }), Question::read(&[250]));
        // As earlier builds ask.
        assert_eq!(Ok(Question::Snapshots { format: 1 }), Question::read(&[2]));
    }

    #[test]
    fn only_what_an_earlier_build_knows_is_asked_of_it() {
        let (first, second) = ("/ombra/town/abababab/sync/1", "/ombra/town/abababab/sync/2");
        let snapshots = Question::Snapshots { format: 2 }.write();
        let piece = Question::Piece { hash: Hash::new([7; 32]), offset: 0 }.write();
        assert!(!has_question(first, &snapshots));
        assert!(has_question(second, &snapshots));
        assert!(has_question(first, &piece));
        // Other protocols have other questions.
        assert!(has_question("/ombra/town/abababab/pool/1", &snapshots));
    }

    #[test]
    fn snapshots_and_pieces_come_back_as_they_were_and_have_bounds() {
        let head = SnapshotHead { height: 9, hash: Hash::new([8; 32]), bytes: 1 << 20 };
        let answer = write_snapshots(&[head; 9]);
        assert_eq!(Ok(Some(vec![head; SNAPSHOTS_MAX])), read_snapshots(&answer));
        let many = [answer.as_slice(), &[0; 48]].concat();
        assert_eq!(Err(WireError::TooMany { max: SNAPSHOTS_MAX }), read_snapshots(&many));
        assert_eq!(Err(WireError::Truncated), read_snapshots(answer.get(..40).unwrap()));
        assert_eq!(Ok(None), read_snapshots(&[]));
        assert_eq!(Ok(Some(vec![5; 3])), read_piece(&write_piece(&[5; 3])));
        let long = write_piece(&[0; PIECE_BYTES_MAX + 1]);
        assert_eq!(Err(WireError::TooMany { max: PIECE_BYTES_MAX }), read_piece(&long));
    }

    #[test]
    fn an_answer_with_blocks_ends_with_the_one_that_fills_it() {
        let blocks = [block(10), block(BLOCKS_BYTES_WANTED), block(10)];
        let answer = write_blocks(&blocks);
        assert_eq!(Ok(Some(blocks[..2].to_vec())), read_blocks(&answer, 3));
        assert_eq!(Err(WireError::TooMany { max: 1 }), read_blocks(&answer, 1));
        let cut = answer.get(..answer.len() - 1).unwrap();
        assert_eq!(Err(WireError::Truncated), read_blocks(cut, 3));
        let max = answer_bytes_max(BLOCKS_BYTES_WANTED);
        assert!(u64::try_from(answer.len()).unwrap() <= max);
    }

    #[test]
    fn an_empty_answer_is_a_refusal_and_an_answer_without_blocks_is_none() {
        assert_eq!(Ok(None), read_blocks(&[], 3));
        assert_eq!(Ok(Some(Vec::new())), read_blocks(&write_blocks(&[]), 3));
        assert_eq!(Ok(None), read_status(&[]));
        let status = Status { earliest: 1, tip: 2 };
        assert_eq!(Ok(Some(status)), read_status(&write_status(&status)));
        assert_eq!(Err(WireError::Kind { kind: 9 }), read_status(&[9]));
    }
}
