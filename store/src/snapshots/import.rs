//! A database out of the chunks of an offer.
//!
//! It is made in a folder beside its place, and gets its place by one move when every check has
//! passed and all of it is on the disk. So a half-made one is never taken for a database, and one
//! that a crash left is made anew from the chunks.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use state::chain::ChainRules;
use state::error::StorageError;
use state::table::{Key, Table, TableId, decode_value, encode_value};
use state::tables::{
    AgentTexts, BlobChunks, Blobs, ConversationTurns, Turns, ValidatorHistory, Validators,
};
use state::view::{self, Range};
use state::{invariants, validators};
use types::{Blob, Hash, codec};

use super::chunk;
use super::derive::Derived;
use super::error::{ImportError, OfferError, file};
use super::intake::Intake;
use super::manifest::{Offer, Verified};
use crate::database::Store;
use crate::folder::{beside, refuse_interrupted, sync_folder};
use crate::meta::{EARLIEST_CELL, FORMAT, FORMAT_CELL, GENESIS_CELL, TIP_CELL, Tip};
use crate::options::Options;
use crate::rocks::{Batch, Durability, Rocks};
use crate::snapshot::Snapshot;
use crate::tables::{BlockIds, COMMITS, HeaderRow, Headers, META, TREE_NODES, ValidatorLinks};
use crate::tools::Replay;
use crate::tree::build::{build_cut, build_top};
use crate::tree::nibbles_above;
use crate::{market, pieces};

/// Called with how far an import is, bytes done and bytes in all; answers false to stop it.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// What was imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The end of the chain; blocks up to it are not in the database.
    pub tip: Tip,
    /// What the invariants were checked over.
    pub state: invariants::Report,
}

/// Makes a database in the folder `to`, which must not exist or be empty, out of the chunks of an
/// offer, all of which are in `intake`.
///
/// # Errors
/// [`StorageError::Interrupted`] if an interrupted rollback left the database beside `to`,
/// [`ImportError::Missing`] for a chunk that has to be fetched again, [`ImportError::Offer`] if what
/// no root covers contradicts the rest, [`ImportError`] else. There is no database in `to` then.
/// After [`ImportError::Stopped`] the chunks are there for the next time.
pub fn import(
    intake: &Intake,
    verified: &Verified,
    chain: &Replay<'_>,
    (to, options): (&Path, Options),
    progress: Progress<'_>,
) -> Result<Report, ImportError> {
    refuse_interrupted(to)?;
    if to.exists() && fs::remove_dir(to).is_err() {
        return Err(ImportError::Exists { path: to.to_path_buf() });
    }
    let partial = beside(to, "snapshot");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(file(&partial))?;
    }
    let report = {
        let store = Store::open(&partial, options)?;
        let rules = &*chain.chain;
        let job = Job { rocks: &store.0.rocks, intake, verified, rules };
        job.rows(progress)?;
        if rules.forks.v7.is_none() {
            let v7_from = state::rules::v7_from(rules, &store.snapshot())?;
            verified.check_versions(v7_from, chain)?;
        }
        job.beginning()?;
        check_blobs(&store)?;
        pieces::fill(&store.0.rocks)?;
        market::fill(&store)?;
        let earliest = verified.tip.height.saturating_add(1);
        let state = invariants::verify_from(&store.snapshot(), &rules.params, earliest)?;
        if let Some(broken) = state.broken.first() {
            return Err(OfferError::Broken(Box::new(broken.clone())).into());
        }
        job.cells(chain.genesis_hash, earliest)?;
        Report { tip: verified.tip, state }
    };
    fs::rename(&partial, to).map_err(file(to))?;
    sync_folder(to.parent()).map_err(file(to))?;
    Ok(report)
}

struct Job<'a> {
    rocks: &'a Rocks,
    intake: &'a Intake,
    verified: &'a Verified,
    rules: &'a ChainRules,
}

