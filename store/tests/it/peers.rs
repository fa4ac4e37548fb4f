//! What a node offers of its state, and the database that another one begins with it.

use std::path::Path;
use std::sync::Arc;

use store::snapshots::{ImportError, Intake, Offer, Report, SnapshotStore, import};
use store::tools::Replay;
use store::{Options, Store};
use types::Hash;

use crate::fixture::{TestChain, open};

/// The state of this moment as a peer would offer it: made, and complete with the next block.
pub(crate) fn offered(
    store: &Store,
    folder: &Path,
    next_block: impl FnOnce(),
) -> (SnapshotStore, Offer) {
    let snapshot_store = SnapshotStore::open(folder, 2, store).unwrap();
    snapshot_store.make(store, |_| (), &mut |_| true).unwrap();
    assert_eq!(snapshot_store.settle(store).unwrap(), None, "no header carries the root yet");
    next_block();
    snapshot_store.settle(store).unwrap().expect("an offer");
    let offer = newest(&snapshot_store);
    (snapshot_store, offer)
}

/// The newest offer, as a peer gets it.
pub(crate) fn newest(snapshot_store: &SnapshotStore) -> Offer {
    let head = snapshot_store.offers()[0];
    let bytes = fetch(snapshot_store, &head.hash, head.bytes);
    assert_eq!(Hash::digest(&bytes), head.hash);
    Offer::decode(&bytes).unwrap()
}

/// A whole piece, out of small answers.
pub(crate) fn fetch(snapshot_store: &SnapshotStore, hash: &Hash, bytes: u64) -> Vec<u8> {
    let mut whole = Vec::new();
    while u64::try_from(whole.len()).unwrap() < bytes {
        let offset = u64::try_from(whole.len()).unwrap();
        whole.extend(snapshot_store.piece(hash, offset, 100_000).unwrap().expect("a piece"));
    }
    whole
}

/// Fetches all that is missing.
pub(crate) fn fill(intake: &Intake, snapshot_store: &SnapshotStore) -> usize {
    let missing = intake.missing();
    for want in &missing {
        intake.keep(want, &fetch(snapshot_store, &want.hash, want.bytes)).unwrap();
    }
    missing.len()
}

/// The database that begins with an offer.
#[expect(clippy::unwrap_in_result, reason = "what fails before the import is an assertion")]
pub(crate) fn imported(
    (snapshot_store, offer): &(SnapshotStore, Offer),
    replay: &Replay<'_>,
    dir: &Path,
) -> Result<(Store, Report), ImportError> {
    let verified = offer.clone().verify(replay).map_err(ImportError::Offer)?;
    let intake = Intake::open(&dir.join("intake"), &verified.offer.manifest).unwrap();
    fill(&intake, snapshot_store);
    assert_eq!(intake.missing(), []);
    let to = dir.join("new");
    let place = (to.as_path(), Options::default());
    let report = import(&intake, &verified, replay, place, &mut |_, _| true)?;
    Ok((open(&to), report))
}

/// A node that begins with a snapshot of this one's tip; this one has a block more then.
pub(crate) fn newcomer(chain: &TestChain, replay: &Replay<'_>, dir: &Path) -> TestChain {
    let next_block = || chain.empty_blocks(1);
    let offer = offered(&chain.store, &dir.join("snapshot_store"), next_block);
    let (store, _) = imported(&offer, replay, dir).unwrap();
    TestChain { store, chain: Arc::clone(&replay.chain), wallets: Vec::new() }
}
