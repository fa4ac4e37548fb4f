//! Rows that follow from authenticated ones: deadlines, indexes, and what miners have done.

use std::collections::BTreeMap;

use state::error::StorageError;
use state::market::calls;
use state::params::BASE_FEE_FLOOR;
use state::table::{Key, Table, TableId, decode_value, encode_value};
use state::tables::{
    Agents, AgentsByOwner, Blobs, CallQueue, Calls, CallsByAgent, CallsByRequester, CallsByStatus,
    Deadlines, Figures, FiguresOfSubmitters, MinerIds, Miners, ParamRows, Runs, RunsByConversation,
    RunsByMiner, RunsByStatus, RunsBySubmitter, Unbondings,
};
use state::{bonds, runs};
use types::call::{Call, CallStatus};
use types::{
    Address, Amount, Ender, MinerFigures, Params, Run, RunStatus, SubmitterFigures, TxLocation,
};

use super::chunk::Row;
use crate::tables::FeeFloors;

/// Takes rows: table, key, value.
pub(super) type Put<'a> = &'a mut dyn FnMut(TableId, &[u8], &[u8]) -> Result<(), StorageError>;

/// What follows from the rows so far.
#[derive(Debug, Default)]
pub(super) struct Derived {
    /// One for every account that ever claimed a run.
    figures: BTreeMap<Address, MinerFigures>,
    /// One for every account that ever had a reward held.
    submitters: BTreeMap<Address, SubmitterFigures>,
}

fn put<T: Table>(out: Put<'_>, key: &T::Key, value: &T::Value) -> Result<(), StorageError> {
    out(T::ID, &key.to_bytes(), &encode_value::<T>(value))
}

impl Derived {
    /// Adds what follows from an authenticated row.
    pub(super) fn add(
        &mut self,
        row: &Row<'_>,
        params: &Params,
        out: Put<'_>,
    ) -> Result<(), StorageError> {
        if row.table == Runs::ID {
            self.run(&decode_value::<Runs>(row.value)?, out)
        } else if row.table == Miners::ID {
            let miner = decode_value::<Miners>(row.value)?;
            put::<MinerIds>(out, &miner.miner_id, &miner.address)
        } else if row.table == Blobs::ID {
            let blob = decode_value::<Blobs>(row.value)?;
            if blob.is_final {
                return Ok(());
            }
            let deadline = runs::deadline(blob.created_at, params.blob_ttl_ms)?;
            put::<Deadlines>(out, &(deadline, Deadlines::BLOB, blob.blob_id), &())
        } else if row.table == Agents::ID {
            let agent = decode_value::<Agents>(row.value)?;
            put::<AgentsByOwner>(out, &(agent.owner, agent.agent_id), &())
        } else if row.table == Unbondings::ID {
            const KEY: StorageError =
                StorageError::Inconsistent { what: "a key has the wrong length" };
            let (miner, due) = <(Address, u64)>::from_bytes(row.key).ok_or(KEY)?;
            put::<Deadlines>(out, &bonds::deadline_key(due, &miner), &())
        } else if row.table == ParamRows::ID && row.key == BASE_FEE_FLOOR.as_bytes() {
            // There are no blocks below the snapshot, so that the first row may be the lowest.
            put::<FeeFloors>(out, &0, &decode_value::<ParamRows>(row.value)?.value)
        } else if row.table == Calls::ID {
            call(&decode_value::<Calls>(row.value)?, out)
        } else {
            Ok(())
        }
    }

    fn run(&mut self, run: &Run, out: Put<'_>) -> Result<(), StorageError> {
        let (id, place) = (run.agent_run_id, (run.request.height, run.request.position));
        put::<RunsByStatus>(out, &runs::status_key(run.status, run.request), &id)?;
        put::<RunsBySubmitter>(out, &(run.submitter, place.0, place.1), &id)?;
        put::<RunsByConversation>(out, &(run.conversation_id, place.0, place.1), &id)?;
        if let Some(at) = run.deadline_at {
            put::<Deadlines>(out, &runs::deadline_key(at, &id), &())?;
        }
        // Whoever claimed it let the claim lapse, or has it still.
        let lapsed = |miner: &Address| run.excluded_miners.contains(miner);
        let holder = run.miner.filter(|miner| !lapsed(miner));
        for miner in run.excluded_miners.iter().copied().chain(holder) {
            put::<RunsByMiner>(out, &(miner, place.0, place.1), &id)?;
            let figures = self.figures.entry(miner).or_default();
            count(&mut figures.claimed);
            if lapsed(&miner) {
                count(&mut figures.timed_out);
            }
        }
        let is_held = run.protection.as_ref().is_some_and(|protection| protection.refuse_ms > 0);
        if is_held && run.ended_by == Some(Ender::Miner) {
            let figures = self.submitters.entry(run.submitter).or_default();
            count(&mut figures.held);
            if run.is_refused {
                count(&mut figures.refused);
            }
        }
        if let Some(miner) = holder {
            ended(self.figures.entry(miner).or_default(), run);
        }
        Ok(())
    }

