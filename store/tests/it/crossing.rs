//! A chain that comes to fork v7 by votes, as databases see it: those that began with a snapshot before
//! the height, at it or after it, and those that were closed around it.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use state::chain::ChainRules;
use state::table::Table;
use state::tables::{self, Steps};
use state::{BlockBuilder, Changes, Executed};
use store::tools::{self, EncodedBlock, Replay, Supply, ToolError, V7Height};
use store::{Store, Tip};
use types::{CheckedTx, Hash, codec};

use crate::fixture::{TestChain, data, encoded, genesis_changes, input, open, whole_run};
use crate::forks::{VALIDATORS, WALLETS, vote, voting_rules};
use crate::peers::{imported, offered};
use crate::snapshots::busy::rows;
use crate::tools::{Judge, replay, verify};

/// The first block of v7.
const FORK: u64 = 12;
/// The block with the votes for it.
const VOTED: u64 = 3;
const LAST: u64 = FORK + 5;
/// A wallet that is no validator.
const MINER: usize = VALIDATORS;

/// What the validators sign for a block: of v7 on, something else.
fn certificate(is_v7: bool, hash: &Hash) -> Vec<u8> {
    codec::encode(&(is_v7, *hash))
}

/// Takes [`certificate`] of the right version.
static VERSIONED: Judge = Judge(|asked| {
    let is = |is_v7| asked.certificate == certificate(is_v7, asked.hash);
    match asked.v7 {
        V7Height::Known(from) => is(from.is_some_and(|from| asked.height >= from)),
        V7Height::Unknown => is(false) || is(true),
    }
});

/// The chain, with what each of its blocks is to others.
struct Crossing {
    chain: TestChain,
    first: Changes,
    rules: Arc<ChainRules>,
}

impl Crossing {
    fn new(path: &Path) -> Self {
        let chain = TestChain::new(path, WALLETS);
        let (first, rules) = (genesis_changes(&chain.wallets), voting_rules(&chain.wallets));
        chain.store.count_forks(&rules).unwrap();
        Self { chain, first, rules }
    }

    fn replay(&self) -> Replay<'_> {
        let (chain, threads) = (Arc::clone(&self.rules), NonZeroUsize::MIN);
        Replay { chain, certificates: &VERSIONED, threads, ..replay(&self.first) }
    }

    fn height(&self) -> u64 {
        self.chain.tip().height
    }

    /// A block in which a run is worked on; block [`VOTED`] has the votes of a quorum.
    fn block(&mut self) -> Tip {
        let height = self.height() + 1;
        let mut txs = Vec::new();
        if height == VOTED {
            let voters = self.chain.wallets.iter_mut().take(VALIDATORS - 1);
            txs.extend(voters.map(|wallet| vote(wallet, FORK)));
        }
        let (user, miner) = self.chain.pair(0, MINER);
        txs.extend(whole_run(height, user, miner).1);
        let executed = self.execute(&txs);
        self.commit(&executed)
    }

    /// Blocks up to this height.
    fn up_to(&mut self, height: u64) {
        while self.height() < height {
            self.block();
        }
    }

    fn execute(&self, txs: &[CheckedTx]) -> Executed {
        let (parent, base) = (self.chain.store.parent().unwrap(), self.chain.store.latest());
        let (key, now) = (&self.chain.wallets[0].key, parent.timestamp + 250);
        let builder = BlockBuilder::new(Arc::clone(&self.rules), base, parent, key, now);
        let mut builder = builder.unwrap();
        txs.iter().for_each(|tx| builder.push(tx).unwrap());
        builder.finish().unwrap()
    }

    fn commit(&self, executed: &Executed) -> Tip {
        let header = &executed.block.header;
        let decided = certificate(header.index >= FORK, &header.hash());
        self.chain.store.commit_block(&input(executed), &decided).unwrap()
    }

    /// The blocks from a height on, as a peer sends them.
    fn sent(&self, first: u64) -> Vec<EncodedBlock> {
        encoded(&self.chain.store, first..=self.height())
    }

    /// A database out of the snapshot of the tip, and the chain a block further.
    fn begun(&mut self, folder: &Path) -> Store {
        let store = self.chain.store.clone();
        let next_block = || {
            self.block();
        };
        let offer = offered(&store, &folder.join("snapshot_store"), next_block);
        let (new, _) = imported(&offer, &self.replay(), folder).unwrap();
        new
    }

    /// Executes blocks of a peer.
    fn follow(&self, store: &Store, blocks: Vec<EncodedBlock>) -> Result<Tip, ToolError> {
        let blocks = blocks.into_iter().map(Supply::Block);
        tools::follow(store, &self.replay(), blocks, |_, _| ())
    }

    /// What its peers have of the blocks that a database lacks is counted.
    fn count_missing(&self, store: &Store) {
        let missing = store.forks().missing.expect("blocks that are not counted");
        let snapshot = self.chain.store.snapshot();
        let votes = missing.flat_map(|height| {
            let block = snapshot.block(height).unwrap().unwrap();
            let txs: Vec<_> = block.transactions.iter().map(|tx| (**tx).clone()).collect();
            store.earlier_votes(height, &txs).unwrap()
        });
        store.count_earlier(&votes.collect::<Vec<_>>()).unwrap();
        store.count_own().unwrap();
    }

    /// The other database has the same state and the same count.
    fn is_as(&self, other: &Store) {
        assert_eq!(other.tip().unwrap(), self.chain.tip());
        for table in tables::ALL.into_iter().filter(|table| *table != Steps::ID) {
            assert!(rows(other, table) == rows(&self.chain.store, table), "{}", table.name);
        }
        let height = |store: &Store| store.forks().tally.fixed().get("v7").map(|it| it.height);
        assert_eq!((height(other), height(&self.chain.store)), (Some(FORK), Some(FORK)));
    }
}

