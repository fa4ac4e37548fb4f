//! States that stand unevenly in the tree, from the rows to the database of another node.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use state::block::{BlockBuilder, Executed};
use state::chain::ChainRules;
use state::draft::Changes;
use state::forks::FixedFork;
use state::invariants::Broken;
use state::table::{Key, Table, TableId, encode_value};
use state::tables::{
    self, Accounts, AgentTexts, AgentVersions, Agents, AgentsByOwner, ForkRows, Miners, Supplies,
};
use state::view::{Range, Read};
use tempfile::TempDir;
use types::{
    Account, Address, Agent, AgentVersion, Amount, Hash, Keypair, Miner, Params, SetMember, Supply,
    TxLocation,
};

use super::make::{self, SIZES, Sizes};
use super::{
    CHUNK_BYTES_MAX, FORMAT, ImportError, Intake, Manifest, Offer, OfferError, SnapshotStore,
    import,
};
use crate::tools::{Certificates, Replay, V7Height};
use crate::tree::key_hash;
use crate::tree::subtree::bit;
use crate::tree::tests::CHOOSES;
use crate::{CommitBlock, GenesisState, Options, Store};

const TIME: u64 = 1_790_000_000_000;

/// Takes the certificates that a function finds right, by the height of v7 and that of the block.
struct Judge(fn(V7Height, u64, &[u8]) -> bool);

impl Certificates for Judge {
    fn verify(
        &self,
        v7: V7Height,
        _: Option<&[SetMember]>,
        height: u64,
        _: &Hash,
        certificate: &[u8],
    ) -> Result<Vec<Address>, String> {
        let is_right = (self.0)(v7, height, certificate);
        if is_right { Ok(Vec::new()) } else { Err("of the wrong version".into()) }
    }
}

/// Takes every certificate: most tests are not about them.
static TRUSTING: Judge = Judge(|_, _, _| true);

/// Takes certificates that say of which version they are, where that version is right.
static VERSIONED: Judge = Judge(|v7, height, certificate| match v7 {
    V7Height::Unknown => [b"v1", b"v2"].iter().any(|version| *version == certificate),
    V7Height::Known(Some(from)) if height >= from => certificate == b"v2",
    V7Height::Known(_) => certificate == b"v1",
});

fn rules() -> Arc<ChainRules> {
    Arc::new(ChainRules {
        chain_id: "offers-test".into(),
        genesis_hash: Hash::ZERO,
        params: Params::default(),
        forks: state::Forks::default(),
        validators: Vec::new(),
    })
}

/// A row of a miner that takes about so many bytes.
fn miner(address: Address, text: usize) -> Vec<u8> {
    encode_value::<Miners>(&Miner {
        miner_id: Hash::digest(address.as_bytes()),
        address,
        name: "a miner".into(),
        capabilities: Vec::new(),
        model_info: "m".repeat(text),
        registered_at: TIME,
    })
}

/// A row: its table, its key, its value.
type Row = (TableId, Vec<u8>, Vec<u8>);

/// A store in a folder of its own, whose genesis has these rows beside the supply.
fn store(rows: impl IntoIterator<Item = Row>) -> (TempDir, Store) {
    let mut changes = Changes::from([(
        Supplies::ID,
        [(Vec::new(), Some(encode_value::<Supplies>(&Supply::default())))].into(),
    )]);
    for (table, key, value) in rows {
        changes.entry(table).or_default().insert(key, Some(value));
    }
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("data"), Options::default()).unwrap();
    let genesis =
        GenesisState { hash: Hash::digest(b"genesis"), timestamp: TIME, changes: &changes };
    store.init(&genesis).unwrap();
    block(&store);
    (dir, store)
}

/// Commits a block without transactions.
fn block(store: &Store) {
    let parent = store.parent().unwrap();
    let (base, at) = (store.latest(), parent.timestamp + 250);
    let builder = BlockBuilder::new(rules(), base, parent, &Keypair::from_seed(&[7; 32]), at);
    let Executed { block, changes, events } = builder.unwrap().finish().unwrap();
    let input = CommitBlock { block: &block, changes: &changes, events: &events, missed: &[] };
    store.commit_block(&input, b"a certificate").unwrap();
}

