//! SOCIAL_BLOB_FINALIZE: close a blob (docs/protocol.md section 5.10).

use super::declare::declare;
use super::spec::TextLimit;
use super::{Kind, Subject};

declare! {
    /// Closes a blob, which may then be referenced.
    kind BlobFinalize = "SOCIAL_BLOB_FINALIZE", section "5.10" {
        required {
            /// The blob.
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
