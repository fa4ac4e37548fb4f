//! The snapshots that a node offers, in files.
//!
//! ```text
//! FOLDER/HEIGHT.part    being written; removed at the next start
//! FOLDER/HEIGHT/
//!   rows, extras        the chunks, one after the other
//!   manifest            Manifest: what is in them
//!   offer               Offer; appears when the block after HEIGHT is committed
//! ```
//!
//! The database is pinned only while the files are written, so a snapshot holds nothing of it
//! afterwards and survives a restart.
//!
//! A crash of the machine leaves a whole snapshot or none. Each file is on the disk before its name
//! is, the names in `HEIGHT.part` are before that folder is called `HEIGHT`, and the offer, last of
//! all, is before anybody is told of it. What a disk that breaks such promises leaves, a file that is
//! missing or of another length, is removed at the next start.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use types::{Hash, codec};

use super::error::{MakeError, file_error};
use super::format::{CHUNK_BYTES_MAX, FORMAT, OFFER_BYTES_MAX};
use super::link;
use super::make::{self, EXTRAS, ROWS, SIZES, Sizes, Throttle};
use super::manifest::{Manifest, Offer};
use crate::database::Store;
use crate::folder::sync_folder;

const MANIFEST: &str = "manifest";
const OFFER: &str = "offer";
const PART: &str = "part";

/// The most snapshots that are kept, and told of.
pub const OFFERS_MAX: usize = 4;

/// What a peer is told of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OfferHead {
    /// The state is that after this block.
    pub height: u64,
    /// SHA-256 of [`Offer::encode`].
    pub hash: Hash,
    /// The bytes of that.
    pub bytes: u64,
}

/// The snapshots of a folder.
#[derive(Debug)]
pub struct SnapshotStore {
    folder: PathBuf,
    keep: usize,
    sizes: Sizes,
    offers: RwLock<Vec<Arc<StoredSnapshot>>>,
    /// Held by the one that writes.
    writer: Mutex<()>,
}

/// A snapshot that can be served.
#[derive(Debug)]
struct StoredSnapshot {
    head: OfferHead,
    files: [File; 3],
    places: BTreeMap<Hash, ChunkPlace>,
}

#[derive(Clone, Copy, Debug)]
struct ChunkPlace {
    file: usize,
    from: u64,
    bytes: u64,
}

impl SnapshotStore {
    /// The snapshots in `folder`, of which the newest `keep` are kept (1 to [`OFFERS_MAX`]). One that
    /// is not of the chain in `store`, of another [`FORMAT`], or not whole, is removed.
    ///
    /// # Errors
    /// [`MakeError`] if the folder cannot be read or written.
    pub fn open(folder: &Path, keep: usize, store: &Store) -> Result<Self, MakeError> {
        fs::create_dir_all(folder).map_err(file_error(folder))?;
        for entry in fs::read_dir(folder).map_err(file_error(folder))? {
            let path = entry.map_err(file_error(folder))?.path();
            let height = height_of(&path);
            let is_whole = height.is_some_and(|height| is_of(&path, height, store));
            if !is_whole {
                fs::remove_dir_all(&path).map_err(file_error(&path))?;
            }
        }
        let keep = keep.clamp(1, OFFERS_MAX);
        let snapshot_store = Self {
            folder: folder.to_path_buf(),
            keep,
            sizes: SIZES,
            offers: RwLock::default(),
            writer: Mutex::default(),
        };
        // What is wrong with a single one hides no other, and whoever settles next is told.
        let (_newest, _fault) = snapshot_store.settle_all(store)?;
        Ok(snapshot_store)
    }

    /// The same with other sizes than all nodes have.
    #[cfg(test)]
    pub(super) fn with(self, sizes: Sizes) -> Self {
        Self { sizes, ..self }
    }