/// What a store offers, made in such sizes in a folder.
fn offered(store: &Store, dir: &Path, sizes: Sizes) -> (SnapshotStore, Offer) {
    let folder = dir.join("snapshot_store");
    let snapshot_store = SnapshotStore::open(&folder, 1, store).unwrap().with(sizes);
    snapshot_store.make(store, |_| (), &mut |_| true).unwrap();
    block(store);
    snapshot_store.settle(store).unwrap().expect("an offer");
    let head = snapshot_store.offers()[0];
    let bytes = snapshot_store.piece(&head.hash, 0, usize::MAX).unwrap().unwrap();
    (snapshot_store, Offer::decode(&bytes).unwrap())
}

/// Fetches, checks and imports it all; answers how many chunks of rows there were.
fn imported(dir: &Path, snapshot_store: &SnapshotStore, offer: &Offer) -> (Store, usize) {
    import_checked(dir, (snapshot_store, offer), &TRUSTING).unwrap()
}

/// The same with certificates that are checked.
#[expect(clippy::unwrap_in_result, reason = "what the snapshot itself does is an assertion")]
fn import_checked(
    dir: &Path,
    (snapshot_store, offer): (&SnapshotStore, &Offer),
    certificates: &dyn Certificates,
) -> Result<(Store, usize), ImportError> {
    let genesis_changes = Changes::new();
    let replay = Replay {
        chain: rules(),
        genesis_hash: Hash::digest(b"genesis"),
        genesis_time: TIME,
        genesis_changes: &genesis_changes,
        certificates,
        threads: NonZeroUsize::MIN,
    };
    let verified = offer.clone().verify(&replay).map_err(ImportError::Offer)?;
    let intake = Intake::open(&dir.join("intake"), &verified.offer.manifest).unwrap();
    let missing = intake.missing();
    for want in &missing {
        let bytes = snapshot_store.piece(&want.hash, 0, usize::MAX).unwrap().expect("a chunk");
        intake.keep(want, &bytes).unwrap();
    }
    let to = dir.join("new");
    let place = (to.as_path(), Options::default());
    import(&intake, &verified, &replay, place, &mut |_, _| true)?;
    let store = Store::open(&to, Options::default()).unwrap();
    Ok((store, missing.len() - offer.manifest.extras.len()))
}

/// The row of v7 that begins with a block.
fn v7_row(from: u64) -> Row {
    let fixed = FixedFork { height: from, since: from };
    (ForkRows::ID, "v7".to_owned().to_bytes(), encode_value::<ForkRows>(&fixed))
}

#[test]
fn the_rows_of_a_snapshot_say_of_which_version_its_certificates_are() {
    // The snapshot is of block 1.
    let at = |row: Option<u64>, versions: [&[u8]; 2]| {
        let (dir, store) = store(row.map(v7_row));
        let (snapshot_store, mut offer) = offered(&store, dir.path(), SIZES);
        [offer.certificate, offer.next_certificate] = versions.map(<[u8]>::to_vec);
        let imported = import_checked(dir.path(), (&snapshot_store, &offer), &VERSIONED);
        imported.map(|(store, _)| {
            store.count_forks(&rules()).unwrap();
            store.forks()
        })
    };
    let before = at(None, [b"v1", b"v1"]).unwrap();
    assert_eq!(before.missing, Some(1..=1), "the votes for v7 may stand there");
    assert!(at(None, [b"v1", b"v2"]).is_ok(), "v7 begins after it");
    for from in [0, 1] {
        let after = at(Some(from), [b"v2", b"v2"]).unwrap();
        assert_eq!(after.missing, None, "no earlier vote matters any more");
        assert_eq!(after.tally.fixed()["v7"].height, from);
    }
    for (row, versions, wrong) in [
        (None, [b"v2", b"v2"], 1),
        (None, [b"v2", b"v1"], 1),
        (Some(1), [b"v1", b"v1"], 1),
        (Some(1), [b"v1", b"v2"], 1),
        (Some(1), [b"v2", b"v1"], 2),
    ] {
        let refused = at(row, versions.map(|it| it.as_slice())).expect_err("of the wrong version");
        let ImportError::Offer(OfferError::Certificate { height, .. }) = refused else {
            panic!("{refused}")
        };
        assert_eq!(height, wrong, "{row:?} {versions:?}");
    }
    let broken = at(None, [b"v3", b"v1"]).expect_err("of no version");
    assert!(matches!(broken, ImportError::Offer(OfferError::Certificate { height: 1, .. })));
}