/// A chain of so many blocks.
fn chain_of(path: &Path, blocks: u64) -> Crossing {
    let mut chain = Crossing::new(path);
    chain.up_to(blocks);
    chain
}

#[test]
fn a_node_that_begins_with_a_snapshot_from_before_waits_at_the_height_until_it_has_counted() {
    // Before the votes, between them and the height, and of the last block before it.
    for made in [VOTED - 1, VOTED, FORK - 3, FORK - 1] {
        let dir = tempfile::tempdir().unwrap();
        let mut chain = chain_of(&data(&dir), made);
        let new = chain.begun(dir.path());
        chain.up_to(LAST);
        new.count_forks(&chain.rules).unwrap();
        assert_eq!(new.forks().missing, Some(1..=made));
        // Without the count nobody gets past the block before, and nobody is to blame for that.
        let mut new = new;
        for _ in 0..2 {
            let waits = chain.follow(&new, chain.sent(new.tip().unwrap().height + 1)).unwrap_err();
            let reason = waits.storage().map(ToString::to_string).unwrap_or_default();
            let expected = format!(
                "block {FORK} belongs to the fork v7, and the votes for it in the \
                                    blocks before the snapshot are not counted yet"
            );
            assert_eq!((reason, waits.wrong_block()), (expected, None), "made of {made}");
            assert_eq!(new.tip().unwrap().height, FORK - 1);
            // A certificate that nobody has signed is still its sender's fault.
            let mut forged = chain.sent(FORK);
            forged[0].certificate = certificate(true, &Hash::ZERO);
            assert_eq!(chain.follow(&new, forged).unwrap_err().wrong_block(), Some(FORK));
            // A restart changes nothing of it.
            drop(new);
            new = open(&dir.path().join("new"));
            new.count_forks(&chain.rules).unwrap();
        }
        chain.count_missing(&new);
        assert_eq!(new.forks().missing, None);
        assert_eq!(chain.follow(&new, chain.sent(FORK)).unwrap(), chain.chain.tip());
        chain.is_as(&new);
    }
}

#[test]
fn a_node_that_begins_with_a_snapshot_of_the_height_or_of_later_needs_no_earlier_block() {
    for made in [FORK, FORK + 1, FORK + 2] {
        let dir = tempfile::tempdir().unwrap();
        let mut chain = chain_of(&data(&dir), made);
        let new = chain.begun(dir.path());
        chain.up_to(LAST);
        new.count_forks(&chain.rules).unwrap();
        assert_eq!(new.forks().missing, None, "made of {made}");
        assert_eq!(new.forks().tally.fixed()["v7"].height, FORK);
        assert_eq!(chain.follow(&new, chain.sent(made + 1)).unwrap(), chain.chain.tip());
        chain.is_as(&new);
    }
}

#[test]
fn a_database_that_is_closed_at_any_block_around_the_height_comes_to_the_same_root() {
    let whole = tempfile::tempdir().unwrap();
    let steady = chain_of(whole.path(), LAST);
    for closed in VOTED - 1..=FORK + 1 {
        let dir = tempfile::tempdir().unwrap();
        let mut chain = chain_of(dir.path(), closed);
        // A block that was executed, and not decided when the process ended.
        let lost = chain.execute(&[]);
        drop(chain.chain.store.prepare(&input(&lost)));
        chain.chain = chain.chain.reopened(dir.path());
        chain.chain.store.count_forks(&chain.rules).unwrap();
        chain.up_to(LAST);
        assert_eq!(chain.chain.tip(), steady.chain.tip(), "closed after block {closed}");
        steady.is_as(&chain.chain.store);
    }
}

#[test]
fn blocks_of_both_kinds_of_rules_are_executed_again_to_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let chain = chain_of(&data(&dir), LAST);
    let verified = verify(&chain.chain.store, dir.path(), &chain.replay());
    assert_eq!(verified.unwrap().tip, chain.chain.tip());
    // A certificate of the other version is none, on each side of the height.
    for (height, is_v7) in [(FORK - 1, true), (FORK, false), (FORK + 1, false)] {
        let copy = open(&dir.path().join(format!("copy-{height}")));
        let mut sent = chain.sent(1);
        let at = usize::try_from(height - 1).unwrap();
        let hash = chain.chain.store.snapshot().header(height).unwrap().unwrap().hash;
        sent[at].certificate = certificate(is_v7, &hash);
        assert_eq!(chain.follow(&copy, sent).unwrap_err().wrong_block(), Some(height));
        assert_eq!(copy.tip().unwrap().height, height - 1);
        // From the right peer it goes on.
        assert_eq!(chain.follow(&copy, chain.sent(height)).unwrap(), chain.chain.tip());
        chain.is_as(&copy);
    }
}
