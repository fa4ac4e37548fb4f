//! What a node relies on that has to believe others: one that begins, and one that was away for so
//! long that the validators it knows may have sold their keys.
//!
//! A certificate proves that the keys of a height have signed a block, not when they did. Keys that
//! are worth nothing any more can sign another history from where they were good. Two things stand
//! against that: a block that the operator has from somebody whom they trust (`sync.trusted`), which
//! no chain may contradict, and several peers, of which two have to have the same blocks.

use std::sync::OnceLock;
use std::time::Duration;

use types::{Address, Hash, Keypair};

use crate::chain::NodeChain;
use crate::clock::now_ms;
use crate::config::Sync;
use crate::fault::{NodeFault, OtherChain};

/// So many of the named peers have to have the same block.
pub(crate) const VOICES: usize = 2;

/// A block of the chain that the operator wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TrustedBlock {
    pub(crate) height: u64,
    pub(crate) hash: Hash,
}

impl TrustedBlock {
    /// Reads the setting, which has been checked; none if nothing is set.
    pub(crate) fn of(settings: &Sync) -> Option<Self> {
        let height = settings.trusted.height;
        let hash = Hash::parse(&settings.trusted.hash).ok()?;
        (height > 0).then_some(Self { height, hash })
    }

    /// Compares the block of the database with the trusted one, if both are there. A database that began
    /// with a later snapshot does not have it, which is said.
    ///
    /// # Errors
    /// [`NodeFault`] if it is another one, or cannot be read.
    pub(crate) fn check_chain(chain: &NodeChain, settings: &Sync) -> Result<(), NodeFault> {
        let Some(trusted) = Self::of(settings) else { return Ok(()) };
        let earliest = chain.store().earliest();
        if !trusted.is_at_or_after(earliest) {
            tracing::warn!(
                trusted = trusted.height,
                earliest,
                "`sync.trusted` has no effect: its block is below the first one in this database, which \
                 began with a snapshot, so that the two cannot be compared; set it to a newer block, from \
                 `ombra query trusted`"
            );
            return Ok(());
        }
        match chain.store().snapshot().header(trusted.height)? {
            Some(header) => Ok(trusted.check(trusted.height, &header.hash)?),
            None => Ok(()),
        }
    }

    /// Whether a database whose first block is `earliest` has the header of this height, or will have it. The
    /// header before the first block is there, too.
    const fn is_at_or_after(&self, earliest: u64) -> bool {
        self.height.saturating_add(1) >= earliest
    }

    /// Compares a decided block with the trusted one.
    ///
    /// # Errors
    /// [`OtherChain`] if it stands in its place.
    pub(crate) fn check(&self, height: u64, found: &Hash) -> Result<(), OtherChain> {
        if height != self.height || *found == self.hash {
            return Ok(());
        }
        Err(OtherChain { height, found: *found, expected: self.hash })
    }
}

/// Compares decided blocks with the trusted one, and remembers a wrong one.
#[derive(Debug, Default)]
pub(crate) struct TrustCheck {
    trusted: Option<TrustedBlock>,
    refused: OnceLock<OtherChain>,
}

impl TrustCheck {
    pub(crate) const fn new(trusted: Option<TrustedBlock>) -> Self {
        Self { trusted, refused: OnceLock::new() }
    }

    /// [`TrustedBlock::check`] of a block that the validators have decided.
    pub(crate) fn check(&self, height: u64, found: &Hash) -> Result<(), OtherChain> {
        let Some(trusted) = &self.trusted else { return Ok(()) };
        trusted.check(height, found).inspect_err(|error| {
            let _is_first = self.refused.set(*error);
        })
    }

    /// The height of the trusted block.
    pub(crate) fn height(&self) -> Option<u64> {
        self.trusted.map(|trusted| trusted.height)
    }

    /// The chain that was refused.
    pub(crate) fn other_chain(&self) -> Option<OtherChain> {
        self.refused.get().copied()
    }
}

/// How a node starts: whether it may rely on what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// It was there not long ago.
    Known,
    /// It has no block, or none that is younger than `sync.trust_period_ms`.
    Blind,
}

/// What a node that catches up relies on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Trust {
    pub(crate) start: Start,
    pub(crate) trusted: Option<TrustedBlock>,
    /// For how long keys are worth something.
    pub(crate) period: Duration,
    /// The node's own vote decides blocks, so that nobody has one which it did not make.
    pub(crate) decides_alone: bool,
    /// The node's own validator.
    pub(crate) own: Option<Address>,
}

