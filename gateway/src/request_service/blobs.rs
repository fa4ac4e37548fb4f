//! Long prompts, kept on the chain as blobs (docs/agent-methods.md section 5).

use miner::chain::Ledger as _;
use miner::outbox::{Halt, Verdict, patiently};
use types::params::BLOB_CHUNK_BYTES;
use types::tx::{BlobChunk, BlobFinalize, BlobInit};
use types::{Body, Hash};

use super::RequestService;
use super::service::PAUSE_MS;
use crate::record::{Purpose, RequestId};
use crate::store::About;

/// So many ids are tried for one text.
const IDS_MAX: u32 = 3;
/// Hexadecimal digits of an id that nobody else knows before it is sent.
const SECRET_DIGITS: usize = 16;
/// The code of an id that somebody has.
const TAKEN: &str = "BLOB_EXISTS";

impl RequestService {
    /// Keeps a text as a finalised blob, and goes on where an earlier attempt left it; gives the blob's
    /// id. The inner error is the code of a refusal.
    pub(super) async fn keep_blob(
        &self,
        request: RequestId,
        text: &str,
    ) -> Result<Result<String, String>, Halt> {
        let content = Hash::digest(text.as_bytes());
        let place = usize::from(content.as_bytes()[0]) % self.blobs.len();
        let _one_at_a_time = match self.blobs.get(place) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        for attempt in 0..IDS_MAX {
            let init = self.init(text, attempt);
            match self.keep_as(request, text, &init).await? {
                Ok(()) => return Ok(Ok(init.blob_id)),
                Err(code) if code == TAKEN => {
                    tracing::warn!(id = %init.blob_id, "the blob's id is taken");
                }
                Err(code) => return Ok(Err(code)),
            }
        }
        Ok(Err(TAKEN.to_owned()))
    }

    async fn keep_as(
        &self,
        request: RequestId,
        text: &str,
        init: &BlobInit,
    ) -> Result<Result<(), String>, Halt> {
        let blob_id = &init.blob_id;
        let (prices, _) = patiently(PAUSE_MS, &self.stop, &mut || self.prices()).await?;
        loop {
            let ask = &mut || self.node.miners.blob(blob_id);
            let found = patiently(PAUSE_MS, &self.stop, ask).await?;
            let (body, burns_micro) = match found {
                None => (Body::BlobInit(init.clone()), prices.blob_init_micro),
                Some(blob) if blob.owner != self.wallet() => return Ok(Err(TAKEN.to_owned())),
                Some(blob) if blob.content_hash != init.content_hash => {
                    return Ok(Err(TAKEN.to_owned()));
                }
                Some(blob) if blob.is_final => return Ok(Ok(())),
                Some(blob) if blob.received < init.total_chunks => {
                    let chunk_data = chunk(text, blob.received);
                    let (blob_id, chunk_index) = (blob_id.clone(), blob.received);
                    (
                        Body::BlobChunk(BlobChunk { blob_id, chunk_index, chunk_data }),
                        prices.blob_chunk_micro,
                    )
                }
                Some(_) => (Body::BlobFinalize(BlobFinalize { blob_id: blob_id.clone() }), 0),
            };
            let turn = self.outbox.turn().await?;
            let slip = turn.sign(&body).await?;
            let about = About::Request { id: request, purpose: Purpose::Blob { burns_micro } };
            self.store.sign(&slip, about, None).await?;
            match turn.send(&slip).await? {
                Verdict::Included { .. } => (),
                Verdict::Refused(code) if code.starts_with("NONCE_") => (),
                Verdict::Refused(code) => return Ok(Err(code)),
            }
        }
    }

    /// The announcement of a text. Whoever announces an id first has it; so the end of the id follows
    /// from a signature.
    fn init(&self, text: &str, attempt: u32) -> BlobInit {
        let content_hash = Hash::digest(text.as_bytes());
        let message = format!("id of a gateway's blob {attempt} {content_hash}");
        let secret = Hash::digest(self.key.sign(message.as_bytes()).as_bytes()).to_string();
        let digits: String = secret.chars().take(SECRET_DIGITS).collect();
        let total_bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        BlobInit {
            blob_id: format!("{content_hash}-{digits}"),
            content_type: "application/json".to_owned(),
            total_bytes,
            total_chunks: total_bytes.div_ceil(BLOB_CHUNK_BYTES),
            content_hash,
        }
    }
}

fn chunk(text: &str, index: u64) -> Vec<u8> {
    let size = usize::try_from(BLOB_CHUNK_BYTES).unwrap_or(usize::MAX);
    let place = usize::try_from(index).unwrap_or(usize::MAX);
    text.as_bytes().chunks(size).nth(place).unwrap_or_default().to_vec()
}
