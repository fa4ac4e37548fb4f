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

    /// Compares the block of the database with the trusted one, if both are there.
    ///
    /// # Errors
    /// [`NodeFault`] if it is another one, or cannot be read.
    pub(crate) fn check_chain(chain: &NodeChain, settings: &Sync) -> Result<(), NodeFault> {
        let Some(trusted) = Self::of(settings) else { return Ok(()) };
        match chain.store().snapshot().header(trusted.height)? {
            Some(header) => Ok(trusted.check(trusted.height, &header.hash)?),
            None => Ok(()),
        }
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
            trusted: TrustedBlock::of(settings),
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
    use super::*;
    use crate::config::Trusted;

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

    #[test]
    fn nothing_set_is_nothing_trusted() {
        let mut settings = Sync::default();
        assert_eq!(None, TrustedBlock::of(&settings));
        settings.trusted = Trusted { height: 5, hash: HASH.to_string() };
        assert_eq!(Some(TrustedBlock { height: 5, hash: HASH }), TrustedBlock::of(&settings));
    }
}
