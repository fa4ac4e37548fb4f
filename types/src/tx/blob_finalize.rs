//! SOCIAL_BLOB_FINALIZE: close a blob (docs/protocol.md section 5.10).

use super::fields::Fields;
use super::{Kind, StaticView, Subject, limits};
use crate::Rejection;
use crate::json::ObjectWriter;

/// The fields of SOCIAL_BLOB_FINALIZE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobFinalize {
    /// The blob.
    pub blob_id: String,
}

impl Kind for BlobFinalize {
    const TYPE: &'static str = "SOCIAL_BLOB_FINALIZE";

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        Ok(Self { blob_id: fields.string("blobId")? })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.string("blobId", &self.blob_id);
    }

    fn check_static(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        limits::blob_id("blobId", &self.blob_id)
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Blob(&self.blob_id))
    }
}
