//! Block bodies on their way to the other validators, cut into parts.
//!
//! A body is announced by a [`Head`], sealed by its proposer, and followed by chunks of
//! [`CHUNK_BYTES`]. The head says how many bytes will come and what they hash to, so a receiver
//! knows before it keeps a byte whether the body is wanted, from whom, and how large it is; and
//! nobody can pass other bytes off as the proposer's.
//!
//! A proposer sends first only a compact block of its block, which names the transactions that others
//! have in their pools (as compact blocks do, Bitcoin's BIP 152). The head is the same, with the
//! size and digest of the whole body; who cannot make the body of the compact block says so by
//! [`Part::Want`], and then its proposer sends it whole.

use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use malachitebft_app::types::streaming::{StreamId, StreamMessage};
use malachitebft_engine::util::streaming::StreamContent;
use types::{Address, Hash, Signature};

use types::sign_bytes::BodyFields;

pub(crate) mod assembler;

/// Bytes of a body in one part.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// One message of a stream.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) enum Part {
    /// What is coming; always number 0 of its stream.
    Head(Head),
    /// Bytes; numbers 1 and up.
    Chunk(Vec<u8>),
    /// Asks the proposer of a compact block for the whole body of this digest; number 0 of a stream of
    /// its own.
    Want([u8; 32]),
}

/// In which form a body is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// All its bytes.
    Whole,
    /// A compact block of so many bytes.
    CompactBlock(u32),
}

/// The announcement of a body.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Head {
    height: u64,
    round: u32,
    proposer: [u8; 20],
    value: [u8; 32],
    size: u32,
    digest: [u8; 32],
    /// Bytes of the compact block that follows; 0 if the body follows. Not sealed: what is made of an
    /// compact block has to have the digest.
    compact_block: u32,
    seal: [u8; 64],
}

impl Head {
    pub(crate) fn new(fields: &BodyFields, form: Form, seal: &Signature) -> Self {
        let BodyFields { height, round, proposer, value, size, digest } = *fields;
        Self {
            height,
            round,
            proposer: *proposer.as_bytes(),
            value: *value.as_bytes(),
            size,
            digest: *digest.as_bytes(),
            compact_block: match form {
                Form::Whole => 0,
                Form::CompactBlock(bytes) => bytes,
            },
            seal: *seal.as_bytes(),
        }
    }

    /// What the seal is over.
    pub(crate) fn fields(&self) -> BodyFields {
        BodyFields {
            height: self.height,
            round: self.round,
            proposer: Address::new(self.proposer),
            value: Hash::new(self.value),
            size: self.size,
            digest: Hash::new(self.digest),
        }
    }

    pub(crate) const fn seal(&self) -> Signature {
        Signature::new(self.seal)
    }

    /// What follows.
    pub(crate) const fn form(&self) -> Form {
        match self.compact_block {
            0 => Form::Whole,
            bytes => Form::CompactBlock(bytes),
        }
    }

    /// How many bytes follow.
    fn length(&self) -> usize {
        let bytes = match self.form() {
            Form::Whole => self.size,
            Form::CompactBlock(bytes) => bytes,
        };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

impl Part {
    /// Whether it begins a stream.
    pub(crate) const fn is_first(&self) -> bool {
        matches!(self, Self::Head(_) | Self::Want(_))
    }
}

/// What is sealed of a body; nothing if it is larger than any block may be.
pub(crate) fn describe(
    height: u64,
    round: u32,
    proposer: Address,
    value: Hash,
    bytes: &[u8],
) -> Option<BodyFields> {
    let size = u32::try_from(bytes.len()).ok()?;
    Some(BodyFields { height, round, proposer, value, size, digest: Hash::digest(bytes) })
}

/// Cuts a body, in the form that its head says, into the messages of one stream.
pub(crate) fn cut(
    stream: &StreamId,
    head: Head,
    bytes: &Bytes,
) -> impl Iterator<Item = StreamMessage<Part>> {
    let chunks = bytes.chunks(CHUNK_BYTES).map(|chunk| Part::Chunk(chunk.to_vec()));
    std::iter::once(Part::Head(head)).chain(chunks).zip(0..).map(|(part, sequence)| {
        StreamMessage::new(stream.clone(), sequence, StreamContent::Data(part))
    })
}

/// Asks for a whole body.
pub(crate) fn want(digest: &Hash) -> StreamMessage<Part> {
    let stream = stream_id(digest, b'?', 0);
    StreamMessage::new(stream, 0, StreamContent::Data(Part::Want(*digest.as_bytes())))
}

/// The same body of the same round and form is the same stream, however often it is sent: a
/// receiver that missed a part of it takes that from the next time.
pub(crate) fn body_stream(digest: &Hash, form: Form, round: u32) -> StreamId {
    let form = match form {
        Form::Whole => b'w',
        Form::CompactBlock(_) => b'o',
    };
    stream_id(digest, form, round)
}

fn stream_id(digest: &Hash, kind: u8, round: u32) -> StreamId {
    let prefix = digest.as_bytes().iter().take(11);
    StreamId::new(prefix.chain([&kind]).chain(&round.to_be_bytes()).copied().collect())
}
