//! Databases of programs that did not know yet which chunks of a blob are there: it is found out once.

use state::error::StorageError;
use state::pieces::Pieces;
use state::table::{Key, Table, decode_value, encode_value};
use state::tables::{BlobChunks, BlobPieces, Blobs};

use super::rocks::{Batch, Durability, Rocks};
use super::tables::META;

/// The cell that says that the table is complete. Its value says nothing more.
const COMPLETE_CELL: &[u8] = b"blob_pieces";

/// Makes the rows of [`BlobPieces`] that are missing, unless that was done once.
pub(super) fn fill_once(rocks: &Rocks) -> Result<(), StorageError> {
    let is_complete = rocks.live().contains(META, COMPLETE_CELL)?;
    if is_complete { Ok(()) } else { fill(rocks) }
}

/// Makes the rows of [`BlobPieces`] for all blobs that have some of their chunks. The chunks of such
/// blobs are read; there are few of them, because they are dropped after a while.
pub(super) fn fill(rocks: &Rocks) -> Result<(), StorageError> {
    const GAP: StorageError = StorageError::Inconsistent { what: "a chunk of a blob is missing" };
    let source = rocks.live();
    let mut partial = Vec::new();
    let mut fault = None;
    source.walk(Blobs::ID, &[], None, |_, value| {
        match decode_value::<Blobs>(value) {
            Ok(blob) if blob.received > 0 && blob.received < blob.total_chunks => {
                partial.push((blob.blob_id, blob.received, blob.total_chunks));
            }
            Ok(_) => {}
            Err(error) => fault = Some(error),
        }
        fault.is_none()
    })?;
    fault.map_or(Ok(()), Err)?;
    let mut batch = Batch::default();
    let table = rocks.table(BlobPieces::ID)?;
    for (id, received, total) in partial {
        let mut pieces = Pieces::default();
        let mut found = 0_u64;
        for index in 0..u32::try_from(total).map_err(|_too_many| GAP)? {
            if found == received {
                break;
            }
            if source.contains(BlobChunks::ID, &(index, id.clone()).to_bytes())? {
                pieces.insert(index);
                found = found.saturating_add(1);
            }
        }
        if found != received {
            return Err(GAP);
        }
        batch.put(&table, &id.to_bytes(), &encode_value::<BlobPieces>(&pieces));
    }
    batch.put(&rocks.table(META)?, COMPLETE_CELL, &[]);
    rocks.write(batch, Durability::Synced)
}

#[cfg(test)]
mod tests {
    use types::{Address, Blob, Hash};

    use super::*;
    use crate::{Options, Store};
    use state::pieces::of_blob;

    fn blob(id: &str, received: u64, total_chunks: u64) -> Blob {
        Blob {
            blob_id: id.to_owned(),
            owner: Address::default(),
            content_type: "text/plain".to_owned(),
            total_bytes: total_chunks,
            total_chunks,
            received,
            content_hash: Hash::ZERO,
            received_hash: None,
            is_final: false,
            created_at: 0,
        }
    }

    #[test]
    fn a_database_of_an_older_program_learns_once_which_chunks_are_there() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = Store::open(dir.path(), Options::default()).expect("opens");
        let rocks = &store.0.rocks;
        let mut batch = Batch::default();
        let table = |id| rocks.table(id).expect("a table");
        let (records, chunks, meta) = (table(Blobs::ID), table(BlobChunks::ID), table(META));
        let all = [blob("none", 0, 3), blob("some", 2, 9), blob("all", 3, 3)];
        for blob in &all {
            batch.put(&records, &blob.blob_id.to_bytes(), &encode_value::<Blobs>(blob));
        }
        for index in [1_u32, 8] {
            let key = (index, "some".to_owned()).to_bytes();
            batch.put(&chunks, &key, &encode_value::<BlobChunks>(&vec![1; 20_000]));
        }
        batch.delete(&meta, COMPLETE_CELL);
        rocks.write(batch, Durability::Synced).expect("written");
        drop(store);

        let store = Store::open(dir.path(), Options::default()).expect("opens");
        let of = |blob: &Blob| of_blob(&store.snapshot(), blob).expect("found");
        let found: Vec<Vec<u32>> = all.iter().map(|blob| of(blob).iter().collect()).collect();
        assert_eq!(found, [vec![], vec![1, 8], vec![0, 1, 2]]);
        assert!(store.0.rocks.live().contains(META, COMPLETE_CELL).expect("read"));
    }
}