    /// Writes the state of this moment. `pinned` is called with its height once the database holds it
    /// fast, which is at once; then the caller may go on changing it. Answers the height. It is
    /// offered after the first [`SnapshotStore::settle`] that finds the next block.
    ///
    /// # Errors
    /// [`MakeError::NoLinks`] if it could not be offered, [`MakeError`] else; nothing is left of it then.
    pub fn make(
        &self,
        store: &Store,
        pinned: impl FnOnce(u64),
        throttle: Throttle<'_>,
    ) -> Result<u64, MakeError> {
        let _writing = self.writer.lock();
        let snapshot = store.snapshot();
        let height = snapshot.tip()?.height;
        pinned(height);
        let whole = self.folder.join(height.to_string());
        if whole.exists() {
            return Ok(height);
        }
        // The links that its offer will have. What this block changes is not among them.
        link::links_to(&snapshot, height.saturating_add(1))?.ok_or(MakeError::NoLinks)?;
        let part = whole.with_extension(PART);
        fs::create_dir_all(&part).map_err(file_error(&part))?;
        let written = make::write(&snapshot, &part, self.sizes, throttle).and_then(|manifest| {
            // With it, the names of the rows and the extras beside it.
            write_synced(&part.join(MANIFEST), &codec::encode(&manifest))?;
            fs::rename(&part, &whole).map_err(file_error(&whole))?;
            sync_folder(Some(&self.folder)).map_err(file_error(&self.folder))
        });
        if written.is_err() {
            // The first error is the one to tell.
            drop((fs::remove_dir_all(&part), fs::remove_dir_all(&whole)));
        }
        written.map(|()| height)
    }

    /// Offers what can be offered since the chain went on, and removes what is older than the newest
    /// few and what can never be offered. Answers the height of the newest offer.
    ///
    /// # Errors
    /// [`MakeError`] of the first snapshot that cannot be offered, read or removed. What could be done with
    /// the others is done.
    pub fn settle(&self, store: &Store) -> Result<Option<u64>, MakeError> {
        let (newest, fault) = self.settle_all(store)?;
        fault.map_or(Ok(newest), Err)
    }

    /// [`SnapshotStore::settle`], with the fault of a single snapshot beside the answer.
    fn settle_all(&self, store: &Store) -> Result<(Option<u64>, Option<MakeError>), MakeError> {
        let mut heights: Vec<u64> = fs::read_dir(&self.folder)
            .map_err(file_error(&self.folder))?
            .filter_map(|entry| height_of(&entry.ok()?.path()))
            .collect();
        heights.sort_unstable_by_key(|height| Reverse(*height));
        let mut offers = self.offers.read().clone();
        // The newest of those that may be offered later, or can be read again.
        let (mut waiting, mut fault) = (None, None);
        for height in &heights {
            if offers.iter().any(|offer| offer.head.height == *height) {
                continue;
            }
            match load((&self.folder, *height), store) {
                Ok(Some(offer)) => offers.push(Arc::new(offer)),
                Ok(None) => waiting = waiting.or(Some(*height)),
                Err(error) => {
                    if !error.is_final() {
                        waiting = waiting.or(Some(*height));
                    }
                    fault = fault.or(Some(error));
                }
            }
        }
        offers.sort_by_key(|offer| Reverse(offer.head.height));
        offers.truncate(self.keep);
        let newest = offers.first().map(|offer| offer.head.height);
        let mut kept: Vec<u64> = offers.iter().map(|offer| offer.head.height).collect();
        kept.extend(waiting);
        *self.offers.write() = offers;
        for height in heights.iter().filter(|height| !kept.contains(height)) {
            let folder = self.folder.join(height.to_string());
            let removed = fs::remove_dir_all(&folder).map_err(file_error(&folder));
            fault = fault.or_else(|| removed.err());
        }
        Ok((newest, fault))
    }

    /// The newest snapshot that is written and not offered yet: the block after it is missing, or it cannot
    /// be read.
    #[must_use]
    pub fn waiting(&self) -> Option<u64> {
        let offered: Vec<u64> = self.offers().iter().map(|offer| offer.height).collect();
        let folders = fs::read_dir(&self.folder).ok()?;
        let heights = folders.filter_map(|entry| height_of(&entry.ok()?.path()));
        heights.filter(|height| !offered.contains(height)).max()
    }

    /// What is offered, the newest first.
    #[must_use]
    pub fn offers(&self) -> Vec<OfferHead> {
        self.offers.read().iter().map(|offer| offer.head).collect()
    }

    /// At most `bytes_max` bytes of an offer, a chunk or an extra, from `offset` on; none if there is
    /// no such thing, or nothing of it at that place.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn piece(&self, hash: &Hash, offset: u64, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
        let offers = self.offers.read().clone();
        let found = offers.iter().find_map(|offer| Some((offer, *offer.places.get(hash)?)));
        let Some((offer, ChunkPlace { file, from, bytes })) = found else { return Ok(None) };
        let left = bytes.saturating_sub(offset);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(bytes_max);
        let Some(file) = offer.files.get(file).filter(|_| wanted > 0) else { return Ok(None) };
        let mut piece = vec![0; wanted];
        file.read_exact_at(&mut piece, from.saturating_add(offset))?;
        Ok(Some(piece))
    }
}