/// The new store has the same rows, and goes on to the same root.
fn lives_on(store: &Store, new: &Store) {
    let all = Range { from: &[], to: None, limit: usize::MAX };
    for table in tables::ALL.into_iter().filter(|table| table.tag.is_some()) {
        let rows = |store: &Store| store.snapshot().scan_raw(table, all).unwrap();
        assert!(rows(new) == rows(store), "{}", table.name);
    }
    block(new);
    assert_eq!(new.tip().unwrap(), store.tip().unwrap());
    for _ in 0..2 {
        block(new);
        block(store);
    }
    assert_eq!(new.tip().unwrap().state_root, store.tip().unwrap().state_root);
}

fn largest(manifest: &Manifest) -> u64 {
    manifest.parts.iter().map(|part| part.bytes).max().unwrap_or(0)
}

/// The rows of so many miners whose hashes all begin with the same 16 bits.
fn under_one_prefix(count: u32, text: usize) -> Vec<Row> {
    let rows = (0..count).map(|number| {
        let key = [&CHOOSES, [0xca, 0xfe].as_slice(), &number.to_be_bytes(), &[0; 8]].concat();
        let address = Address::new(key.clone().try_into().unwrap());
        (Miners::ID, key, miner(address, text))
    });
    rows.collect()
}

#[test]
fn a_hundred_thousand_rows_under_one_prefix_of_16_bits_are_offered_and_imported() {
    let (dir, store) = store(under_one_prefix(100_000, 80));
    // A smaller pile than nodes have, so that these rows are dealt out again, and again.
    let sizes = Sizes { pile: 4 << 20, ..SIZES };
    let (snapshot_store, offer) = offered(&store, dir.path(), sizes);
    let manifest = &offer.manifest;
    let bytes: u64 = manifest.parts.iter().map(|part| part.bytes).sum();
    assert!(bytes > CHUNK_BYTES_MAX, "{bytes}: a chunk could hold them all");
    assert!(largest(manifest) <= SIZES.chunk, "{}", largest(manifest));
    let narrow = manifest.parts.iter().filter(|part| part.bits > 16 && part.leaves > 0).count();
    let (new, chunks) = imported(dir.path(), &snapshot_store, &offer);
    assert!(narrow >= 20 && chunks <= 60, "{narrow} below the prefix, {chunks} chunks in all");
    lives_on(&store, &new);
}

/// The files of a snapshot in a new folder, made in such sizes.
fn written(store: &Store, folder: &Path, sizes: Sizes) -> Manifest {
    std::fs::create_dir(folder).unwrap();
    make::write(&store.snapshot(), folder, sizes, &mut |_| true).unwrap()
}

#[test]
fn the_sizes_in_memory_do_not_change_what_is_offered() {
    let (dir, store) = store(under_one_prefix(3_000, 900));
    let made = |name: &str, pile| {
        let folder = dir.path().join(name);
        let manifest = written(&store, &folder, Sizes { pile, ..SIZES });
        let files = ["rows", "extras"].map(|file| std::fs::read(folder.join(file)).unwrap());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "a pile was left");
        (manifest, files)
    };
    let expected = made("as nodes have them", SIZES.pile);
    assert!(expected == made("small", 64 << 10));
    assert!(expected == made("none", 0));
    assert!(expected.0.parts.len() > 3, "{}", expected.0.parts.len());
}

