//! What holds of calls: money, locks, members, assignments, and what each of them waits for.

use std::collections::BTreeMap;

use types::agent::ExecutorId;
use types::call::{Call, CallMember, CallStatus, members_digest};
use types::{Address, Amount, Hash, TxLocation};

use super::{Walk, count, pages};
use crate::error::StorageError;
use crate::market::callable;
use crate::market::calls;
use crate::table::Table;
use crate::tables::{
    Assignments, CallMembers, CallQueue, Calls, CallsByAgent, CallsByMember, CallsByRequester,
    CallsByStatus, SettledMembers,
};
use crate::view;

/// How many members work for an executor, by miner.
type Open = BTreeMap<(Address, ExecutorId), u32>;

impl Walk<'_> {
    /// Calls in order of their ids. Has to come before the money and the bonds are compared.
    pub(super) fn calls(&mut self) -> Result<(), StorageError> {
        let (mut open, mut queued, mut members) = (Open::new(), 0_u64, 0_u64);
        let mut all = Vec::new();
        pages::<Calls>(self.state, |id: Hash, call: Call| {
            if call.call_id == id {
                all.push(call);
            } else {
                all.push(Call { call_id: id, ..call });
            }
            Ok(())
        })?;
        for call in &all {
            self.listed(call)?;
            if call.is_settled() {
                self.settled(call)?;
                continue;
            }
            let of_call = calls::members(self.state, &call.call_id)?;
            members = members.saturating_add(u64::try_from(of_call.len()).unwrap_or(u64::MAX));
            self.unsettled(call, &of_call, &mut open)?;
            self.listed_for(call, &of_call)?;
            if call.status == CallStatus::Electing {
                queued = queued.saturating_add(1);
            }
        }
        let listed = u64::try_from(all.len()).unwrap_or(u64::MAX);
        let rows = [
            (CallsByStatus::ID.name, count::<CallsByStatus>(self.state)?, listed),
            (CallsByAgent::ID.name, count::<CallsByAgent>(self.state)?, listed),
            (CallsByRequester::ID.name, count::<CallsByRequester>(self.state)?, listed),
            (CallQueue::ID.name, count::<CallQueue>(self.state)?, queued),
            (CallMembers::ID.name, count::<CallMembers>(self.state)?, members),
        ];
        for (table, got, expected) in rows.into_iter().filter(|(_, got, expected)| got != expected)
        {
            self.index(table, format!("{got} rows, expected {expected}"));
        }
        self.assignments(&open)
    }

    /// Holds its escrow and the appellant's stakes, and waits for one thing.
    fn unsettled(
        &mut self,
        call: &Call,
        members: &[(Address, CallMember)],
        open: &mut Open,
    ) -> Result<(), StorageError> {
        let id = call.call_id;
        let stakes = call.appeal.map_or([Amount::ZERO; 2], |it| [it.payment, it.deposit]);
        for amount in [call.max_fee].into_iter().chain(stakes) {
            self.escrows = self.escrows.saturating_add(u128::from(amount.get()));
        }
        match (call.status, call.deadline) {
            (CallStatus::Electing, None) => self.queued(call)?,
            (CallStatus::Electing, Some(_)) | (_, None) => {
                self.index(Calls::ID.name, format!("{id} does not wait for one thing"));
            }
            (_, Some(deadline)) => self.deadline(&calls::deadline_key(deadline, &id))?,
        }
        let executors = callable::executors_of(self.state, call)?;
        for (number, round) in (0_u8..).zip(&call.rounds) {
            let of_round = || members.iter().filter(|(_, member)| member.round == number);
            let counted =
                |is: fn(&CallMember) -> bool| of_round().filter(|(_, member)| is(member)).count();
            let counts = [
                (round.members, counted(|_| true)),
                (round.committed, counted(|member| member.commitment.is_some())),
                (round.revealed, counted(|member| member.reveal.is_some())),
            ];
            if counts.iter().any(|(got, expected)| usize::from(*got) != *expected) {
                self.index(Calls::ID.name, format!("round {number} of {id} is counted wrongly"));
            }
            if round.decided_at.is_some() {
                continue;
            }
            for (miner, _) in of_round() {
                for executor in &executors {
                    let count = open.entry((*miner, *executor)).or_default();
                    *count = count.saturating_add(1);
                }
            }
        }
        for (_, member) in members {
            self.locked = self.locked.saturating_add(u128::from(member.lock.get()));
        }
        Ok(())
    }

    fn queued(&mut self, call: &Call) -> Result<(), StorageError> {
        let place = call.appeal.map_or(call.request, |appeal| appeal.tx);
        let key = (place.height, place.position);
        if view::get::<CallQueue>(self.state, &key)? != Some(call.call_id) {
            self.index(CallQueue::ID.name, format!("{} is missing", call.call_id));
        }
        Ok(())
    }

    /// Holds nothing, and paid out what was paid in.
    fn settled(&mut self, call: &Call) -> Result<(), StorageError> {
        let (id, Some(bill)) = (call.call_id, call.bill) else { return Ok(()) };
        let stakes = call.appeal.map_or([Amount::ZERO; 2], |it| [it.payment, it.deposit]);
        let sum = |amounts: &[Amount]| {
            amounts.iter().map(|it| u128::from(it.get())).fold(0, u128::saturating_add)
        };
        let paid_in = sum(&[call.max_fee, bill.penalties]).saturating_add(sum(&stakes));
        let bought = [bill.wages, bill.royalty, bill.conditional];
        let rest = [bill.refund, bill.appellant, bill.burned];
        if paid_in != sum(&bought).saturating_add(sum(&rest)) || call.deadline.is_some() {
            self.index(Calls::ID.name, format!("{id} is settled wrongly"));
        }
        if call.status == CallStatus::Unassigned {
            return Ok(());
        }
        // A node that began with a snapshot does not have the members of earlier calls.
        let members = calls::settled_members(self.state, &id)?;
        let records = members.iter().map(|(miner, member)| (miner, member));
        if !members.is_empty() && members_digest(records) != call.members_digest {
            self.index(SettledMembers::ID.name, format!("the members of {id} are others"));
        }
        self.listed_for(call, &members)
    }

    /// Is in the lists that calls are looked up in, at its place.
    fn listed(&mut self, call: &Call) -> Result<(), StorageError> {
        let (id, TxLocation { height, position }) = (call.call_id, call.request);
        let of_agent = view::get::<CallsByAgent>(self.state, &(call.agent_id, height, position))?;
        let requester = (call.requester, height, position);
        let rows = [
            (CallsByStatus::ID, view::get::<CallsByStatus>(self.state, &CallsByStatus::key(call))?),
            (CallsByAgent::ID, of_agent),
            (CallsByRequester::ID, view::get::<CallsByRequester>(self.state, &requester)?),
        ];
        for (table, _) in rows.into_iter().filter(|(_, found)| *found != Some(id)) {
            self.index(table.name, format!("the call {id} is missing"));
        }
        Ok(())
    }

    /// Its members have it among their calls.
    fn listed_for(
        &mut self,
        call: &Call,
        members: &[(Address, CallMember)],
    ) -> Result<(), StorageError> {
        let (id, TxLocation { height, position }) = (call.call_id, call.request);
        for (miner, _) in members {
            let key = (*miner, height, position);
            if view::get::<CallsByMember>(self.state, &key)? != Some(id) {
                self.index(CallsByMember::ID.name, format!("the call {id} of {miner} is missing"));
            }
        }
        Ok(())
    }

    /// Each member of a round that is not decided works for each executor, and nobody else does.
    fn assignments(&mut self, open: &Open) -> Result<(), StorageError> {
        let (mut faults, mut rows) = (Vec::new(), 0_usize);
        pages::<Assignments>(
            self.state,
            |(miner, executor): (Address, ExecutorId), count: u32| {
                rows = rows.saturating_add(1);
                if open.get(&(miner, executor)) != Some(&count) {
                    faults.push(format!("{miner} works at {count} calls for {executor}"));
                }
                Ok(())
            },
        )?;
        if rows != open.len() {
            faults.push(format!("{rows} rows, expected {}", open.len()));
        }
        for what in faults {
            self.index(Assignments::ID.name, what);
        }
        Ok(())
    }
}
