//! SOCIAL_BLOB_FINALIZE: finalize a blob (docs/protocol.md section 5.10).

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::TextLimit;

declare! {
    /// Finalizes a blob, so that other transactions can reference it.
    kind BlobFinalize = "SOCIAL_BLOB_FINALIZE", section "5.10" {
        required {
            /// The id of the blob.
            blob_id "blobId": String, Text(TextLimit::BlobId);
        }
        optional {}
    }
}

impl Kind for BlobFinalize {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Blob(&self.blob_id))
    }
}
