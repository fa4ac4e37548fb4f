//! A peer that lies about blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use p2p::ports::{ChainSource, EncodedBlock, ReadError, Status};
use parking_lot::Mutex;
use testkit::net::Member;

use crate::fake_peer::FakePeer;

/// What it does when it is asked for blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lie {
    /// Says a block of which the last byte is another.
    Block,
    /// Sends a certificate with another signature.
    Certificate,
    /// Claims a height that nobody has, and never answers.
    Silence,
    /// Claims to have no block.
    Ignorance,
    /// Says the truth about the chain that it has learned, which may not be the others'.
    Nothing,
}

/// The liar. It is gone when this is dropped.
pub(crate) struct Liar {
    chain: Arc<Forger>,
    /// Dropped before the peer, which would wait for who waits for it.
    _gate: Sender<()>,
    pub(crate) peer: FakePeer,
}

impl Liar {
    /// Starts one that knows the true chain of `honest`.
    pub(crate) fn start(honest: &Member, lie: Lie) -> anyhow::Result<Self> {
        let (gate, closed) = channel();
        let (blocks, asked) = (Mutex::default(), AtomicUsize::new(0));
        let chain = Arc::new(Forger { lie, blocks, gate: Mutex::new(closed), asked });
        let peer = FakePeer::start(honest, chain.clone())?;
        peer.meet(honest)?;
        let blocks = peer.blocks();
        anyhow::ensure!(!blocks.is_empty(), "the liar has learned no block");
        *chain.blocks.lock() = blocks;
        Ok(Self { chain, _gate: gate, peer })
    }

    /// How often it was asked for blocks.
    pub(crate) fn asked(&self) -> usize {
        self.chain.asked.load(Ordering::SeqCst)
    }
}

struct Forger {
    lie: Lie,
    blocks: Mutex<Vec<EncodedBlock>>,
    /// Nothing ever comes through; it closes when the liar goes.
    gate: Mutex<Receiver<()>>,
    asked: AtomicUsize,
}

impl ChainSource for Forger {
    fn status(&self) -> Status {
        let there = u64::try_from(self.blocks.lock().len()).unwrap_or(0);
        let tip = match self.lie {
            Lie::Silence if there > 0 => 1 << 40,
            Lie::Ignorance if there > 0 => 0,
            Lie::Block | Lie::Certificate | Lie::Silence | Lie::Ignorance | Lie::Nothing => there,
        };
        Status { earliest: 1, tip }
    }

    fn blocks(&self, first: u64, count: u32, _: usize) -> Result<Vec<EncodedBlock>, ReadError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.lie == Lie::Silence {
            let _closed = self.gate.lock().recv_timeout(Duration::from_secs(60));
            return Ok(Vec::new());
        }
        if self.lie == Lie::Ignorance && !self.blocks.lock().is_empty() {
            return Ok(Vec::new());
        }
        let first = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut blocks: Vec<EncodedBlock> =
            self.blocks.lock().iter().skip(first).take(count).cloned().collect();
        for block in &mut blocks {
            let bytes = match self.lie {
                Lie::Certificate => &mut block.certificate,
                Lie::Block | Lie::Silence | Lie::Ignorance => &mut block.bytes,
                Lie::Nothing => break,
            };
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
            }
        }
        Ok(blocks)
    }
}