/// Addresses that were found by trying, as an attacker would: no hash is chosen here.
#[test]
fn rows_whose_keys_were_ground_to_one_prefix_are_offered_and_imported() {
    let prefix = |hash: &Hash| (0..8).all(|at| bit(hash, at));
    let mut rows = Vec::new();
    for number in 0_u64.. {
        let key = [number.to_be_bytes().as_slice(), &[0; 12]].concat();
        if prefix(&key_hash(Miners::ID, &key).unwrap()) {
            let address = Address::new(key.clone().try_into().unwrap());
            rows.push((Miners::ID, key, miner(address, 900)));
        } else if number % 64 == 0 {
            // Others, anywhere.
            let account = Account { balance: Amount::ZERO, nonce: number };
            rows.push((Accounts::ID, key, encode_value::<Accounts>(&account)));
        }
        if rows.len() == 8_000 {
            break;
        }
    }
    let ground = rows.iter().filter(|(table, ..)| *table == Miners::ID).count();
    assert!(ground > 1_000, "{ground}");
    let (dir, store) = store(rows);
    let sizes = Sizes { chunk: 128 << 10, pile: 512 << 10 };
    let (snapshot_store, offer) = offered(&store, dir.path(), sizes);
    assert!(largest(&offer.manifest) <= sizes.chunk, "{}", largest(&offer.manifest));
    let (new, chunks) = imported(dir.path(), &snapshot_store, &offer);
    assert!(chunks > 8, "{chunks}");
    lives_on(&store, &new);
}

#[test]
fn a_row_that_is_longer_than_a_chunk_is_a_chunk_of_its_own() {
    let mut rows = under_one_prefix(40, 900);
    let address = Address::new([9; 20]);
    rows.push((Miners::ID, address.as_bytes().to_vec(), miner(address, 3 << 20)));
    let (dir, store) = store(rows);
    let (snapshot_store, offer) = offered(&store, dir.path(), SIZES);
    assert!(largest(&offer.manifest) > 3 << 20);
    let alone = offer.manifest.parts.iter().find(|part| part.bytes > SIZES.chunk);
    assert_eq!(alone.map(|part| part.leaves), Some(1));
    let (new, _) = imported(dir.path(), &snapshot_store, &offer);
    lives_on(&store, &new);
}

#[test]
fn a_manifest_that_lies_about_a_chunk_is_not_held_against_who_sends_it() {
    let (dir, store) = store(under_one_prefix(300, 100));
    let folder = dir.path().join("made");
    let mut manifest = written(&store, &folder, SIZES);
    let rows = std::fs::read(folder.join("rows")).unwrap();
    assert_eq!(1, manifest.parts.len(), "one chunk");
    let kept = |manifest: &Manifest, bytes: &[u8]| {
        let intake = Intake::open(&dir.path().join("intake"), manifest).unwrap();
        let want = intake.missing()[0];
        let kept = intake.keep(&want, bytes).map_err(|error| {
            if let ImportError::Manifest(OfferError::Numbers { what, .. }) = error {
                return what;
            }
            assert!(matches!(error, ImportError::Offer(_)), "{error}");
            "the sender"
        });
        assert_eq!(usize::from(kept.is_err()), intake.missing().len());
        kept
    };
    let honest = manifest.clone();
    manifest.parts[0].bytes += 1;
    assert_eq!(Err("bytes"), kept(&manifest, &rows));
    manifest.parts[0].bytes -= 1;
    manifest.parts[0].leaves -= 1;
    assert_eq!(Err("rows"), kept(&manifest, &rows));
    assert_eq!(Err("the sender"), kept(&manifest, &rows[..rows.len() - 1]));
    assert_eq!(Ok(()), kept(&honest, &rows));
}

