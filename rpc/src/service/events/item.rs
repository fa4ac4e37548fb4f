//! One event as subscribers see it, and what their filters look at.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use types::{Address, BlockEvents, CheckedTx, CommittedBlock, Hash, RunStatus};

use crate::ports::{PortFault, Ports};

/// What filters look at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) from: Option<Address>,
    pub(crate) to: Option<Address>,
    pub(crate) tx_type: Option<&'static str>,
    pub(crate) agent_run_id: Option<Hash>,
    pub(crate) submitter: Option<Address>,
    pub(crate) miner: Option<Address>,
    pub(crate) status: Option<RunStatus>,
    pub(crate) conversation_id: Option<Hash>,
    pub(crate) call_id: Option<Hash>,
    pub(crate) agent_id: Option<Hash>,
    pub(crate) requester: Option<Address>,
    pub(crate) owner: Option<Address>,
    /// Who was drawn for a call until then.
    pub(crate) members: Option<Arc<[Address]>>,
}

impl Keys {
    /// The keys of a transaction.
    pub(crate) fn of(tx: &CheckedTx) -> Self {
        let (from, body) = (tx.from(), tx.body());
        let (to, tx_type) = (body.payee(from), Some(body.type_name()));
        Self { from: Some(from), to, tx_type, ..Self::default() }
    }
}

/// An event, written once for all subscribers.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) keys: Keys,
    pub(crate) json: Box<RawValue>,
}

pub(super) fn item(keys: Keys, event: &impl Serialize) -> Item {
    let json = to_raw_value(event).expect("events are plain data with text keys");
    Item { keys, json }
}

/// What the block did; refused where nobody wrote it down.
pub(super) fn events<'a>(
    committed: &'a CommittedBlock,
    ports: &Ports,
) -> Result<&'a BlockEvents, PortFault> {
    committed.events.as_ref().ok_or_else(|| PortFault::no_events(ports.chain.tip().events_from))
}