impl Job<'_> {
    fn put(
        &self,
        batch: &mut Batch,
        table: TableId,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), StorageError> {
        batch.put(&self.rocks.table(table)?, key, value);
        Ok(())
    }

    fn typed<T: Table>(
        &self,
        batch: &mut Batch,
        key: &T::Key,
        value: &T::Value,
    ) -> Result<(), StorageError> {
        self.put(batch, T::ID, &key.to_bytes(), &encode_value::<T>(value))
    }

    fn write(&self, batch: Batch) -> Result<(), StorageError> {
        self.rocks.write(batch, Durability::Buffered)
    }

    /// The rows of all chunks and extras, what follows from them, and the tree.
    fn rows(&self, progress: Progress<'_>) -> Result<(), ImportError> {
        let (manifest, cover) = (&self.verified.offer.manifest, &self.verified.cover);
        let version = self.verified.tip.height;
        let (all, mut above) = (manifest.bytes(), Vec::new());
        let (mut derived, mut done) = (Derived::default(), 0_u64);
        for (place, part) in manifest.parts.iter().enumerate() {
            let bits = part.bits();
            let bytes = if part.leaves > 0 { self.intake.read(&part.into())? } else { Vec::new() };
            let chunk = chunk::check(&bytes, bits, part.hash)?;
            let mut batch = Batch::default();
            for row in &chunk.rows {
                self.put(&mut batch, row.table, row.key, row.value)?;
                derived.add(row, &self.rules.params, &mut |table, key, value| {
                    self.put(&mut batch, table, key, value)
                })?;
            }
            let nodes = self.rocks.table(TREE_NODES)?;
            let single = cover.single_depth(place);
            let cut = build_cut(version, (bits, single), &chunk.leaves, &mut |key, node| {
                batch.put(&nodes, &key, &node);
            });
            above.extend(cut.into_iter().map(|subtree| (nibbles_above(bits), subtree)));
            if part.leaves > 0 {
                self.write(batch)?;
                done = done.saturating_add(part.bytes);
                go_on(progress(done, all))?;
            }
        }
        let mut batch = Batch::default();
        let nodes = self.rocks.table(TREE_NODES)?;
        let root = build_top(version, above, &mut |key, node| {
            batch.put(&nodes, &key, &node);
        });
        let expected = self.verified.tip.state_root;
        if root.hash != expected {
            return Err(OfferError::Root { found: root.hash, expected }.into());
        }
        derived.finish(&mut |table, key, value| self.put(&mut batch, table, key, value))?;
        self.write(batch)?;
        for extra in &manifest.extras {
            self.extra(&self.intake.read(&extra.into())?)?;
            done = done.saturating_add(extra.bytes);
            go_on(progress(done, all))?;
        }
        Ok(())
    }

    fn extra(&self, bytes: &[u8]) -> Result<(), ImportError> {
        let wrong = |what: &str| OfferError::Extras { what: what.to_owned() };
        let mut batch = Batch::default();
        for row in chunk::extra_rows(bytes)? {
            self.put(&mut batch, row.table, row.key, row.value)?;
            if row.table == Turns::ID {
                let key =
                    <Hash as Key>::from_bytes(row.key).ok_or_else(|| wrong("the key of a turn"))?;
                let turn = decode_value::<Turns>(row.value)
                    .map_err(|_fault| wrong("the place of a turn is malformed"))?;
                if turn.tx.height > self.verified.tip.height {
                    return Err(wrong("a turn is in a block above the snapshot").into());
                }
                let place = (turn.conversation_id, turn.tx.height, turn.tx.position);
                self.typed::<ConversationTurns>(&mut batch, &place, &key)?;
            } else if row.table == AgentTexts::ID {
                // That each is the text of its record, and none is missing, the invariants say.
                <(Hash, String)>::from_bytes(row.key)
                    .ok_or_else(|| wrong("the key of the metadata of an agent"))?;
                decode_value::<AgentTexts>(row.value)
                    .map_err(|_fault| wrong("the metadata of an agent is malformed"))?;
            } else {
                <(u32, String)>::from_bytes(row.key)
                    .ok_or_else(|| wrong("the key of a chunk of a blob"))?;
                decode_value::<BlobChunks>(row.value)
                    .map_err(|_fault| wrong("a chunk of a blob is malformed"))?;
            }
        }
        Ok(self.write(batch)?)
    }

    /// The header at which this database begins, and the validators before it.
    fn beginning(&self) -> Result<(), StorageError> {
        let Verified { tip, history, offer, cover: _ } = self.verified;
        let Offer { header, certificate, links, .. } = offer;
        let mut batch = Batch::default();
        for (since, set) in history {
            self.typed::<ValidatorHistory>(&mut batch, since, set)?;
        }
        let decided = self.rocks.live().get(Validators::ID, &().to_bytes())?;
        let decided = decided.as_deref().map(decode_value::<Validators>).transpose()?;
        if decided.is_some() && history.is_empty() {
            // No link says anything of them: v7 has written the row, and its set is still that of
            // genesis. The invariants compare the two.
            let mut first = self.rules.validators.clone();
            first.sort_by_key(validators::address);
            self.typed::<ValidatorHistory>(&mut batch, &1, &first)?;
        }
        if let Some(next) = decided.and_then(|sets| sets.next) {
            self.typed::<ValidatorHistory>(&mut batch, &tip.height.saturating_add(2), &next)?;
        }
        for link in links {
            let height = types::Header::parse(link.header.as_bytes())
                .map_err(|source| StorageError::Block { height: tip.height, source })?
                .index;
            self.typed::<ValidatorLinks>(&mut batch, &height, link)?;
        }
        let row = HeaderRow { hash: tip.hash, payload: header.clone() };
        self.typed::<Headers>(&mut batch, &tip.height, &row)?;
        self.typed::<BlockIds>(&mut batch, &tip.hash, &tip.height)?;
        self.put(&mut batch, COMMITS, &tip.height.to_be_bytes(), certificate)?;
        self.write(batch)
    }

    /// What makes it a database. Synced.
    fn cells(&self, genesis: Hash, earliest: u64) -> Result<(), StorageError> {
        let mut batch = Batch::default();
        self.put(&mut batch, META, FORMAT_CELL, &FORMAT.to_le_bytes())?;
        self.put(&mut batch, META, GENESIS_CELL, &codec::encode(&genesis))?;
        self.put(&mut batch, META, EARLIEST_CELL, &codec::encode(&earliest))?;
        self.put(&mut batch, META, TIP_CELL, &codec::encode(&self.verified.tip))?;
        self.rocks.write(batch, Durability::Synced)
    }
}

