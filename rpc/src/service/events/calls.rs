//! What blocks do to calls of agents and to agents, as subscribers are told of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::call::{Call, CallChange, CallStatus};
use types::{Address, CheckedTx, CommittedBlock, Event, Hash};

use super::item::{Item, Keys, events, item};
use crate::ports::{CallEntry, PortFault, Ports};
use crate::wire::{
    AgentEvent, AgentEventKind, AnswerView, BillView, CallEvent, CallEventKind, tx_object,
};

/// A call, and who was drawn for it up to a block.
struct Subject {
    call: Call,
    members: Arc<[Address]>,
}

/// The events of calls in a block, in order.
pub(super) fn call_items(
    committed: &CommittedBlock,
    ports: &Ports,
) -> Result<Vec<Item>, PortFault> {
    let height = committed.block.header.index;
    let mut subjects: BTreeMap<Hash, Option<Subject>> = BTreeMap::new();
    let mut items = Vec::new();
    for (position, event) in events(committed, ports)?.iter() {
        let Event::CallChanged { call_id, change } = event else { continue };
        if !subjects.contains_key(call_id) {
            let entry = ports.calls.call(call_id)?;
            subjects.insert(*call_id, entry.map(|entry| subject(entry, height)));
        }
        if let Some(Some(subject)) = subjects.get(call_id) {
            let tx = position.and_then(|position| tx_at(committed, position));
            items.push(call_item(subject, change, committed, tx));
        }
    }
    Ok(items)
}

fn tx_at(committed: &CommittedBlock, position: u32) -> Option<&CheckedTx> {
    committed.block.transactions.get(usize::try_from(position).ok()?)
}

/// Members of a round that was drawn later are left out, so that a replay tells what was told live.
fn subject(entry: CallEntry, height: u64) -> Subject {
    let CallEntry { call, members } = entry;
    let is_drawn = |round: u8| {
        call.rounds.get(usize::from(round)).is_some_and(|round| round.elected_in <= height)
    };
    let drawn = members.iter().filter(|(_, member)| is_drawn(member.round));
    let members = drawn.map(|(address, _)| *address).collect();
    Subject { call, members }
}

/// Only what never changes is taken from the record.
fn call_item(
    subject: &Subject,
    change: &CallChange,
    committed: &CommittedBlock,
    tx: Option<&CheckedTx>,
) -> Item {
    let (kind, status) = kind_of(change);
    let Subject { call, members } = subject;
    let keys = Keys {
        call_id: Some(call.call_id),
        agent_id: Some(call.agent_id),
        requester: Some(call.requester),
        members: Some(Arc::clone(members)),
        ..Keys::default()
    };
    let header = &committed.block.header;
    let event = CallEvent::new(kind, status, call);
    let event = CallEvent {
        block_index: header.index,
        timestamp: header.timestamp,
        hash: tx.map(|tx| tx.hash()),
        tx: tx.map(|tx| tx_object(tx)),
        ..with_details(event, change)
    };
    item(keys, &event)
}

/// What happened, and the status that it leads to.
const fn kind_of(change: &CallChange) -> (CallEventKind, CallStatus) {
    match change {
        CallChange::Requested { .. } => (CallEventKind::Created, CallStatus::Electing),
        CallChange::Elected { .. } => (CallEventKind::Elected, CallStatus::Committing),
        CallChange::Unassigned { .. } => (CallEventKind::Unassigned, CallStatus::Unassigned),
        CallChange::Committed { .. } => (CallEventKind::Committed, CallStatus::Committing),
        CallChange::Revealing { .. } => (CallEventKind::Revealing, CallStatus::Revealing),
        CallChange::Revealed { .. } => (CallEventKind::Revealed, CallStatus::Revealing),
        CallChange::Decided { status, .. } => (CallEventKind::Decided, *status),
        CallChange::Appealed { .. } => (CallEventKind::Appealed, CallStatus::Electing),
        CallChange::Settled { status, .. } => (CallEventKind::Settled, *status),
        CallChange::AppealFailed { status, .. } => (CallEventKind::AppealFailed, *status),
    }
}

fn with_details(event: CallEvent, change: &CallChange) -> CallEvent {
    match change {
        CallChange::Requested { escrow, .. } => CallEvent { max_fee: Some(*escrow), ..event },
        CallChange::Elected { round, members, until } => CallEvent {
            round: Some(*round),
            members: Some(members.clone()),
            until: Some(*until),
            ..event
        },
        CallChange::Unassigned { refund, .. } => CallEvent { returned: Some(*refund), ..event },
        CallChange::Committed { round, member } => {
            CallEvent { round: Some(*round), member: Some(*member), ..event }
        }
        CallChange::Revealing { until } => CallEvent { until: Some(*until), ..event },
        CallChange::Revealed { round, member, answer } => CallEvent {
            round: Some(*round),
            member: Some(*member),
            answer: Some(AnswerView::from(answer)),
            ..event
        },
        CallChange::Decided { round, agreeing, .. } => {
            CallEvent { round: Some(*round), agreeing: Some(*agreeing), ..event }
        }
        CallChange::Appealed { appellant, size, payment, deposit } => CallEvent {
            appellant: Some(*appellant),
            size: Some(*size),
            payment: Some(*payment),
            deposit: Some(*deposit),
            ..event
        },
        CallChange::Settled { bill, .. } => {
            CallEvent { agreeing: Some(bill.agreeing), bill: Some(BillView::from(*bill)), ..event }
        }
        CallChange::AppealFailed { appellant, returned, until, .. } => CallEvent {
            appellant: Some(*appellant),
            returned: Some(*returned),
            until: Some(*until),
            ..event
        },
    }
}

/// The events of agents in a block, in order. An agent is retired by its owner.
pub(super) fn agent_items(
    committed: &CommittedBlock,
    ports: &Ports,
) -> Result<Vec<Item>, PortFault> {
    let header = &committed.block.header;
    let mut items = Vec::new();
    for types::TxEvent { position, event } in &events(committed, ports)?.transactions {
        let Some(tx) = tx_at(committed, *position) else { continue };
        let (kind, agent_id, version) =
            if let Event::AgentRegistered { agent_id, version, .. } = event {
                (AgentEventKind::Registered, *agent_id, Some(version.clone()))
            } else if let Event::AgentRetired { agent_id } = event {
                (AgentEventKind::Retired, *agent_id, None)
            } else {
                continue;
            };
        let owner = tx.from();
        let keys = Keys { agent_id: Some(agent_id), owner: Some(owner), ..Keys::default() };
        let event = AgentEvent {
            event: kind,
            block_index: header.index,
            timestamp: header.timestamp,
            agent_id,
            owner,
            version,
            hash: tx.hash(),
        };
        items.push(item(keys, &event));
    }
    Ok(items)
}