impl Trust {
    /// What a node relies on that begins with this chain.
    pub(crate) fn of(chain: &NodeChain, settings: &Sync, validator: Option<&Keypair>) -> Self {
        let (tip, set) = (chain.tip(), chain.validators().next);
        let period = Duration::from_millis(settings.trust_period_ms);
        let address = validator.map(Keypair::address);
        let own = address.and_then(|address| set.by_address(&address));
        Self {
            start: Start::of(tip.height, tip.timestamp, now_ms(), period),
            trusted: TrustedBlock::of(settings)
                .filter(|trusted| trusted.is_at_or_after(chain.store().earliest())),
            period,
            decides_alone: own.is_some_and(|own| set.is_quorum(own.power)),
            own: address,
        }
    }

    /// How many of so many named peers have to have a block before it is taken; 0 is nobody but who
    /// sends it.
    pub(crate) fn voices(&self, named: usize) -> usize {
        match self.start {
            Start::Blind if !self.decides_alone => VOICES.min(named),
            Start::Blind | Start::Known => 0,
        }
    }

    /// Says once what a node relies on that has to believe others.
    pub(crate) fn tell(&self) {
        let Self { start, trusted, decides_alone, period: _, own: _ } = self;
        match (start, trusted) {
            (Start::Blind, None) if !decides_alone => tracing::warn!(
                "no block is trusted (`sync.trusted`): this node relies on the keys of genesis alone. It takes blocks that {VOICES} of its named peers have; better, give it the newest block of a node that you trust, from `ombra query trusted`"
            ),
            (Start::Blind, Some(TrustedBlock { height, hash })) if !decides_alone => {
                tracing::info!(
                    height,
                    %hash,
                    "blocks are taken when {VOICES} of the named peers have them and they lead to the trusted one"
                );
            }
            (Start::Blind | Start::Known, _) => {}
        }
    }
}

impl Start {
    /// Judges by the height and the timestamp of the tip.
    pub(crate) fn of(height: u64, timestamp: u64, now_ms: u64, period: Duration) -> Self {
        if height == 0 { Self::Blind } else { Self::by_age(timestamp, now_ms, period) }
    }

