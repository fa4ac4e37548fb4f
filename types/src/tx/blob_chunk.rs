//! SOCIAL_BLOB_CHUNK: one piece of a blob (docs/protocol.md section 5.10).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::fields::Fields;
use super::{Kind, StaticView, Subject, limits};
use crate::Rejection;
use crate::json::ObjectWriter;

/// The fields of SOCIAL_BLOB_CHUNK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobChunk {
    /// The blob.
    pub blob_id: String,
    /// Which piece, from 0.
    pub chunk_index: u64,
    /// The bytes that the member `chunkDataBase64` spells.
    pub chunk_data: Vec<u8>,
}

impl Kind for BlobChunk {
    const TYPE: &'static str = "SOCIAL_BLOB_CHUNK";

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        let text = fields.text("chunkDataBase64")?;
        let chunk_data = STANDARD.decode(text).map_err(|e| {
            let got = format_args!("{} characters with a fault: {e}", text.len());
            Rejection::malformed("chunkDataBase64", got, "standard base64 with padding")
        })?;
        Ok(Self {
            blob_id: fields.string("blobId")?,
            chunk_index: fields.integer("chunkIndex")?,
            chunk_data,
        })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.string("blobId", &self.blob_id);
        out.integer("chunkIndex", self.chunk_index);
        out.string("chunkDataBase64", &STANDARD.encode(&self.chunk_data));
    }

    fn check_static(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        limits::blob_id("blobId", &self.blob_id)
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Blob(&self.blob_id))
    }
}
