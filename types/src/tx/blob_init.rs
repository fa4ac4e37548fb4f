//! SOCIAL_BLOB_INIT: announce a blob (docs/protocol.md section 5.10).

use super::fields::Fields;
use super::{Kind, StaticView, Subject, limits};
use crate::json::ObjectWriter;
use crate::params::BLOB_CHUNK_BYTES;
use crate::{Hash, Rejection};

/// The fields of SOCIAL_BLOB_INIT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobInit {
    /// A new id, 1 to 128 characters of `[A-Za-z0-9_-]`.
    pub blob_id: String,
    /// A media type, at most 256 bytes, as the owner says.
    pub content_type: String,
    /// The size, at least 1.
    pub total_bytes: u64,
    /// `ceil(totalBytes / 400,000)`.
    pub total_chunks: u64,
    /// SHA-256 of all bytes.
    pub content_hash: Hash,
}

impl Kind for BlobInit {
    const TYPE: &'static str = "SOCIAL_BLOB_INIT";

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        Ok(Self {
            blob_id: fields.string("blobId")?,
            content_type: fields.string("contentType")?,
            total_bytes: fields.integer("totalBytes")?,
            total_chunks: fields.integer("totalChunks")?,
            content_hash: fields.hash("contentHash")?,
        })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.string("blobId", &self.blob_id);
        out.string("contentType", &self.content_type);
        out.integer("totalBytes", self.total_bytes);
        out.integer("totalChunks", self.total_chunks);
        out.display("contentHash", &self.content_hash);
    }

    fn check_static(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        limits::blob_id("blobId", &self.blob_id)?;
        limits::label("contentType", &self.content_type)?;
        let max = view.params.max_blob_bytes;
        if !(1..=max).contains(&self.total_bytes) {
            return Err(Rejection::invalid(
                "totalBytes",
                self.total_bytes,
                format_args!("1 to {max}"),
            ));
        }
        let chunks = self.total_bytes.div_ceil(BLOB_CHUNK_BYTES);
        if self.total_chunks != chunks {
            return Err(Rejection::invalid("totalChunks", self.total_chunks, chunks));
        }
        Ok(())
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Blob(&self.blob_id))
    }
}