    /// Judges by a timestamp alone: that of a block, or of genesis.
    pub(crate) const fn by_age(timestamp: u64, now_ms: u64, period: Duration) -> Self {
        let age = Duration::from_millis(now_ms.saturating_sub(timestamp));
        if age.as_millis() > period.as_millis() { Self::Blind } else { Self::Known }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use consensus::{Certificate, CommitSignature};
    use genesis::Genesis;
    use state::Forks;
    use state::block::BlockBuilder;
    use store::snapshots::{Intake, Offer, SnapshotStore, import};
    use store::{Options, Store};
    use tempfile::TempDir;
    use types::sign_bytes::{VoteFields, VoteKind};

    use super::*;
    use crate::chain_spec::ChainSpec;
    use crate::config::Trusted;
    use crate::replay::ChainReplay;

    const HASH: Hash = Hash::new([7; 32]);
    const OTHER: Hash = Hash::new([8; 32]);

    #[test]
    fn only_another_block_at_the_trusted_height_is_another_chain() {
        let trusted = TrustedBlock { height: 10, hash: HASH };
        assert_eq!(Ok(()), trusted.check(9, &OTHER));
        assert_eq!(Ok(()), trusted.check(10, &HASH));
        assert_eq!(Ok(()), trusted.check(11, &OTHER));
        let error = OtherChain { height: 10, found: OTHER, expected: HASH };
        assert_eq!(Err(error), trusted.check(10, &OTHER));
        let checks = TrustCheck::new(Some(trusted));
        assert_eq!(None, checks.other_chain());
        assert_eq!(Err(error), checks.check(10, &OTHER));
        assert_eq!(Some(error), checks.other_chain());
        assert_eq!(Ok(()), TrustCheck::default().check(10, &OTHER));
    }

    #[test]
    fn a_node_is_blind_without_blocks_and_after_the_trust_period() {
        let period = Duration::from_secs(10);
        assert_eq!(Start::Blind, Start::of(0, 100_000, 100_000, period));
        assert_eq!(Start::Known, Start::of(1, 100_000, 110_000, period));
        assert_eq!(Start::Blind, Start::of(1, 100_000, 110_001, period));
        assert_eq!(Start::Known, Start::of(1, 100_000, 90_000, period), "the clock was set back");
    }

    #[test]
    fn two_of_the_named_peers_speak_and_one_is_enough_where_there_is_no_other() {
        let trust = |start, decides_alone| {
            let (trusted, own, period) = (None, None, Duration::from_secs(10));
            Trust { start, trusted, decides_alone, own, period }
        };
        let voices = |trust: Trust| [0, 1, 2, 3, 9].map(|named| trust.voices(named));
        assert_eq!([0, 1, 2, 2, 2], voices(trust(Start::Blind, false)));
        assert_eq!([0; 5], voices(trust(Start::Blind, true)));
        assert_eq!([0; 5], voices(trust(Start::Known, false)));
    }

    /// The settings that trust a block.
    fn trusting(height: u64, hash: Hash) -> Sync {
        let trusted = Trusted { height, hash: hash.to_string() };
        Sync { trusted, ..Sync::default() }
    }

    /// Commits a block without transactions, which the only validator has signed.
    fn block(chain: &NodeChain, validator: &Keypair) {
        let (store, rules) = (chain.store(), Arc::clone(&chain.spec().rules));
        let parent = store.parent().unwrap();
        let time = parent.timestamp.saturating_add(1_000);
        let builder = BlockBuilder::new(rules, store.latest(), parent, validator, time);
        let executed = builder.unwrap().finish().unwrap();
        let (height, hash) = (executed.block.header.index, executed.block.hash());
        let (kind, address) = (VoteKind::Precommit, validator.address());
        let vote = VoteFields { kind, height, round: 0, value: Some(hash), validator: address };
        let signature = validator.sign(&chain.spec().domain_now().vote(&vote));
        let signatures = vec![CommitSignature { address, signature }];
        let certificate = Certificate { height, round: 0, block_hash: hash, signatures };
        chain.commit(hash, &executed, &certificate.encode()).unwrap();
    }

    /// A chain of which the database begins with the state after block 2, and has no block yet.
    fn begun_with_a_snapshot() -> (TempDir, NodeChain) {
        let folder = tempfile::tempdir().unwrap();
        let validator = Keypair::from_seed(&[1; 32]);
        let first = validator.public_key();
        let genesis = Genesis::dev("test", 1, first, Vec::new(), &[], Forks::default()).unwrap();
        let open = |name: &str| {
            let store = Store::open(&folder.path().join(name), Options::default()).unwrap();
            NodeChain::open(store, ChainSpec::of(&genesis).unwrap(), &genesis.state()).unwrap()
        };
        let chain = open("other");
        block(&chain, &validator);
        block(&chain, &validator);
        let store = chain.store();
        let offered = SnapshotStore::open(&folder.path().join("snapshots"), 1, store).unwrap();
        offered.make(store, |_| (), &mut |_| true).unwrap();
        block(&chain, &validator);
        offered.settle(store).unwrap();
        let piece = |hash: &Hash| offered.piece(hash, 0, usize::MAX).unwrap().unwrap();
        let offer = Offer::decode(&piece(&offered.offers()[0].hash)).unwrap();
        let replay = ChainReplay::new(&genesis).unwrap();
        let verified = offer.verify(&replay.replay()).unwrap();
        let intake = Intake::open(&folder.path().join("intake"), &verified.offer.manifest).unwrap();
        for want in intake.missing() {
            intake.keep(&want, &piece(&want.hash)).unwrap();
        }
        let to = folder.path().join("new");
        let place = (to.as_path(), Options::default());
        import(&intake, &verified, &replay.replay(), place, &mut |_, _| true).unwrap();
        let chain = open("new");
        (folder, chain)
    }

    #[test]
    fn a_trusted_block_below_the_first_one_of_the_database_is_not_compared_and_stops_nothing() {
        let (_folder, chain) = begun_with_a_snapshot();
        assert_eq!((3, 2), (chain.store().earliest(), chain.tip().height));
        let relied_on = |settings: &Sync| Trust::of(&chain, settings, None).trusted;
        let below = trusting(1, OTHER);
        TrustedBlock::check_chain(&chain, &below).unwrap();
        assert_eq!(None, relied_on(&below));
        // The header of the snapshot's height is there; later blocks are yet to come.
        let tip = chain.tip().hash;
        for settings in [trusting(2, tip), trusting(3, OTHER)] {
            TrustedBlock::check_chain(&chain, &settings).unwrap();
            assert_eq!(TrustedBlock::of(&settings), relied_on(&settings));
        }
        let refused = TrustedBlock::check_chain(&chain, &trusting(2, OTHER)).unwrap_err();
        let expected = OtherChain { height: 2, found: tip, expected: OTHER };
        assert!(
            matches!(&refused, NodeFault::OtherChain(found) if *found == expected),
            "{refused}"
        );
    }

    #[test]
    fn nothing_set_is_nothing_trusted() {
        let mut settings = Sync::default();
        assert_eq!(None, TrustedBlock::of(&settings));
        settings.trusted = Trusted { height: 5, hash: HASH.to_string() };
        assert_eq!(Some(TrustedBlock { height: 5, hash: HASH }), TrustedBlock::of(&settings));
    }
}
