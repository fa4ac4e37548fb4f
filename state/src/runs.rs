//! What the kinds of a run and the sweep have in common: a run's row and the rows that follow it.

use types::{
    Address, Amount, Code, Ender, Event, Hash, MinerFigures, Params, Rejection, Run, RunStatus,
    Settlement, SubmitterFigures, TxLocation,
};

use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::tables::{Bonds, Deadlines, Figures, FiguresOfSubmitters, Runs, RunsByStatus};
use crate::view::{self, Read};
use crate::{bonds, ledger};

/// The run of that id, or RUN_NOT_FOUND.
pub(crate) fn find(state: &dyn Read, id: &Hash) -> Result<Run, TxError> {
    view::get::<Runs>(state, id)?.ok_or_else(|| not_found(id).into())
}

/// RUN_NOT_FOUND.
pub(crate) fn not_found(id: &Hash) -> Rejection {
    Rejection::new(Code::RunNotFound, "agentRunId", id, "the id of a requested run")
}

/// RUN_NOT_PENDING unless the run waits for a miner.
pub(crate) fn require_pending(run: &Run) -> Result<(), Rejection> {
    if run.status == RunStatus::Pending {
        return Ok(());
    }
    Err(wrong_status(Code::RunNotPending, run, "pending"))
}

/// RUN_NOT_ACTIVE unless a miner works on the run, NOT_RUN_MINER unless it is `sender`.
pub(crate) fn require_worker(run: &Run, sender: Address) -> Result<(), Rejection> {
    let Some(miner) = run.miner.filter(|_| run.status.is_active()) else {
        return Err(wrong_status(Code::RunNotActive, run, "claimed or running"));
    };
    if sender == miner {
        return Ok(());
    }
    Err(Rejection::new(Code::NotRunMiner, "from", sender, miner)
        .with("agentRunId", run.agent_run_id))
}

fn wrong_status(code: Code, run: &Run, expected: &'static str) -> Rejection {
    Rejection::new(code, "status", run.status.as_str(), expected)
        .with("agentRunId", run.agent_run_id)
}

/// Writes the run with a new status and deadline, and moves its rows in the indexes of both.
pub(crate) fn save(draft: &mut Draft, mut run: Run, status: RunStatus, deadline_at: Option<u64>) {
    let id = run.agent_run_id;
    if run.status != status {
        draft.delete::<RunsByStatus>(&status_key(run.status, run.request));
        draft.insert::<RunsByStatus>(&status_key(status, run.request), &id);
    }
    if run.deadline_at != deadline_at {
        if let Some(old) = run.deadline_at {
            draft.delete::<Deadlines>(&deadline_key(old, &id));
        }
        if let Some(new) = deadline_at {
            draft.insert::<Deadlines>(&deadline_key(new, &id), &());
        }
    }
    run.status = status;
    run.deadline_at = deadline_at;
    draft.put::<Runs>(&id, &run);
}

/// The key of a run among those of its status.
pub const fn status_key(status: RunStatus, request: TxLocation) -> (u8, u64, u32) {
    (RunsByStatus::place(status), request.height, request.position)
}

/// The key of a run's deadline.
pub fn deadline_key(deadline: u64, id: &Hash) -> (u64, u8, String) {
    (deadline, Deadlines::RUN, id.to_string())
}

/// When something that starts at `start` is over.
///
/// # Errors
/// [`StorageError::Inconsistent`] if it overflows.
pub fn deadline(start: u64, ttl_ms: u64) -> Result<u64, StorageError> {
    const FAR: StorageError = StorageError::Inconsistent { what: "a deadline overflows" };
    start.checked_add(ttl_ms).ok_or(FAR)
}

/// How a run ends.
pub(crate) struct End {
    pub(crate) status: RunStatus,
    pub(crate) settlement: Settlement,
    /// The time of the block.
    pub(crate) timestamp: u64,
    /// Who ended it; not told before v7.
    pub(crate) by: Option<Ender>,
    /// Until when the reward is held; none if it is paid at once.
    pub(crate) held_until: Option<u64>,
}

/// Divides the escrow and ends the run.
pub(crate) fn end(draft: &mut Draft, mut run: Run, end: End) -> Result<(), StorageError> {
    let End { status, settlement, timestamp, by, held_until } = end;
    let Settlement { miner_reward, user_refund, network_fee } = settlement;
    if held_until.is_none() {
        ledger::release(draft, run.max_fee)?;
        if let Some(miner) = run.miner {
            ledger::credit(draft, miner, miner_reward)?;
        }
    } else {
        let paid = user_refund.checked_add(network_fee).ok_or(ledger::OVERFLOW)?;
        ledger::release(draft, paid)?;
    }
    ledger::credit(draft, run.submitter, user_refund)?;
    ledger::burn(draft, network_fee)?;
    run.settlement = Some(settlement);
    run.finished_at = Some(timestamp);
    run.ended_by = by;
    save(draft, run, status, held_until);
    Ok(())
}