fn go_on(is_wanted: bool) -> Result<(), ImportError> {
    if is_wanted { Ok(()) } else { Err(ImportError::Stopped) }
}

/// The chunks of blobs are those that the records say, as far as records say it: all of a complete
/// one by their hash, and of the others as many as were received.
fn check_blobs(store: &Store) -> Result<(), ImportError> {
    const PAGE: usize = 1_000;
    let snapshot = store.snapshot();
    let (mut from, mut expected) = (Vec::new(), 0_u64);
    loop {
        let range = Range { from: &from, to: None, limit: PAGE };
        let page = view::scan::<Blobs>(&snapshot, range)?;
        for (id, blob) in &page {
            expected = expected.saturating_add(blob.received);
            check_blob(&snapshot, id, blob)?;
        }
        let Some((last, _)) = page.last().filter(|_| page.len() == PAGE) else { break };
        from = last.to_bytes();
        from.push(0);
    }
    let mut found = 0_u64;
    snapshot.source.walk(BlobChunks::ID, &[], None, |_, _| {
        found = found.saturating_add(1);
        true
    })?;
    if found == expected {
        return Ok(());
    }
    let what = format!("there are {found} chunks of blobs, {expected} were received");
    Err(OfferError::Extras { what }.into())
}

fn check_blob(snapshot: &Snapshot<'_>, id: &str, blob: &Blob) -> Result<(), ImportError> {
    let mut hasher = Sha256::new();
    let mut found = 0_u64;
    for index in 0..blob.total_chunks {
        if found == blob.received {
            break;
        }
        let Ok(index) = u32::try_from(index) else { break };
        if let Some(chunk) = snapshot.get::<BlobChunks>(&(index, id.to_owned()))? {
            found = found.saturating_add(1);
            hasher.update(&chunk);
        }
    }
    let hash = Hash::new(hasher.finalize().into());
    let is_right = found == blob.received && blob.received_hash.is_none_or(|known| known == hash);
    if is_right {
        return Ok(());
    }
    let what = format!("the chunks of the blob {id} are not those of its record");
    Err(OfferError::Extras { what }.into())
}
