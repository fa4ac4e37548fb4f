//! Which events a subscriber wants.

use types::{Address, Body, Hash, RunStatus};

use super::item::Keys;
use crate::error::RpcError;
use crate::ports::{Ports, Tip};
use crate::wire::{EventFilter, EventKind, parse_run_status};

/// What a subscriber asked for, checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Filter {
    pub(crate) kind: EventKind,
    pub(crate) from_block: Option<u64>,
    address: Option<Address>,
    tx_type: Option<&'static str>,
    agent_run_id: Option<Hash>,
    submitter: Option<Address>,
    miner: Option<Address>,
    status: Option<RunStatus>,
    conversation_id: Option<Hash>,
    call_id: Option<Hash>,
    agent_id: Option<Hash>,
    requester: Option<Address>,
    member: Option<Address>,
    owner: Option<Address>,
}

impl Filter {
    /// Refuses conditions that events of the kind cannot meet.
    pub(crate) fn new(kind: EventKind, filter: EventFilter) -> Result<Self, RpcError> {
        let given = [
            ("fromBlock", filter.from_block.is_some()),
            ("address", filter.address.is_some()),
            ("type", filter.kind.is_some()),
            ("agentRunId", filter.agent_run_id.is_some()),
            ("submitter", filter.submitter.is_some()),
            ("miner", filter.miner.is_some()),
            ("status", filter.status.is_some()),
            ("conversationId", filter.conversation_id.is_some()),
            ("callId", filter.call_id.is_some()),
            ("agentId", filter.agent_id.is_some()),
            ("requester", filter.requester.is_some()),
            ("member", filter.member.is_some()),
            ("owner", filter.owner.is_some()),
        ];
        let allowed = conditions(kind);
        if let Some((name, _)) = given.iter().find(|(name, set)| *set && !allowed.contains(name)) {
            let expected = match allowed {
                [] => "no filter for this kind".to_owned(),
                names => format!("for this kind only {}", names.join(", ")),
            };
            return Err(RpcError::invalid(format!("filter.{name}"), "given", expected));
        }
        Ok(Self {
            kind,
            from_block: filter.from_block,
            address: filter.address.map(|address| address.0),
            tx_type: filter.kind.as_deref().map(parse_type).transpose()?,
            agent_run_id: filter.agent_run_id.map(|id| id.0),
            submitter: filter.submitter.map(|address| address.0),
            miner: filter.miner.map(|address| address.0),
            status: filter.status.as_deref().map(parse_run_status).transpose()?,
            conversation_id: filter.conversation_id.map(|id| id.0),
            call_id: filter.call_id.map(|id| id.0),
            agent_id: filter.agent_id.map(|id| id.0),
            requester: filter.requester.map(|address| address.0),
            member: filter.member.map(|address| address.0),
            owner: filter.owner.map(|address| address.0),
        })
    }

    /// Refuses a replay of what the node does not have.
    pub(crate) fn require(&self, ports: &Ports) -> Result<(), RpcError> {
        self.from_block.map_or(Ok(()), |first| Self::require_from(self.kind, first, ports))
    }

    /// Refuses a replay of what has happened since a block that the node does not have.
    pub(crate) fn require_from(kind: EventKind, first: u64, ports: &Ports) -> Result<(), RpcError> {
        let Tip { earliest, events_from, .. } = ports.chain.tip();
        let is_made_of_events = match kind {
            EventKind::AgentRuns | EventKind::Chat | EventKind::Calls | EventKind::Agents => true,
            EventKind::Blocks | EventKind::Transactions | EventKind::Pool => false,
        };
        let first = first.max(1);
        if first < earliest {
            return Err(RpcError::History { earliest });
        }
        if is_made_of_events && first < events_from {
            return Err(RpcError::NoEvents { from: events_from });
        }
        Ok(())
    }

    /// Whether an event with these keys is wanted.
    pub(crate) fn wants(&self, keys: &Keys) -> bool {
        let address_fits = self
            .address
            .is_none_or(|address| keys.from == Some(address) || keys.to == Some(address));
        let type_fits = self.tx_type.is_none_or(|name| keys.tx_type == Some(name));
        address_fits
            && type_fits
            && fits(self.agent_run_id, keys.agent_run_id)
            && fits(self.submitter, keys.submitter)
            && fits(self.miner, keys.miner)
            && fits(self.status, keys.status)
            && fits(self.conversation_id, keys.conversation_id)
            && fits(self.call_id, keys.call_id)
            && fits(self.agent_id, keys.agent_id)
            && fits(self.requester, keys.requester)
            && fits(self.owner, keys.owner)
            && self.member.is_none_or(|member| {
                keys.members.as_ref().is_some_and(|members| members.contains(&member))
            })
    }
}

fn fits<T: PartialEq>(wanted: Option<T>, found: Option<T>) -> bool {
    wanted.is_none() || wanted == found
}

const fn conditions(kind: EventKind) -> &'static [&'static str] {
    match kind {
        EventKind::Blocks => &["fromBlock"],
        EventKind::Transactions => &["fromBlock", "address", "type"],
        EventKind::Pool => &["address", "type"],
        EventKind::AgentRuns => &["fromBlock", "agentRunId", "submitter", "miner", "status"],
        EventKind::Chat => &["fromBlock", "conversationId"],
        EventKind::Calls => &["fromBlock", "callId", "agentId", "requester", "member"],
        EventKind::Agents => &["fromBlock", "agentId", "owner"],
    }
}

fn parse_type(name: &str) -> Result<&'static str, RpcError> {
    Body::TYPES.iter().copied().find(|known| *known == name).ok_or_else(|| {
        let expected = format!("one of {}", Body::TYPES.join(", "));
        RpcError::invalid("filter.type", name, expected)
    })
}
