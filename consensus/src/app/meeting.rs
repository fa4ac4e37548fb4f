//! Who is there when a validator starts.
//!
//! What the engine publishes before another node has subscribed reaches that node never: the first
//! proposal of a validator that starts would be lost, and the others would wait for it in vain until their
//! timeouts are over. While the engine's question for the first height waits, it keeps the first 1,024
//! messages that others send, and value sync brings what was decided meanwhile. So the first height starts
//! when the other validators are connected: all of them, or a quorum and one second later.

use std::collections::BTreeSet;
use std::time::Duration;

use malachitebft_app_channel::NetworkRequest;
use malachitebft_engine::network::NetworkStateDump;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use types::Address;

use crate::{Validator, ValidatorSet};

/// The longest that a validator of a larger set waits for a due block when it starts. Until its
/// first height starts, the engine keeps messages of others back, so nothing could wake it.
pub(super) const START_WAIT_MAX: Duration = Duration::from_secs(3);

/// How long a validator waits for the rest when a quorum is connected.
const REST_WAIT_MAX: Duration = Duration::from_secs(1);
/// How often the engine's peers are looked at.
const INTERVAL: Duration = Duration::from_millis(10);
/// What a subscription may need longer than the proof that the peer is a validator.
const SUBSCRIPTION: Duration = Duration::from_millis(50);

/// Waits until a validator can be heard by the others of its set.
pub(super) async fn meet(network: mpsc::Sender<NetworkRequest>, set: ValidatorSet, own: Address) {
    let is_met = |met: &Met, validator: &Validator| {
        validator.address == own || met.keys.contains(validator.public_key.as_bytes().as_slice())
    };
    let is_quorum = |met: &Met| {
        let met = set.validators().iter().filter(|it| is_met(met, it));
        set.is_quorum(met.map(|it| it.power).fold(0, u64::saturating_add))
    };
    let is_all = |met: &Met| set.validators().iter().all(|it| is_met(met, it));
    let others = set.validators().len().saturating_sub(1);
    let met = async {
        until(&network, |met| met.are_named_there || is_quorum(met)).await;
        // Who names fewer may know the others only by way of these.
        let is_everybody = |met: &Met| met.are_named_there && met.named >= others;
        let rest = until(&network, |met| is_everybody(met) || is_all(met));
        timeout(REST_WAIT_MAX, rest).await.is_ok()
    };
    if timeout(START_WAIT_MAX, met).await != Ok(true) {
        tracing::debug!("starts to vote although not all validators are connected");
    }
    sleep(SUBSCRIPTION).await;
}

/// The nodes that the engine is connected to.
struct Met {
    /// The keys with which they have proved to be validators. The engine loses proofs that come in the
    /// first milliseconds.
    keys: BTreeSet<Vec<u8>>,
    /// How many nodes are named in the settings.
    named: usize,
    /// Whether all of these are connected; false if none is named.
    are_named_there: bool,
}

impl From<NetworkStateDump> for Met {
    fn from(dump: NetworkStateDump) -> Self {
        let ids: Vec<String> = dump.peers.keys().map(ToString::to_string).collect();
        let named: Vec<String> =
            dump.persistent_peer_addrs.iter().map(ToString::to_string).collect();
        let is_there = |address: &String| ids.iter().any(|id| address.ends_with(id.as_str()));
        Self {
            are_named_there: !named.is_empty() && named.iter().all(is_there),
            named: named.len(),
            keys: dump.peers.into_values().filter_map(|it| it.consensus_public_key).collect(),
        }
    }
}

/// Waits until those who are connected are enough.
async fn until(network: &mpsc::Sender<NetworkRequest>, is_enough: impl Fn(&Met) -> bool) {
    loop {
        // An engine that does not answer is stopping or has much to do; the caller's time is bounded.
        let met = NetworkRequest::dump_state(network).await.ok().flatten().map(Met::from);
        if met.is_some_and(|met| is_enough(&met)) {
            return;
        }
        sleep(INTERVAL).await;
    }
}
