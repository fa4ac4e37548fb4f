//! What consensus did so far, as numbers.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::{Direction, Punctuality};

/// The label of a proposal that was judged untimely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Missed {
    /// Which way its timestamp misses.
    pub direction: Direction,
}

impl EncodeLabelValue for Direction {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(
            &match self {
                Self::Ahead => "ahead",
                Self::Behind => "behind",
            },
            encoder,
        )
    }
}

/// Numbers about this node's part in consensus. Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// The height that is being decided, or was decided last.
    pub height: Gauge,
    /// The round of that height.
    pub round: Gauge,
    /// Blocks committed since the start.
    pub commits: Counter,
    /// Proposals signed since the start.
    pub proposals: Counter,
    /// Votes signed since the start.
    pub votes: Counter,
    /// Times that the guard refused to sign. Anything but 0 needs an operator.
    pub refusals: Counter,
    /// Proposals of others that were judged invalid.
    pub invalid_proposals: Counter,
    /// Proposals of others that were judged untimely, by the direction in which they miss.
    pub untimely_proposals: Family<Missed, Counter>,
    /// Whether the blocks of others fit this machine's clock.
    pub punctuality: Punctuality,
    /// Bodies of proposals, or compact blocks of them, that arrived with all their parts.
    pub bodies: Counter,
    /// Compact blocks of which this node could not make the body, so that it asked for that.
    pub incomplete_compact_blocks: Counter,
    /// Bodies of own proposals that were sent whole because another node asked.
    pub bodies_resent: Counter,
    /// Pairs of contradicting messages of other validators that were seen.
    pub equivocations: Counter,
    /// Times that the network was started again because nobody heard this validator.
    pub network_restarts: Counter,
}

impl Counters {
    /// Registers all numbers, for Prometheus, as `consensus_…`.
    pub fn register(&self, registry: &mut Registry) {
        let Self {
            height,
            round,
            commits,
            proposals,
            votes,
            refusals,
            invalid_proposals,
            untimely_proposals,
            punctuality: _,
            bodies,
            incomplete_compact_blocks,
            bodies_resent,
            equivocations,
            network_restarts,
        } = self.clone();
        let registry = registry.sub_registry_with_prefix("consensus");
        registry.register("height", "Height that is being decided", height);
        registry.register("round", "Round of that height", round);
        registry.register("commits", "Blocks committed", commits);
        registry.register("proposals_signed", "Proposals signed", proposals);
        registry.register("votes_signed", "Votes signed", votes);
        registry.register("sign_refusals", "Times the guard refused to sign", refusals);
        registry.register("proposals_invalid", "Invalid proposals of others", invalid_proposals);
        for direction in [Direction::Ahead, Direction::Behind] {
            // There from the beginning, so that it can be watched.
            drop(untimely_proposals.get_or_create(&Missed { direction }));
        }
        let help = "Proposals of others whose timestamps did not fit their time of arrival";
        registry.register("proposals_untimely", help, untimely_proposals);
        registry.register("bodies", "Bodies or compact blocks of proposals received", bodies);
        let help = "Compact blocks of proposals that named transactions unknown here";
        registry.register("outlines_incomplete", help, incomplete_compact_blocks);
        let help = "Own proposals sent whole because another node asked";
        registry.register("bodies_resent", help, bodies_resent);
        registry.register("equivocations", "Contradicting messages of others", equivocations);
        let help = "Times the network was started again because no peer heard this validator";
        registry.register("network_restarts", help, network_restarts);
    }
}

/// The engine's own metrics in the Prometheus text format, those of every engine that this
/// process has started, the first one's first.
#[must_use]
pub fn engine_metrics() -> String {
    let mut text = String::new();
    malachitebft_app::metrics::export(&mut text);
    text
}
