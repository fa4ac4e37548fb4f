//! SOCIAL_BLOB_CHUNK: one piece of a blob (docs/protocol.md section 5.10).

use super::declare::declare;
use super::spec::{IntegerLimit, TextLimit};
use super::{Kind, Subject};

declare! {
    /// One piece of a blob.
    kind BlobChunk = "SOCIAL_BLOB_CHUNK", section "5.10" {
        required {
            /// The blob.
            blob_id "blobId": String, Text(TextLimit::BlobId);
            /// Which piece, from 0.
            chunk_index "chunkIndex": u64, Integer(IntegerLimit::any(""));
            /// The piece: 400,000 bytes, fewer only in the last one.
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
