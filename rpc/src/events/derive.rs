//! From a committed block to the events that subscribers see. The only place that does it, for
//! replay and for live events alike.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use types::{Address, Body, CheckedTx, Hash, Run, RunStatus, Sweep, TxLocation};

use crate::ports::{CommittedBlock, Fault, IncludedTx, Ports};
use crate::wire::{
    BlockEvent, BlockSummary, EventKind, FeeSplit, RunEvent, RunEventKind, TurnView, TxEvent,
    tx_object,
};

/// What filters look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) from: Option<Address>,
    pub(crate) to: Option<Address>,
    pub(crate) tx_type: Option<&'static str>,
    pub(crate) agent_run_id: Option<Hash>,
    pub(crate) submitter: Option<Address>,
    pub(crate) miner: Option<Address>,
    pub(crate) status: Option<RunStatus>,
    pub(crate) conversation_id: Option<Hash>,
}

impl Keys {
    /// The keys of a transaction.
    pub(crate) fn of(tx: &CheckedTx) -> Self {
        #[expect(clippy::wildcard_enum_match_arm, reason = "only a transfer has a receiver")]
        let to = match tx.body() {
            Body::Transfer(transfer) => Some(transfer.to),
            _ => None,
        };
        Self { from: Some(tx.from()), to, tx_type: Some(tx.body().type_name()), ..Self::default() }
    }
}

/// An event, written once for all subscribers.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) keys: Keys,
    pub(crate) json: Box<RawValue>,
}

fn item(keys: Keys, event: &impl Serialize) -> Item {
    let json = to_raw_value(event).expect("events are plain data with text keys");
    Item { keys, json }
}

/// The events of one kind in a block, in order. `pool` events do not come from blocks.
pub(crate) fn derive(
    kind: EventKind,
    committed: &CommittedBlock,
    ports: &Ports,
) -> Result<Vec<Item>, Fault> {
    match kind {
        EventKind::Blocks => Ok(vec![block_item(committed)]),
        EventKind::Transactions => Ok(tx_items(committed)),
        EventKind::Pool => Ok(Vec::new()),
        EventKind::AgentRuns => run_items(committed, ports),
        EventKind::Chat => turn_items(committed, ports),
    }
}

fn block_item(committed: &CommittedBlock) -> Item {
    let header = &committed.block.header;
    let event = BlockEvent {
        block_index: header.index,
        previous_hash: header.previous_hash,
        block: BlockSummary::new(committed.hash, header),
    };
    item(Keys::default(), &event)
}

fn tx_items(committed: &CommittedBlock) -> Vec<Item> {
    let header = &committed.block.header;
    let event = |(position, tx): (u32, &CheckedTx)| TxEvent {
        block_index: header.index,
        position,
        timestamp: header.timestamp,
        hash: tx.hash(),
        kind: tx.body().type_name(),
        from: tx.from(),
        tx: tx_object(tx),
    };
    let txs = (0..).zip(&committed.block.transactions);
    txs.map(|(position, tx)| item(Keys::of(tx), &event((position, tx)))).collect()
}

fn turn_items(committed: &CommittedBlock, ports: &Ports) -> Result<Vec<Item>, Fault> {
    let header = &committed.block.header;
    let mut items = Vec::new();
    for (position, tx) in (0..).zip(&committed.block.transactions) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "only one kind is a turn")]
        let turn = match tx.body() {
            Body::ChatTurn(turn) => turn,
            _ => continue,
        };
        let run = turn.agent_run_id.map(|id| ports.runs.run(&id)).transpose()?.flatten();
        let included = IncludedTx {
            tx: tx.clone(),
            location: TxLocation { height: header.index, position },
            block_hash: committed.hash,
            timestamp: header.timestamp,
        };
        let conversation_id = Some(turn.conversation_id);
        let keys = Keys { from: Some(tx.from()), conversation_id, ..Keys::default() };
        items.push(item(keys, &TurnView::new(&included, turn, run.as_ref())));
    }
    Ok(items)
}

fn run_items(committed: &CommittedBlock, ports: &Ports) -> Result<Vec<Item>, Fault> {
    let mut items = Vec::new();
    for tx in &committed.block.transactions {
        let Some(change) = Change::by_tx(tx) else { continue };
        if let Some(run) = ports.runs.run(&change.agent_run_id)? {
            items.push(change.item(&run, committed, Some(tx)));
        }
    }
    for sweep in &committed.sweeps {
        let Some(agent_run_id) = swept_run(sweep) else { continue };
        if let Some(run) = ports.runs.run(&agent_run_id)?
            && let Some(change) = Change::by_sweep(sweep, &run)
        {
            items.push(change.item(&run, committed, None));
        }
    }
    Ok(items)
}