#[test]
fn a_manifest_of_crumbs_or_of_another_format_is_refused() {
    let (dir, store) = store(under_one_prefix(600, 100));
    let root = store.tip().unwrap().state_root;
    let good = written(&store, &dir.path().join("good"), SIZES);
    assert_eq!(good.check(root).unwrap().root.hash, root);
    let crumbs = written(&store, &dir.path().join("crumbs"), Sizes { chunk: 1_000, ..SIZES });
    assert_eq!(crumbs.cover().unwrap().root.hash, root, "it is all there");
    let form = |manifest: &Manifest| {
        let Err(OfferError::Form { what }) = manifest.check(root) else {
            panic!("no such rejection")
        };
        what
    };
    assert_eq!(form(&crumbs), "the manifest of a snapshot");
    assert_eq!(form(&Manifest { format: FORMAT - 1, ..good }), "the format of a snapshot");
}

/// The rows of an agent with two versions, the second with this text in its place.
fn agent(second: Option<&str>) -> Vec<Row> {
    let (agent_id, owner) = (Hash::new([5; 32]), Address::new([6; 20]));
    let text = |version: &str| format!("{{\"version\":\"{version}\"}}");
    let record = Agent {
        agent_id,
        owner,
        name: "judge".into(),
        latest: "2.0.0".into(),
        versions: 2,
        is_retired: false,
        registered_at: TIME,
        changed_at: TIME,
    };
    let version = |name: &str, previous: Option<&str>| AgentVersion {
        agent_id,
        version: name.into(),
        previous: previous.map(str::to_owned),
        owner,
        executors: vec!["wasm-1".into()],
        manifests: Vec::new(),
        selectors: vec![[1; 4]],
        tools: Vec::new(),
        royalty: Amount::ZERO,
        is_deterministic: true,
        nesting: 1,
        metadata_hash: Hash::digest(text(name).as_bytes()),
        metadata_bytes: u64::try_from(text(name).len()).unwrap(),
        registered_at: TIME,
        tx: TxLocation { height: 1, position: 0 },
    };
    let key = |name: &str| (agent_id, name.to_owned()).to_bytes();
    let version = |name: &str, previous| {
        (AgentVersions::ID, key(name), encode_value::<AgentVersions>(&version(name, previous)))
    };
    let kept =
        |name: &str, text: String| (AgentTexts::ID, key(name), encode_value::<AgentTexts>(&text));
    let mut rows = vec![
        (Agents::ID, agent_id.to_bytes(), encode_value::<Agents>(&record)),
        (AgentsByOwner::ID, (owner, agent_id).to_bytes(), encode_value::<AgentsByOwner>(&())),
        version("1.0.0", None),
        version("2.0.0", Some("1.0.0")),
        kept("1.0.0", text("1.0.0")),
    ];
    rows.extend(second.map(|second| kept("2.0.0", second.to_owned())));
    rows
}

#[test]
fn a_snapshot_carries_the_metadata_of_agents_and_is_refused_with_another_text_or_without_one() {
    let (whole, store) = store(agent(Some("{\"version\":\"2.0.0\"}")));
    let (snapshot_store, offer) = offered(&store, whole.path(), SIZES);
    let (new, _) = imported(whole.path(), &snapshot_store, &offer);
    let all = Range { from: &[], to: None, limit: usize::MAX };
    for table in [AgentTexts::ID, AgentsByOwner::ID] {
        let rows = |store: &Store| store.snapshot().scan_raw(table, all).unwrap();
        assert!(!rows(&new).is_empty());
        assert!(rows(&new) == rows(&store), "{}", table.name);
    }
    lives_on(&store, &new);
    for text in [Some("{\"version\":\"2.0.1\"}"), Some("{\"version\":\"2.0.0\"} "), None] {
        let (dir, store) = self::store(agent(text));
        let (snapshot_store, offer) = offered(&store, dir.path(), SIZES);
        let Err(refused) = import_checked(dir.path(), (&snapshot_store, &offer), &TRUSTING) else {
            panic!("{text:?} was taken")
        };
        let ImportError::Offer(OfferError::Broken(broken)) = refused else { panic!("{refused}") };
        assert!(matches!(*broken, Broken::AgentText { .. }), "{broken}");
    }
}
