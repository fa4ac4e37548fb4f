//! What the validators do, read when Prometheus asks.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use types::{Address, Keypair};

use super::gauge;
use crate::chain::NodeChain;

/// The voting power of the validators, their proposals and the turns that they missed. A follower
/// tells them, too: it notices if a validator is down.
pub(crate) struct ValidatorCollector {
    chain: Arc<NodeChain>,
    /// The address of this node's validator key; none for a follower.
    own: Option<Address>,
}

impl std::fmt::Debug for ValidatorCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValidatorCollector").field("own", &self.own).finish_non_exhaustive()
    }
}

impl ValidatorCollector {
    /// Registers the figures for a node that signs with `key`.
    pub(crate) fn register(chain: &Arc<NodeChain>, key: Option<&Keypair>, registry: &mut Registry) {
        let (chain, own) = (Arc::clone(chain), key.map(Keypair::address));
        registry.register_collector(Box::new(Self { chain, own }));
    }
}

impl Collector for ValidatorCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let set = self.chain.validators().next;
        let own = set.validators().iter().find(|member| Some(member.address) == self.own);
        let help = "Voting power of this node's validator key; 0 without such a key, or if no \
                    validator has it";
        let power = own.map_or(0, |member| member.power);
        gauge(&mut encoder, "validator_own_power", help, Some(power))?;

        let snapshot = self.chain.store().snapshot();
        let figures = set.validators().iter().filter_map(|member| {
            let stats = snapshot.validator_stats(&member.address).ok()?;
            Some((member.address.to_string(), member.power, stats))
        });
        let figures: Vec<_> = figures.collect();
        let (help, kind) = ("Voting power of a validator", MetricType::Gauge);
        let mut powers = encoder.encode_descriptor("validator_power", help, None, kind)?;
        for (address, power, _) in &figures {
            let power = ConstGauge::new(i64::try_from(*power).unwrap_or(i64::MAX));
            power.encode(powers.encode_family(&[("validator", address.as_str())])?)?;
        }
        let (help, kind) = ("Blocks that a validator proposed", MetricType::Counter);
        let mut proposed = encoder.encode_descriptor("validator_proposed", help, None, kind)?;
        for (address, _, stats) in &figures {
            let labels = [("validator", address.as_str())];
            ConstCounter::new(stats.proposed).encode(proposed.encode_family(&labels)?)?;
        }
        let help = "Rounds of a validator in which no block was decided";
        let mut missed = encoder.encode_descriptor("validator_missed", help, None, kind)?;
        for (address, _, stats) in &figures {
            let labels = [("validator", address.as_str())];
            ConstCounter::new(stats.missed).encode(missed.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
