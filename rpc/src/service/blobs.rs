//! Blobs.

use types::Blob;

use crate::error::RpcError;
use crate::ports::Ports;
use crate::wire::BlobView;

/// A blob's record.
pub(crate) fn blob(ports: &Ports, blob_id: &str) -> Result<BlobView, RpcError> {
    Ok(BlobView::from(record(ports, blob_id)?))
}

/// The record of a blob whose bytes are all there.
pub(crate) fn final_record(ports: &Ports, blob_id: &str) -> Result<Blob, RpcError> {
    let record = record(ports, blob_id)?;
    if !record.is_final {
        return Err(RpcError::not_found("finalised blob", blob_id));
    }
    Ok(record)
}

/// The bytes of a finalised blob.
pub(crate) fn bytes(ports: &Ports, blob_id: &str) -> Result<Vec<u8>, RpcError> {
    let bytes = ports.directory.blob_bytes(blob_id)?;
    bytes.ok_or_else(|| RpcError::not_found("blob", blob_id))
}

fn record(ports: &Ports, blob_id: &str) -> Result<Blob, RpcError> {
    let record = ports.directory.blob(blob_id)?;
    record.ok_or_else(|| RpcError::not_found("blob", blob_id))
}
