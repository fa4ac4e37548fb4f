//! What a block did beyond its transactions, as its events tell it.

use std::collections::{BTreeMap, BTreeSet};

use types::call::CallChange;
use types::{Address, Amount, BlockEvents, BondChange, Credit, Event, Hash};

/// What a block changed otherwise than by the effects of its transactions that every block would
/// have: by sweeps, and for its proposer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Touched {
    /// Runs that a sweep reopened or ended.
    pub runs: BTreeSet<Hash>,
    /// Blobs that a sweep dropped, and those whose last chunk showed that the bytes are not those that
    /// were announced.
    pub blobs: BTreeSet<String>,
    /// Calls whose members were drawn, or whose phase ended.
    pub calls: BTreeSet<Hash>,
    /// Agents that take no more calls.
    pub agents: BTreeSet<Hash>,
    /// How much sweeps (to the submitters of ended runs), fees and reward (to the proposer) credited
    /// to whom.
    pub credits: BTreeMap<Address, Amount>,
    /// What the end of the block did to bonds.
    pub bonds: BTreeMap<Address, BondChange>,
    /// Whether the validators of the next heights changed, or something on which they vote was decided:
    /// who may vote, and on what.
    pub validators: bool,
}

impl Touched {
    /// What a block's events say of it.
    #[must_use]
    pub fn by(events: &BlockEvents) -> Self {
        let mut touched = Self::default();
        for (_, event) in events.iter() {
            touched.note(event);
            if let Some((miner, change)) = event.bond_change() {
                touched.change_bond(miner, change);
            }
        }
        for Credit { address, amount } in &events.credits {
            touched.credit(*address, *amount);
        }
        touched
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::RunReopened { agent_run_id, .. }
            | Event::RunGivenBack { agent_run_id, .. }
            | Event::RunTimedOut { agent_run_id, .. }
            | Event::RewardPaid { agent_run_id, .. } => {
                self.runs.insert(*agent_run_id);
            }
            // The pool takes a FINALIZE before anybody knows the hash of the chunks.
            Event::BlobDropped { blob_id }
            | Event::BlobChunkStored { blob_id, is_as_announced: Some(false), .. } => {
                self.blobs.insert(blob_id.clone());
            }
            Event::ValidatorChanged { .. }
            | Event::ValidatorSetActivated { .. }
            | Event::EvidenceTaken { .. }
            | Event::ForkFixed { .. }
            | Event::ParamFixed { .. } => {
                self.validators = true;
            }
            Event::CallChanged { call_id, change } => {
                if is_of_the_block(change) {
                    self.calls.insert(*call_id);
                }
            }
            // Others may have calls of it waiting.
            Event::AgentRetired { agent_id, .. } => {
                self.agents.insert(*agent_id);
            }
            // Effects that the transaction has in every block, and credits, which are told apart.
            Event::Transferred { .. }
            | Event::TurnAdded { .. }
            | Event::RunRequested { .. }
            | Event::RunClaimed { .. }
            | Event::RunStepped { .. }
            | Event::RunFinished { .. }
            | Event::RunCancelled { .. }
            | Event::MinerRegistered { .. }
            | Event::BlobAnnounced { .. }
            | Event::BlobChunkStored { .. }
            | Event::BlobFinalized { .. }
            | Event::ValidatorVoted { .. }
            | Event::RewardMinted { .. }
            | Event::ForkVoted { .. }
            | Event::ParamVoted { .. }
            // That a parameter has changed, or that the base fee has grown too far, is the ledger's to say.
            | Event::FeesCharged { .. }
            | Event::BondAdded { .. }
            | Event::UnbondingBegun { .. }
            | Event::UnbondingPaid { .. }
            | Event::RunHeld { .. }
            | Event::RewardRefused { .. }
            | Event::AgentRegistered { .. }
            | Event::OfferSet { .. }
            // Told to the draft, as credits are.
            | Event::BondUnlocked { .. }
            | Event::CallBondLocked { .. }
            | Event::CallBondUnlocked { .. } => {}
        }
    }

    fn change_bond(&mut self, miner: Address, change: BondChange) {
        let sum = self.bonds.entry(miner).or_default();
        let add = |one: Amount, other| one.checked_add(other).unwrap_or(Amount::MAX);
        sum.locked = add(sum.locked, change.locked);
        sum.unlocked = add(sum.unlocked, change.unlocked);
        sum.burned = add(sum.burned, change.burned);
    }

    /// The block credited so much to an account, beyond what its transactions did.
    pub fn credit(&mut self, address: Address, amount: Amount) {
        if !amount.is_zero() {
            let credit = self.credits.entry(address).or_default();
            *credit = credit.checked_add(amount).unwrap_or(Amount::MAX);
        }
    }
}

/// Whether the beginning or the end of a block did it, and no transaction.
const fn is_of_the_block(change: &CallChange) -> bool {
    match change {
        CallChange::Elected { .. }
        | CallChange::Unassigned { .. }
        | CallChange::Revealing { .. }
        | CallChange::Decided { .. }
        | CallChange::AppealFailed { .. }
        | CallChange::Settled { .. } => true,
        CallChange::Requested { .. }
        | CallChange::Committed { .. }
        | CallChange::Revealed { .. }
        | CallChange::Appealed { .. } => false,
    }
}