/// What a transaction or a sweep did to a run.
struct Change {
    event: RunEventKind,
    agent_run_id: Hash,
    status: RunStatus,
    miner: Option<Address>,
    step: Option<(u64, u64)>,
    fees: Option<FeeSplit>,
    has_escrow: bool,
}

const fn swept_run(sweep: &Sweep) -> Option<Hash> {
    match sweep {
        Sweep::Reopened { agent_run_id, .. } | Sweep::TimedOut { agent_run_id, .. } => {
            Some(*agent_run_id)
        }
        Sweep::BlobDropped { .. } | Sweep::ValidatorChanged { .. } => None,
    }
}

impl Change {
    fn by_tx(tx: &CheckedTx) -> Option<Self> {
        let miner = Some(tx.from());
        let change = |event, status| Self {
            event,
            agent_run_id: tx.body().agent_run_id().unwrap_or_default(),
            status,
            miner: None,
            step: None,
            fees: None,
            has_escrow: false,
        };
        match tx.body() {
            Body::AgentRequest(_) => {
                Some(Self { has_escrow: true, ..change(RunEventKind::Created, RunStatus::Pending) })
            }
            Body::AgentClaim(_) => {
                Some(Self { miner, ..change(RunEventKind::Claimed, RunStatus::Claimed) })
            }
            Body::AgentStep(step) => Some(Self {
                miner,
                step: Some((step.step_index, step.output_tokens)),
                ..change(RunEventKind::Step, RunStatus::Running)
            }),
            Body::AgentFinish(finish) => Some(Self {
                miner,
                fees: Some(FeeSplit {
                    miner_reward: finish.miner_reward,
                    user_refund: finish.user_refund,
                    network_fee: finish.network_fee,
                }),
                ..change(RunEventKind::Finished, RunStatus::parse(&finish.status)?)
            }),
            Body::AgentCancel(_) => Some(change(RunEventKind::Cancelled, RunStatus::Cancelled)),
            Body::ChatTurn(_)
            | Body::Transfer(_)
            | Body::MinerRegister(_)
            | Body::BlobInit(_)
            | Body::BlobChunk(_)
            | Body::BlobFinalize(_)
            | Body::ValidatorVote(_) => None,
        }
    }

    fn by_sweep(sweep: &Sweep, run: &Run) -> Option<Self> {
        let (agent_run_id, status, miner, fees) = match sweep {
            Sweep::Reopened { agent_run_id, miner } => {
                (*agent_run_id, RunStatus::Pending, Some(*miner), None)
            }
            Sweep::TimedOut { agent_run_id, settlement } => {
                (*agent_run_id, RunStatus::Timeout, run.miner, Some(FeeSplit::from(*settlement)))
            }
            Sweep::BlobDropped { .. } | Sweep::ValidatorChanged { .. } => return None,
        };
        let event = RunEventKind::Expired;
        Some(Self { event, agent_run_id, status, miner, step: None, fees, has_escrow: false })
    }

    /// Only what never changes is taken from the record, so that a replay tells what was told
    /// live.
    fn item(self, run: &Run, committed: &CommittedBlock, tx: Option<&CheckedTx>) -> Item {
        let Self { event, agent_run_id, status, miner, step, fees, has_escrow } = self;
        let keys = Keys {
            agent_run_id: Some(agent_run_id),
            submitter: Some(run.submitter),
            miner,
            status: Some(status),
            conversation_id: Some(run.conversation_id),
            ..Keys::default()
        };
        let event = RunEvent {
            event,
            block_index: committed.block.header.index,
            timestamp: committed.block.header.timestamp,
            agent_run_id,
            conversation_id: run.conversation_id,
            submitter: run.submitter,
            status: status.as_str(),
            miner_address: miner,
            hash: tx.map(|tx| tx.hash()),
            tx: tx.map(|tx| tx_object(tx)),
            max_fee: has_escrow.then_some(run.max_fee),
            step_index: step.map(|(index, _)| index),
            output_tokens: step.map(|(_, tokens)| tokens),
            fees,
        };
        item(keys, &event)
    }
}
