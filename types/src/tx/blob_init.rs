//! SOCIAL_BLOB_INIT: announce a blob (docs/protocol.md section 5.10).

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::{IntegerLimit, IntegerMax, LABEL, TextLimit};
use super::static_view::StaticView;
use crate::params::BLOB_CHUNK_BYTES;
use crate::{Hash, Rejection};

/// 1 to the chain's parameter `maxBlobBytes`.
const TOTAL_BYTES: IntegerLimit =
    IntegerLimit { min: 1, max: IntegerMax::MaxBlobBytes, unit: "bytes" };

declare! {
    /// Announces a new blob.
    kind BlobInit = "SOCIAL_BLOB_INIT", section "5.10" {
        required {
            /// The id of the new blob: 1 to 128 characters of `[A-Za-z0-9_-]`.
            blob_id "blobId": String, Text(TextLimit::BlobId);
            /// The media type that the owner states, at most 256 bytes.
            content_type "contentType": String, Text(LABEL);
            /// The size of the blob in bytes: 1 to the chain's `maxBlobBytes`.
            total_bytes "totalBytes": u64, Integer(TOTAL_BYTES);
            /// The number of chunks: `totalBytes` divided by 400,000, rounded up.
            total_chunks "totalChunks": u64, Integer(IntegerLimit::any("chunks")), filled Computed;
            /// The SHA-256 of the blob's bytes.
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
