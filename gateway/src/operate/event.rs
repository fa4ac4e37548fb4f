//! What happens at a gateway, and who counts it.

use std::fmt::Debug;

/// Over what somebody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Chat completions.
    Chat,
    /// Calls of agents over HTTP.
    Agents,
    /// Tools over HTTP.
    Mcp,
    /// Tools over standard input and output.
    Stdio,
}

impl Interface {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Agents => "agents",
            Self::Mcp => "mcp",
            Self::Stdio => "stdio",
        }
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody who asked waits no longer.
    Asked {
        /// Over what.
        interface: Interface,
        /// `answered`, `running`, `hung_up`, or the code of the fault that was told.
        outcome: &'static str,
    },
    /// A request was not taken in because of what its key, or the wallet, may spend.
    Refused {
        /// Which limit it was.
        limit: &'static str,
    },
    /// A miner took a run, or a committee a call, for the first time.
    Claimed {
        /// How long after its request came.
        after_ms: u64,
    },
    /// A request has ended.
    Ended {
        /// `paid`, or why nobody was paid.
        outcome: &'static str,
        /// What it cost, micro-OMBRA.
        micro: u64,
        /// How long after it came.
        after_ms: u64,
        /// How long after a miner took it; none if that was not seen.
        answer_ms: Option<u64>,
    },
}

/// Who counts what happens.
pub trait Counters: Debug + Send + Sync {
    /// Counts it.
    fn count(&self, event: Event);
}

/// Nobody counts.
#[derive(Clone, Copy, Debug)]
pub struct Uncounted;

impl Counters for Uncounted {
    fn count(&self, _event: Event) {}
}
