//! SOCIAL_BLOB_INIT: announce a blob (docs/protocol.md section 5.10).

use super::declare::declare;
use super::spec::{IntegerLimit, IntegerMax, LABEL, TextLimit};
use super::{Kind, StaticView, Subject};
use crate::params::BLOB_CHUNK_BYTES;
use crate::{Hash, Rejection};

/// What a chain takes.
const TOTAL_BYTES: IntegerLimit =
    IntegerLimit { min: 1, max: IntegerMax::MaxBlobBytes, unit: "bytes" };

declare! {
    /// Announces a blob.
    kind BlobInit = "SOCIAL_BLOB_INIT", section "5.10" {
        required {
            /// A new id, 1 to 128 characters of `[A-Za-z0-9_-]`.
            blob_id "blobId": String, Text(TextLimit::BlobId);
            /// A media type, at most 256 bytes, as the owner says.
            content_type "contentType": String, Text(LABEL);
            /// The size, at least 1.
            total_bytes "totalBytes": u64, Integer(TOTAL_BYTES);
            /// The size divided by 400,000, rounded up.
            total_chunks "totalChunks": u64, Integer(IntegerLimit::any("chunks")), filled Computed;
            /// SHA-256 of all bytes.
            content_hash "contentHash": Hash, Hash;
        }
        optional {}
    }
}

impl Kind for BlobInit {
    fn check_together(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        let chunks = self.total_bytes.div_ceil(BLOB_CHUNK_BYTES);
        if self.total_chunks == chunks {
            return Ok(());
        }
        Err(Rejection::invalid("totalChunks", self.total_chunks, chunks))
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Blob(&self.blob_id))
    }
}
