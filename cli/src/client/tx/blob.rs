//! `ombra tx blob`: a file becomes SOCIAL_BLOB_INIT, chunks and FINALIZE.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use types::params::BLOB_CHUNK_BYTES;
use types::tx::{BlobChunk, BlobFinalize, BlobInit};
use types::{Body, Hash};
use wallet::{Envelope, Signed};

use super::SendArgs;
use super::deliver::Delivery;
use crate::client::{CliError, Out, Outcome, input};

/// More than any chain allows by default (16 MiB); the chain's own limit gives the exact answer.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
const MEDIA_TYPE: &str = "application/octet-stream";

/// A file to store.
#[derive(Args, Debug)]
pub struct BlobArgs {
    /// The file ('-': standard input)
    file: PathBuf,
    /// Blob id, letters, digits, '-' and '_' [default: SHA-256 of the content]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Media type
    #[arg(long, value_name = "TYPE", default_value = MEDIA_TYPE)]
    content_type: String,
    #[command(flatten)]
    send: SendArgs,
}

/// Carries out `ombra tx blob`.
pub(super) async fn run(args: BlobArgs, out: Out<'_>) -> Outcome {
    let bytes = input::read_bytes(&args.file, FILE_BYTES_MAX)?;
    let content_hash = Hash::digest(&bytes);
    let blob_id = args.id.unwrap_or_else(|| content_hash.to_string());
    let delivery = Delivery::open(args.send)?;
    let envelope = delivery.envelope().await?;
    let bodies = bodies(&bytes, &blob_id, &args.content_type, content_hash)?;
    if !delivery.sends() {
        return show(&delivery, &envelope, &bodies, out).await;
    }
    let last = send_all(&delivery, &envelope, &bodies, out).await?;
    if delivery.prints_json() {
        let object = json!({"blobId": blob_id, "hash": last, "contentHash": content_hash,
            "totalBytes": bytes.len()});
        writeln!(out, "{object}")?;
    } else {
        writeln!(out, "blob {blob_id}, {} bytes, can be referenced now", bytes.len())?;
    }
    Ok(())
}

/// The transactions of one blob in their order: its announcement, its chunks, its end.
pub(in crate::client) fn bodies(
    bytes: &[u8],
    blob_id: &str,
    content_type: &str,
    content_hash: Hash,
) -> Result<Vec<Body>, CliError> {
    if bytes.is_empty() {
        return Err(CliError::Usage("an empty file cannot be a blob".into()));
    }
    let too_large = |_overflow| CliError::Usage("the file is too large".into());
    let total_bytes = u64::try_from(bytes.len()).map_err(too_large)?;
    let chunk_bytes = usize::try_from(BLOB_CHUNK_BYTES).map_err(too_large)?;
    let blob_id = || blob_id.to_owned();
    let mut bodies = vec![Body::BlobInit(BlobInit {
        blob_id: blob_id(),
        content_type: content_type.to_owned(),
        total_bytes,
        total_chunks: total_bytes.div_ceil(BLOB_CHUNK_BYTES),
        content_hash,
    })];
    let chunks = (0_u64..).zip(bytes.chunks(chunk_bytes));
    bodies.extend(chunks.map(|(chunk_index, data)| {
        let chunk_data = data.to_vec();
        Body::BlobChunk(BlobChunk { blob_id: blob_id(), chunk_index, chunk_data })
    }));
    bodies.push(Body::BlobFinalize(BlobFinalize { blob_id: blob_id() }));
    Ok(bodies)
}

/// Sends each transaction and waits for it, so that no more than one chunk waits in the pool.
async fn send_all(
    delivery: &Delivery,
    envelope: &Envelope,
    bodies: &[Body],
    out: Out<'_>,
) -> Result<Hash, CliError> {
    let mut last = Hash::ZERO;
    let mut envelope = envelope.clone();
    for (place, body) in (1..).zip(bodies) {
        let signed = Signed::new(delivery.sender.keypair(), &envelope, body);
        let included = delivery.include(&signed).await?;
        envelope.nonce = envelope.nonce.saturating_add(1);
        last = included.hash;
        if !delivery.prints_json() {
            let block = super::deliver::block_of(&included);
            writeln!(out, "{place}/{} {} {last} in block {block}", bodies.len(), body.type_name())?;
        }
    }
    Ok(last)
}

/// `--print` shows all transactions; `--dry-run` can ask about the first only, the others follow from it.
async fn show(delivery: &Delivery, envelope: &Envelope, bodies: &[Body], out: Out<'_>) -> Outcome {
    let mut envelope = envelope.clone();
    for (place, body) in bodies.iter().enumerate() {
        if place > 0 && delivery.simulates() {
            if !delivery.prints_json() {
                let rest = bodies.len().saturating_sub(1);
                writeln!(out, "{rest} more transactions depend on this one: not simulated")?;
            }
            return Ok(());
        }
        delivery.deliver_with(&envelope, body, out).await?;
        envelope.nonce = envelope.nonce.saturating_add(1);
    }
    Ok(())
}
