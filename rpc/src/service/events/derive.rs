//! From a committed block to the events that subscribers see. The only place that does it, for
//! replay and for live events alike.

use types::{
    Address, Amount, Body, CheckedTx, CommittedBlock, Event, Hash, Run, RunStatus, Settlement,
    TxLocation,
};

use super::calls::{agent_items, call_items};
use super::item::{Item, Keys, events, item};
use crate::ports::{IncludedTx, PortFault, Ports};
use crate::wire::{
    BlockEvent, BlockSummary, EventKind, FeeSplit, RunEvent, RunEventKind, TurnView, TxEvent,
    tx_object,
};

/// The events of one kind in a block, in order. `pool` events do not come from blocks.
pub(super) fn derive(
    kind: EventKind,
    committed: &CommittedBlock,
    ports: &Ports,
) -> Result<Vec<Item>, PortFault> {
    match kind {
        EventKind::Blocks => Ok(vec![block_item(committed)]),
        EventKind::Transactions => Ok(tx_items(committed)),
        EventKind::Pool => Ok(Vec::new()),
        EventKind::AgentRuns => run_items(committed, ports),
        EventKind::Chat => turn_items(committed, ports),
        EventKind::Calls => call_items(committed, ports),
        EventKind::Agents => agent_items(committed, ports),
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

fn turn_items(committed: &CommittedBlock, ports: &Ports) -> Result<Vec<Item>, PortFault> {
    let CommittedBlock { block, hash: block_hash, .. } = committed;
    let mut items = Vec::new();
    for types::TxEvent { position, event } in &events(committed, ports)?.transactions {
        let (position, Event::TurnAdded { conversation_id }) = (*position, event) else { continue };
        let tx = usize::try_from(position).ok().and_then(|at| block.transactions.get(at));
        let Some((tx, Body::ChatTurn(turn))) = tx.map(|tx| (tx, tx.body())) else { continue };
        let run = turn.agent_run_id.map(|id| ports.runs.run(&id)).transpose()?.flatten();
        let included = IncludedTx {
            tx: tx.clone(),
            location: TxLocation { height: block.header.index, position },
            block_hash: *block_hash,
            timestamp: block.header.timestamp,
        };
        let conversation_id = Some(*conversation_id);
        let keys = Keys { from: Some(tx.from()), conversation_id, ..Keys::default() };
        items.push(item(keys, &TurnView::new(&included, turn, run.as_ref())));
    }
    Ok(items)
}

fn run_items(committed: &CommittedBlock, ports: &Ports) -> Result<Vec<Item>, PortFault> {
    let mut items = Vec::new();
    for (position, event) in events(committed, ports)?.iter() {
        let Some(change) = Change::by(event) else { continue };
        let at = position.and_then(|position| usize::try_from(position).ok());
        let tx = at.and_then(|at| committed.block.transactions.get(at));
        if let Some(run) = ports.runs.run(&change.agent_run_id)? {
            items.push(change.item(&run, committed, tx));
        }
    }
    Ok(items)
}

/// Why a run waits for a miner again.
const fn why_pending_again(event: &Event) -> RunEventKind {
    if matches!(event, Event::RunGivenBack { .. }) {
        RunEventKind::GivenBack
    } else {
        RunEventKind::Expired
    }
}

/// What happened to a run.
struct Change {
    event: RunEventKind,
    agent_run_id: Hash,
    status: RunStatus,
    miner: Option<Address>,
    step: Option<(u64, u64)>,
    settlement: Option<Settlement>,
    escrow: Option<Amount>,
}

impl Change {
    const fn new(
        event: RunEventKind,
        agent_run_id: Hash,
        status: RunStatus,
        miner: Option<Address>,
    ) -> Self {
        Self { event, agent_run_id, status, miner, step: None, settlement: None, escrow: None }
    }

    fn by(event: &Event) -> Option<Self> {
        let agent_run_id = event.agent_run_id()?;
        let change = |kind, status, miner| Self::new(kind, agent_run_id, status, miner);
        Some(match event {
            Event::RunRequested { escrow, .. } => Self {
                escrow: Some(*escrow),
                ..change(RunEventKind::Created, RunStatus::Pending, None)
            },
            Event::RunClaimed { miner, .. } => {
                change(RunEventKind::Claimed, RunStatus::Claimed, Some(*miner))
            }
            Event::RunStepped { miner, step_index, output_tokens, .. } => Self {
                step: Some((*step_index, *output_tokens)),
                ..change(RunEventKind::Step, RunStatus::Running, Some(*miner))
            },
            Event::RunFinished { miner, status, settlement, .. } => Self {
                settlement: Some(*settlement),
                ..change(RunEventKind::Finished, *status, Some(*miner))
            },
            Event::RewardPaid { miner, status, amount, .. } => Self {
                settlement: Some(Settlement { miner_reward: *amount, ..Settlement::NOTHING }),
                ..change(RunEventKind::Paid, *status, Some(*miner))
            },
            Event::RewardRefused { miner, status, .. } => {
                change(RunEventKind::Refused, *status, Some(*miner))
            }
            Event::RunHeld { miner, status, settlement, .. } => Self {
                settlement: Some(*settlement),
                ..change(RunEventKind::Finished, *status, Some(*miner))
            },
            Event::RunCancelled { .. } => {
                change(RunEventKind::Cancelled, RunStatus::Cancelled, None)
            }
            Event::RunReopened { miner, .. } | Event::RunGivenBack { miner, .. } => {
                change(why_pending_again(event), RunStatus::Pending, Some(*miner))
            }
            Event::RunTimedOut { miner, settlement, .. } => Self {
                settlement: Some(*settlement),
                ..change(RunEventKind::Expired, RunStatus::Timeout, *miner)
            },
            Event::Transferred { .. }
            | Event::TurnAdded { .. }
            | Event::MinerRegistered { .. }
            | Event::BlobAnnounced { .. }
            | Event::BlobChunkStored { .. }
            | Event::BlobFinalized { .. }
            | Event::BlobDropped { .. }
            | Event::ValidatorVoted { .. }
            | Event::ValidatorChanged { .. }
            | Event::ValidatorSetActivated { .. }
            | Event::RewardMinted { .. }
            | Event::ForkVoted { .. }
            | Event::ForkFixed { .. }
            | Event::ParamVoted { .. }
            | Event::ParamFixed { .. }
            | Event::FeesCharged { .. }
            | Event::BondAdded { .. }
            | Event::UnbondingBegun { .. }
            | Event::UnbondingPaid { .. }
            | Event::BondUnlocked { .. }
            | Event::EvidenceTaken { .. }
            | Event::OfferSet { .. }
            | Event::CallBondLocked { .. }
            | Event::CallBondUnlocked { .. }
            | Event::AgentRegistered { .. }
            | Event::AgentRetired { .. }
            | Event::CallChanged { .. } => return None,
        })
    }

    /// Only what never changes is taken from the record, so that a replay tells what was told
    /// live.
    fn item(self, run: &Run, committed: &CommittedBlock, tx: Option<&CheckedTx>) -> Item {
        let Self { event, agent_run_id, status, miner, step, settlement, escrow } = self;
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
            max_fee: escrow,
            step_index: step.map(|(index, _)| index),
            output_tokens: step.map(|(_, tokens)| tokens),
            fees: settlement.map(FeeSplit::from),
        };
        item(keys, &event)
    }
}