/// The height that a folder is named after.
fn height_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.parse().ok()
}

/// Whether a folder has a manifest of its height and the files that this tells of, and the chain has
/// that height.
fn is_of(path: &Path, height: u64, store: &Store) -> bool {
    let manifest = fs::read(path.join(MANIFEST)).ok();
    let manifest = manifest.and_then(|bytes| codec::decode::<Manifest>(&bytes).ok());
    let Some(manifest) = manifest.filter(|manifest| has_files(path, manifest)) else {
        return false;
    };
    let stands = store.snapshot().header_payload(height).ok().flatten();
    let offer = fs::read(path.join(OFFER)).ok().and_then(|bytes| Offer::decode(&bytes).ok());
    let is_ours = offer.is_none_or(|offer| Some(&offer.header) == stands.as_ref());
    manifest.format == FORMAT && manifest.height == height && stands.is_some() && is_ours
}

/// Whether the rows and the extras are as long as the manifest says.
fn has_files(path: &Path, manifest: &Manifest) -> bool {
    let rows = manifest.parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add);
    let extras = manifest.extras.iter().map(|extra| extra.bytes).fold(0, u64::saturating_add);
    let has = |name, bytes| fs::metadata(path.join(name)).is_ok_and(|file| file.len() == bytes);
    has(ROWS, rows) && has(EXTRAS, extras)
}

/// Writes a file so that it is there whole or not at all, and on the disk when this returns, as are
/// the names of all files beside it.
fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), MakeError> {
    let fresh = path.with_extension(PART);
    let write = || {
        fs::write(&fresh, bytes)?;
        File::open(&fresh)?.sync_all()?;
        fs::rename(&fresh, path)?;
        sync_folder(path.parent())
    };
    write().map_err(file_error(path))
}

/// Opens the files of the snapshot of a height; none while the block after it is missing.
fn load(
    (folder, height): (&Path, u64),
    store: &Store,
) -> Result<Option<StoredSnapshot>, MakeError> {
    let folder = &folder.join(height.to_string());
    let unusable = |what| MakeError::Unusable { height, what };
    let path = folder.join(OFFER);
    let (offer, bytes) = if path.exists() {
        let bytes = fs::read(&path).map_err(file_error(&path))?;
        (Offer::decode(&bytes).map_err(|_form| unusable("its offer is malformed"))?, bytes)
    } else {
        let path = folder.join(MANIFEST);
        let manifest = fs::read(&path).map_err(file_error(&path))?;
        let manifest = codec::decode::<Manifest>(&manifest);
        let manifest = manifest.map_err(|_form| unusable("its manifest is malformed"))?;
        let Some(offer) = Offer::of(manifest, &store.snapshot())? else { return Ok(None) };
        let bytes = offer.encode();
        write_synced(&folder.join(OFFER), &bytes)?;
        (offer, bytes)
    };
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if length > OFFER_BYTES_MAX {
        return Err(unusable("its offer is longer than an offer may be"));
    }
    let open = |name| File::open(folder.join(name)).map_err(file_error(folder));
    let files = [open(OFFER)?, open(ROWS)?, open(EXTRAS)?];
    let head =
        OfferHead { height: offer.manifest.height, hash: Hash::digest(&bytes), bytes: length };
    let mut places = BTreeMap::from([(head.hash, ChunkPlace { file: 0, from: 0, bytes: length })]);
    let mut add = |file: usize, pieces: &mut dyn Iterator<Item = (Hash, u64)>| {
        let mut from = 0_u64;
        for (hash, bytes) in pieces.filter(|(_, bytes)| (1..=CHUNK_BYTES_MAX).contains(bytes)) {
            places.insert(hash, ChunkPlace { file, from, bytes });
            from = from.saturating_add(bytes);
        }
    };
    add(1, &mut offer.manifest.parts.iter().map(|part| (part.hash, part.bytes)));
    add(2, &mut offer.manifest.extras.iter().map(|extra| (extra.hash, extra.bytes)));
    Ok(Some(StoredSnapshot { head, files, places }))
}