    /// The figures of all miners.
    pub(super) fn finish(self, out: Put<'_>) -> Result<(), StorageError> {
        for (miner, figures) in self.figures {
            put::<Figures>(&mut *out, &miner, &figures)?;
        }
        for (submitter, figures) in self.submitters {
            put::<FiguresOfSubmitters>(&mut *out, &submitter, &figures)?;
        }
        Ok(())
    }
}

/// The places of a call in the lists of calls, and what it waits for.
fn call(call: &Call, out: Put<'_>) -> Result<(), StorageError> {
    let (id, TxLocation { height, position }) = (&call.call_id, call.request);
    put::<CallsByStatus>(&mut *out, &CallsByStatus::key(call), id)?;
    put::<CallsByAgent>(&mut *out, &(call.agent_id, height, position), id)?;
    put::<CallsByRequester>(&mut *out, &(call.requester, height, position), id)?;
    if let Some(deadline) = call.deadline {
        put::<Deadlines>(&mut *out, &calls::deadline_key(deadline, id), &())?;
    }
    if call.status != CallStatus::Electing {
        return Ok(());
    }
    let place = call.appeal.map_or(call.request, |appeal| appeal.tx);
    put::<CallQueue>(out, &(place.height, place.position), id)
}

fn count(figure: &mut u64) {
    *figure = figure.saturating_add(1);
}

/// Counts the work of a miner whose claim did not lapse.
fn ended(figures: &mut MinerFigures, run: &Run) {
    figures.tokens = figures.tokens.saturating_add(run.tokens_out);
    match run.status {
        RunStatus::Pending | RunStatus::Claimed | RunStatus::Running => return,
        RunStatus::Completed => count(&mut figures.completed),
        RunStatus::Timeout => count(&mut figures.timed_out),
        RunStatus::Failed | RunStatus::InsufficientFunds | RunStatus::Cancelled => {
            count(&mut figures.failed);
        }
    }
    if run.is_refused {
        count(&mut figures.refused);
    }
    if run.is_refused || run.is_held() {
        return;
    }
    let reward = run.settlement.map_or(Amount::ZERO, |settlement| settlement.miner_reward);
    figures.earnings = figures.earnings.checked_add(reward).unwrap_or(Amount::MAX);
}

#[cfg(test)]
mod tests {
    //! What follows from single rows.

    use state::tables::{NextValue, ParamRow};

    use super::*;

    /// The rows that follow from the row of a parameter.
    fn of_param(name: &str, row: ParamRow) -> Vec<(TableId, Vec<u8>, Vec<u8>)> {
        let (key, value) = (name.to_owned().to_bytes(), encode_value::<ParamRows>(&row));
        let row = Row { table: ParamRows::ID, key: &key, value: &value };
        let mut rows = Vec::new();
        let mut put = |table, key: &[u8], value: &[u8]| {
            rows.push((table, key.to_vec(), value.to_vec()));
            Ok(())
        };
        Derived::default().add(&row, &Params::default(), &mut put).unwrap();
        rows
    }

    #[test]
    fn the_lowest_base_fee_that_holds_is_noted_below_every_block() {
        let row = ParamRow { value: 25, next: Some(NextValue { value: 40, height: 900 }) };
        let expected = (FeeFloors::ID, 0_u64.to_bytes(), encode_value::<FeeFloors>(&25));
        assert_eq!(of_param(BASE_FEE_FLOOR, row), [expected]);
        assert_eq!(of_param("maxBlockWork", row), []);
    }
}
