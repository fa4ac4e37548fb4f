//! Keeping long texts on the chain as blobs (docs/protocol.md section 5.10).

use agent::text::cut;
use types::bid::MAX_BASE_FEE;
use types::params::BLOB_CHUNK_BYTES;
use types::tx::{BlobChunk, BlobFinalize, BlobInit};
use types::{Body, Hash};

use super::Inner;
use super::error::Halt;
use super::tx_outcome::Verdict;
use crate::chain::BlobFees;
use crate::journal::entry::{Entry, Purpose};

/// So many ids are tried for one text.
const IDS_MAX: u32 = 3;
/// Hexadecimal digits of an id that nobody else knows before it is sent.
const SECRET_DIGITS: usize = 16;
/// The code of an id that somebody has.
const TAKEN: &str = "BLOB_EXISTS";

/// More bytes than a transaction about a blob has beside the text.
const AROUND_BYTES: u64 = 1_024;
/// The highest base fee at which something is sent that a run can do without: half of what transactions
/// offer. Full blocks raise it by a 64th each, so it takes 45 of them until a block takes those no more.
pub(super) const BASE_FEE_MAX: u64 = MAX_BASE_FEE.get() / 2;

/// What is to be kept.
#[derive(Debug)]
pub(super) struct Content {
    /// What it is of its run, as the blob's id has it.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Content {
    pub(super) fn of_text(name: String, text: String) -> Self {
        Self { name, bytes: text.into_bytes() }
    }

    fn total_bytes(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)
    }

    fn total_chunks(&self) -> u64 {
        self.total_bytes().div_ceil(BLOB_CHUNK_BYTES)
    }

    /// About what it burns to keep this, micro-OMBRA, rather more than less.
    pub(super) fn cost_micro(&self, fees: &BlobFees) -> u64 {
        let BlobFees { init_micro, chunk_micro, base_fee } = *fees;
        let chunks = self.total_chunks();
        let around = chunks.saturating_add(2).saturating_mul(AROUND_BYTES);
        // The text is written in Base64.
        let text = self.total_bytes().div_ceil(3).saturating_mul(4);
        let places = around.saturating_add(text).saturating_mul(base_fee.unwrap_or_default());
        let content = chunks.saturating_mul(chunk_micro);
        init_micro.saturating_add(content).saturating_add(places.div_ceil(1_024))
    }

    fn init(&self, blob_id: String) -> BlobInit {
        BlobInit {
            blob_id,
            content_type: "text/plain; charset=utf-8".into(),
            total_bytes: self.total_bytes(),
            total_chunks: self.total_chunks(),
            content_hash: Hash::digest(&self.bytes),
        }
    }

    fn chunk(&self, index: u64) -> Vec<u8> {
        let size = usize::try_from(BLOB_CHUNK_BYTES).unwrap_or(usize::MAX);
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        self.bytes.chunks(size).nth(place).unwrap_or_default().to_vec()
    }
}

impl Inner {
    /// Keeps a text as a finalised blob, and goes on where it was left; gives the blob's id. The inner
    /// error is the code of a rejection.
    pub(super) async fn keep(
        &self,
        entry: &Entry,
        content: &Content,
    ) -> Result<Result<String, String>, Halt> {
        for attempt in 0..IDS_MAX {
            let init = content.init(self.blob_id(&entry.run.id, content, attempt));
            match self.keep_as(entry, content, &init).await? {
                Ok(()) => return Ok(Ok(init.blob_id)),
                Err(code) if code == TAKEN => {
                    tracing::warn!(run = %entry.run.id, id = %init.blob_id, "the blob's id is taken");
                }
                Err(code) => return Ok(Err(code)),
            }
        }
        Ok(Err(TAKEN.into()))
    }

    /// The same with this announcement.
    async fn keep_as(
        &self,
        entry: &Entry,
        content: &Content,
        init: &BlobInit,
    ) -> Result<Result<(), String>, Halt> {
        let blob_id = &init.blob_id;
        let fees = async || self.patiently(|| self.parts.ledger.blob_fees()).await;
        loop {
            let found = self.patiently(|| self.parts.ledger.blob(blob_id)).await?;
            let (body, burns_micro) = match found {
                None => (Body::BlobInit(init.clone()), fees().await?.init_micro),
                Some(blob) if blob.owner != self.me || blob.content_hash != init.content_hash => {
                    return Ok(Err(TAKEN.into()));
                }
                Some(blob) if blob.is_final => return Ok(Ok(())),
                Some(blob) if blob.received < init.total_chunks => {
                    let chunk = BlobChunk {
                        blob_id: blob_id.clone(),
                        chunk_index: blob.received,
                        chunk_data: content.chunk(blob.received),
                    };
                    (Body::BlobChunk(chunk), fees().await?.chunk_micro)
                }
                Some(_) => (Body::BlobFinalize(BlobFinalize { blob_id: blob_id.clone() }), 0),
            };
            let purpose = Purpose::Blob { burns_micro };
            match self.outbox.post(entry, &body, purpose).await? {
                Verdict::Included { .. } => (),
                Verdict::Refused(code) if code.starts_with("NONCE_") => (),
                Verdict::Refused(code) => return Ok(Err(code)),
            }
        }
    }

    /// The id of a blob, the same each time. Whoever announces an id first has it, and texts of a run
    /// or their hashes may be on the chain before; so the end of the id follows from a signature.
    fn blob_id(&self, run: &Hash, content: &Content, attempt: u32) -> String {
        let Content { name, bytes } = content;
        let message = format!("id of blob {attempt} {run}-{name} {}", Hash::digest(bytes));
        let secret = Hash::digest(self.parts.key.sign(message.as_bytes()).as_bytes()).to_string();
        format!("{run}-{name}-{}", cut(&secret, SECRET_DIGITS))
    }
}
