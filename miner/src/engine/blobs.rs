//! Keeping long texts on the chain as blobs (docs/protocol.md section 5.10).

use types::params::BLOB_CHUNK_BYTES;
use types::tx::{BlobChunk, BlobFinalize, BlobInit};
use types::{Body, Hash};

use super::Inner;
use super::error::Halt;
use super::settle::Verdict;
use crate::journal::entry::{Entry, Purpose};

/// What is to be kept.
#[derive(Debug)]
pub(super) struct Content {
    /// The blob's id.
    pub(super) id: String,
    pub(super) bytes: Vec<u8>,
}

impl Content {
    pub(super) fn of_text(id: String, text: String) -> Self {
        Self { id, bytes: text.into_bytes() }
    }

    fn init(&self) -> BlobInit {
        let total_bytes = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        BlobInit {
            blob_id: self.id.clone(),
            content_type: "text/plain; charset=utf-8".into(),
            total_bytes,
            total_chunks: total_bytes.div_ceil(BLOB_CHUNK_BYTES),
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
    /// Keeps a text as a finalised blob, and goes on where it was left. The inner error is the code
    /// of a refusal.
    pub(super) async fn keep(
        &self,
        entry: &Entry,
        content: &Content,
    ) -> Result<Result<(), String>, Halt> {
        let init = content.init();
        let chunk_fee_micro = self.outbox.blob_chunk_fee_micro().await?;
        loop {
            let found = self.patiently(|| self.parts.ledger.blob(&content.id)).await?;
            let (body, burns_micro) = match found {
                None => (Body::BlobInit(init.clone()), 0),
                Some(blob) if blob.owner != self.me || blob.content_hash != init.content_hash => {
                    return Ok(Err("BLOB_EXISTS".into()));
                }
                Some(blob) if blob.is_final => return Ok(Ok(())),
                Some(blob) if blob.received < init.total_chunks => {
                    let chunk = BlobChunk {
                        blob_id: content.id.clone(),
                        chunk_index: blob.received,
                        chunk_data: content.chunk(blob.received),
                    };
                    (Body::BlobChunk(chunk), chunk_fee_micro)
                }
                Some(_) => (Body::BlobFinalize(BlobFinalize { blob_id: content.id.clone() }), 0),
            };
            let purpose = Purpose::Blob { burns_micro };
            match self.outbox.post(entry, &body, purpose).await? {
                Verdict::Included => (),
                Verdict::Refused(code) if code.starts_with("NONCE_") => (),
                Verdict::Refused(code) => return Ok(Err(code)),
            }
        }
    }
}
