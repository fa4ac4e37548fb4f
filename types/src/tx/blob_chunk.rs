//! SOCIAL_BLOB_CHUNK: one chunk of a blob (docs/protocol.md section 5.10).

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::{IntegerLimit, TextLimit};

declare! {
    /// Stores one chunk of a blob.
    kind BlobChunk = "SOCIAL_BLOB_CHUNK", section "5.10" {
        required {
            /// The id of the blob.
            blob_id "blobId": String, Text(TextLimit::BlobId);
            /// The index of the chunk, starting at 0.
            chunk_index "chunkIndex": u64, Integer(IntegerLimit::any(""));
            /// The bytes of the chunk: 400,000, or the remainder in the last chunk.
            chunk_data "chunkDataBase64": Vec<u8>, Base64;
        }
        optional {}
    }
}

impl Kind for BlobChunk {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Blob(&self.blob_id))
    }
}