/// Pays the reward that is held for a run.
pub(crate) fn pay_held(draft: &mut Draft, mut run: Run) -> Result<Event, StorageError> {
    const UNSETTLED: StorageError =
        StorageError::Inconsistent { what: "a held run has no settlement or no miner" };
    let Some((miner, settlement)) = run.miner.zip(run.settlement) else { return Err(UNSETTLED) };
    let amount = settlement.miner_reward;
    ledger::release(draft, amount)?;
    ledger::credit(draft, miner, amount)?;
    earn(draft, miner, amount)?;
    bonds::release(draft, &mut run, Amount::ZERO);
    let (agent_run_id, submitter, status) = (run.agent_run_id, run.submitter, run.status);
    save(draft, run, status, None);
    Ok(Event::RewardPaid { agent_run_id, submitter, miner, status, amount })
}

/// Counts a reward.
pub(crate) fn earn(draft: &mut Draft, miner: Address, amount: Amount) -> Result<(), StorageError> {
    count(draft, miner, |figures| {
        figures.earnings = figures.earnings.checked_add(amount).unwrap_or(Amount::MAX);
    })
}

/// Whether a run that its miner leaves may wait for another one: it was not re-opened too often, and a
/// miner is left that may claim it.
pub(crate) fn can_reopen(run: &Run, params: &Params) -> bool {
    let is_left = |one: &Address| Some(*one) != run.miner && !run.excluded_miners.contains(one);
    let named = run.protection.as_ref().map_or(&[][..], |protection| &protection.miners);
    run.reopens < params.max_reopens && (named.is_empty() || named.iter().any(is_left))
}

/// Lets a claimed run without a step wait for another miner, for a whole new period. Returns its id.
pub(crate) fn reopen(
    draft: &mut Draft,
    mut run: Run,
    params: &Params,
    timestamp: u64,
) -> Result<Hash, StorageError> {
    const TOO_OFTEN: StorageError =
        StorageError::Inconsistent { what: "a run was re-opened more often than can be counted" };
    let agent_run_id = run.agent_run_id;
    run.reopens = run.reopens.checked_add(1).ok_or(TOO_OFTEN)?;
    run.miner = None;
    run.claimed_at = None;
    run.claim = None;
    let deadline = deadline(timestamp, params.pending_ttl_ms)?;
    save(draft, run, RunStatus::Pending, Some(deadline));
    Ok(agent_run_id)
}

/// NOT_SUBMITTER unless `sender` asked for the run.
pub(crate) fn require_submitter(run: &Run, sender: Address) -> Result<(), Rejection> {
    if sender == run.submitter {
        return Ok(());
    }
    Err(Rejection::new(Code::NotSubmitter, "from", sender, run.submitter)
        .with("agentRunId", run.agent_run_id))
}

/// BOND_TOO_SMALL unless so much of the miner's bond is free.
pub(crate) fn require_bond(
    state: &dyn Read,
    miner: Address,
    field: &'static str,
    needed: Amount,
) -> Result<(), TxError> {
    let bond = view::get::<Bonds>(state, &miner)?.unwrap_or_default();
    let free = bond.free();
    if needed <= free {
        return Ok(());
    }
    let expected = format_args!("at most {free}, the part of the bond that is not locked");
    Err(Rejection::new(Code::BondTooSmall, field, needed, expected)
        .with("bonded", bond.bonded)
        .with("locked", bond.locked)
        .into())
}

/// Changes what is counted about a submitter. The counters stop at 2^64−1.
pub(crate) fn count_submitter(
    draft: &mut Draft,
    submitter: Address,
    change: impl FnOnce(&mut SubmitterFigures),
) -> Result<(), StorageError> {
    let mut figures = draft.get::<FiguresOfSubmitters>(&submitter)?.unwrap_or_default();
    change(&mut figures);
    draft.put::<FiguresOfSubmitters>(&submitter, &figures);
    Ok(())
}

/// Changes what is counted about a miner. The counters stop at 2^64−1.
pub(crate) fn count(
    draft: &mut Draft,
    miner: Address,
    change: impl FnOnce(&mut MinerFigures),
) -> Result<(), StorageError> {
    let mut figures = draft.get::<Figures>(&miner)?.unwrap_or_default();
    change(&mut figures);
    draft.put::<Figures>(&miner, &figures);
    Ok(())
}
