//! What a block did: typed events, and the money that it credited (docs/protocol.md section 6).
//!
//! The ledger records the events while it executes a block. The node stores them with the block,
//! and every execution of the block gives the same bytes. Everything that follows the chain (the
//! pool, subscriptions, histories, statistics) reads the events instead of deriving from the
//! transactions what happened.

use serde::{Deserialize, Serialize};

use crate::agent::ExecutorId;
use crate::call::CallChange;
use crate::{Address, Amount, Hash, Offer, PublicKey, RunStatus, Settlement};

/// The events of a block, in the order in which they happened.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BlockEvents {
    /// The events of its transactions, in ascending order of positions. Each transaction has
    /// exactly one.
    pub transactions: Vec<TxEvent>,
    /// All other events, in this order: elections, deadlines, calls, bonds, validators, votes on rules, the
    /// base fee, the reward.
    pub end: Vec<Event>,
    /// The money that accounts received without a transaction of their own: the proposer's fees,
    /// and the refunds and the reward at the end of the block. An account may receive several
    /// credits.
    pub credits: Vec<Credit>,
}

impl BlockEvents {
    /// The event of the transaction at a position.
    #[must_use]
    pub fn of_transaction(&self, position: u32) -> Option<&Event> {
        let index = self.transactions.binary_search_by_key(&position, |event| event.position);
        self.transactions.get(index.ok()?).map(|found| &found.event)
    }

    /// The fees of the block; `None` before fork v7.
    #[must_use]
    pub fn fees(&self) -> Option<BlockFees> {
        self.end.iter().rev().find_map(|event| {
            let Event::FeesCharged { base_fee, burned, tips, next_base_fee } = *event else {
                return None;
            };
            Some(BlockFees { base_fee, burned, tips, next_base_fee })
        })
    }

    /// All events: those of transactions with their positions, then those of the end.
    pub fn iter(&self) -> impl Iterator<Item = (Option<u32>, &Event)> {
        let transactions = self.transactions.iter().map(|tx| (Some(tx.position), &tx.event));
        transactions.chain(self.end.iter().map(|event| (None, event)))
    }
}

/// The event of one transaction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TxEvent {
    /// The position of the transaction in the block, from 0.
    pub position: u32,
    /// The event.
    pub event: Event,
}

/// Money that an account received. The amount is never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Credit {
    /// The address of the account.
    pub address: Address,
    /// The amount.
    pub amount: Amount,
}

/// What happened to which record, with the amounts that moved.
///
/// The order of the variants and of their fields is stored. Append new variants at the end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Event {
    /// A TRANSFER moved money between accounts (docs/protocol.md section 5.8).
    Transferred {
        /// The address of the receiver.
        to: Address,
        /// The amount that the receiver got.
        amount: Amount,
        /// The fee that the proposer got.
        fee: Amount,
    },
    /// A turn was added to a conversation (section 5.1).
    TurnAdded {
        /// The conversation.
        conversation_id: Hash,
    },
    /// A run was requested, and its fee is in escrow (section 5.2).
    RunRequested {
        /// The run.
        agent_run_id: Hash,
        /// The address of the account that requested and paid for the run.
        submitter: Address,
        /// The amount in escrow.
        escrow: Amount,
    },
    /// A miner claimed a run (section 5.3).
    RunClaimed {
        /// The run.
        agent_run_id: Hash,
        /// The address of the miner that claimed it.
        miner: Address,
    },
    /// A miner reported a step (section 5.4).
    RunStepped {
        /// The run.
        agent_run_id: Hash,
        /// The address of the miner that reported it.
        miner: Address,
        /// The step's index.
        step_index: u64,
        /// The number of tokens that the model generated.
        output_tokens: u64,
    },
    /// A miner ended a run (section 5.5).
    RunFinished {
        /// The run.
        agent_run_id: Hash,
        /// The address of the account that requested the run.
        submitter: Address,
        /// The address of the miner that ended it.
        miner: Address,
        /// The final status.
        status: RunStatus,
        /// How the escrow was divided.
        settlement: Settlement,
    },
    /// The submitter cancelled a pending run (section 5.6).
    RunCancelled {
        /// The run.
        agent_run_id: Hash,
        /// The address of the account that requested the run.
        submitter: Address,
        /// How the escrow was divided.
        settlement: Settlement,
    },
    /// A claim lapsed: the run is pending again, and the miner may not claim it again (section 5.7).
    RunReopened {
        /// The run.
        agent_run_id: Hash,
        /// The address of the miner that let its claim lapse.
        miner: Address,
    },
    /// A run ended because its deadline passed (section 5.7).
    RunTimedOut {
        /// The run.
        agent_run_id: Hash,
        /// The address of the account that requested the run.
        submitter: Address,
        /// The address of the miner that worked on it; `None` if none did.
        miner: Option<Address>,
        /// How the escrow was divided.
        settlement: Settlement,
    },
    /// A miner created or replaced its entry in the directory (section 5.9).
    MinerRegistered {
        /// The miner's id.
        miner_id: Hash,
    },
    /// A blob was announced (section 5.10).
    BlobAnnounced {
        /// The blob.
        blob_id: String,
    },
    /// A chunk of a blob arrived (section 5.10).
    BlobChunkStored {
        /// The blob.
        blob_id: String,
        /// The chunk's index.
        index: u32,
        /// With the last missing chunk: whether the bytes have the announced hash.
        is_as_announced: Option<bool>,
    },
    /// A blob was finalized and may be referenced (section 5.10).
    BlobFinalized {
        /// The blob.
        blob_id: String,
    },
    /// An unfinished blob was dropped because its deadline passed (section 5.10).
    BlobDropped {
        /// The blob.
        blob_id: String,
    },
    /// A validator voted for a change to the validator set (section 5.11).
    ValidatorVoted {
        /// The candidate's key.
        public_key: PublicKey,
        /// The voting power that it should have; 0 removes it.
        power: u64,
    },
    /// A change to the validator set was decided (section 5.11).
    ValidatorChanged {
        /// The validator's key.
        public_key: PublicKey,
        /// The power that it will have; 0 if it leaves.
        power: u64,
        /// The first height that the changed set decides.
        height: u64,
    },
    /// A changed set decides from the next block on (section 5.11).
    ValidatorSetActivated {
        /// The first height that it decides.
        height: u64,
    },
    /// The block's reward was minted for its proposer (section 6).
    RewardMinted {
        /// The amount.
        amount: Amount,
    },
    /// A validator voted for a fork (section 5.12).
    ForkVoted {
        /// The fork.
        fork: String,
        /// The height of the first block in which the fork's rules should apply.
        height: u64,
    },
    /// The height of a fork was fixed (section 5.12).
    ForkFixed {
        /// The fork.
        fork: String,
        /// The height of the first block in which the fork's rules apply.
        height: u64,
    },
    /// A validator voted for a value of a parameter (section 5.13).
    ParamVoted {
        /// The parameter.
        name: String,
        /// The value that it should have.
        value: u64,
        /// The height of the first block that should have the value.
        height: u64,
    },
    /// The next value of a parameter was fixed (section 5.13).
    ParamFixed {
        /// The parameter.
        name: String,
        /// The value that it will have.
        value: u64,
        /// The height of the first block with the value.
        height: u64,
    },
    /// The fees of the block (section 15). Every block from v7 on has this event once.
    FeesCharged {
        /// The base fee of this block, in micro-OMBRA per KiB.
        base_fee: u64,
        /// The sum of the inclusion fees that its transactions burned.
        burned: Amount,
        /// The sum of the tips that the proposer received, without the fees of transfers.
        tips: Amount,
        /// The base fee of the next block.
        next_base_fee: u64,
    },
    /// A miner added money to its bond (section 5.14).
    BondAdded {
        /// The amount.
        amount: Amount,
    },
    /// A miner withdrew money from its bond (section 5.15).
    UnbondingBegun {
        /// The amount.
        amount: Amount,
        /// The time at which the chain pays it out.
        due: u64,
    },
    /// The chain paid out money that a miner had withdrawn from its bond (section 5.15).
    UnbondingPaid {
        /// The miner.
        miner: Address,
        /// The amount.
        amount: Amount,
    },
    /// A miner ended a run, and its reward is held (section 5.5).
    RunHeld {
        /// The run.
        agent_run_id: Hash,
        /// The address of the account that requested the run.
        submitter: Address,
        /// The address of the miner that ended it.
        miner: Address,
        /// The final status.
        status: RunStatus,
        /// How the escrow is divided. The reward has not been paid yet.
        settlement: Settlement,
        /// The block time until which the submitter may refuse the reward.
        until: u64,
    },
    /// The chain paid a held reward (section 5.7).
    RewardPaid {
        /// The run.
        agent_run_id: Hash,
        /// The address of the account that requested the run.
        submitter: Address,
        /// The address of the miner that received it.
        miner: Address,
        /// The final status of the run.
        status: RunStatus,
        /// The amount.
        amount: Amount,
    },
    /// A submitter refused a held reward (section 5.16).
    RewardRefused {
        /// The run.
        agent_run_id: Hash,
        /// The address of the submitter.
        submitter: Address,
        /// The address of the miner whose reward it was.
        miner: Address,
        /// The final status of the run.
        status: RunStatus,
        /// The amount of the escrow that was burned.
        amount: Amount,
    },
    /// The end of a block unlocked the part of a miner's bond that was locked for a run (section
    /// 5.14).
    BondUnlocked {
        /// The run.
        agent_run_id: Hash,
        /// The miner.
        miner: Address,
        /// The amount that became free again.
        unlocked: Amount,
        /// The amount that was burned.
        burned: Amount,
    },
    /// A validator was proved to have signed two different messages, and loses its power
    /// permanently (section 5.17).
    EvidenceTaken {
        /// The validator's key.
        public_key: PublicKey,
        /// The height of the two messages.
        height: u64,
    },
    /// A miner gave a run up before it reported a step: the run is pending again, and the miner may
    /// not claim it again (section 5.5).
    RunGivenBack {
        /// The run.
        agent_run_id: Hash,
        /// The address of the miner that gave it up.
        miner: Address,
    },
    /// An owner published an agent, or a new version of one (section 5.18).
    AgentRegistered {
        /// The agent.
        agent_id: Hash,
        /// The address of the owner.
        owner: Address,
        /// The version.
        version: String,
    },
    /// An owner retired an agent, which takes no more calls (section 5.19).
    AgentRetired {
        /// The agent.
        agent_id: Hash,
    },
    /// A miner made, replaced or withdrew an offer (section 5.20).
    OfferSet {
        /// The id of the executor.
        executor: ExecutorId,
        /// The offer; `None` if the miner withdrew it.
        offer: Option<Offer>,
    },
    /// A part of a miner's bond was locked because the miner was drawn as a member of a call
    /// (section 17).
    CallBondLocked {
        /// The call.
        call_id: Hash,
        /// The miner.
        miner: Address,
        /// The amount.
        amount: Amount,
    },
    /// The end of a block unlocked the part of a miner's bond that was locked for a call (section
    /// 17).
    CallBondUnlocked {
        /// The call.
        call_id: Hash,
        /// The miner.
        miner: Address,
        /// The amount that became free again.
        unlocked: Amount,
        /// The amount that the miner lost. It was burned, or divided by the settlement of the call if an
        /// appeal overturned the decision (section 18).
        burned: Amount,
    },
    /// Something happened to a call (section 18).
    CallChanged {
        /// The call.
        call_id: Hash,
        /// What happened to it.
        change: CallChange,
    },
}

/// The fees of a block (docs/protocol.md section 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlockFees {
    /// The base fee of the block, in micro-OMBRA per KiB.
    pub base_fee: u64,
    /// The sum of the inclusion fees that its transactions burned.
    pub burned: Amount,
    /// The sum of the tips that the proposer received, without the fees of transfers.
    pub tips: Amount,
    /// The base fee of the next block.
    pub next_base_fee: u64,
}

/// What a block did to a miner's bond, apart from the miner's own transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BondChange {
    /// The amount that became locked.
    pub locked: Amount,
    /// The amount that became free again.
    pub unlocked: Amount,
    /// The amount of the locked part that was burned.
    pub burned: Amount,
}

/// What an event does to the money that is in escrow for a submitter's runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EscrowChange {
    /// This amount was added.
    Held(Amount),
    /// The escrow of a run was divided.
    Released(Settlement),
}

impl Event {
    /// The account other than the sender whose history the event belongs to: the receiver of a
    /// transfer, or the submitter of a run that its miner ended.
    #[must_use]
    pub const fn counterparty(&self) -> Option<Address> {
        match self {
            Self::Transferred { to: other, .. }
            | Self::RunFinished { submitter: other, .. }
            | Self::RunHeld { submitter: other, .. }
            | Self::RewardRefused { miner: other, .. } => Some(*other),
            Self::TurnAdded { .. }
            | Self::RunRequested { .. }
            | Self::RunClaimed { .. }
            | Self::RunStepped { .. }
            | Self::RunCancelled { .. }
            | Self::RunReopened { .. }
            | Self::RunTimedOut { .. }
            | Self::MinerRegistered { .. }
            | Self::BlobAnnounced { .. }
            | Self::BlobChunkStored { .. }
            | Self::BlobFinalized { .. }
            | Self::BlobDropped { .. }
            | Self::ValidatorVoted { .. }
            | Self::ValidatorChanged { .. }
            | Self::ValidatorSetActivated { .. }
            | Self::RewardMinted { .. }
            | Self::ForkVoted { .. }
            | Self::ForkFixed { .. }
            | Self::ParamVoted { .. }
            | Self::ParamFixed { .. }
            | Self::FeesCharged { .. }
            | Self::BondAdded { .. }
            | Self::UnbondingBegun { .. }
            | Self::UnbondingPaid { .. }
            | Self::RewardPaid { .. }
            | Self::BondUnlocked { .. }
            | Self::EvidenceTaken { .. }
            | Self::RunGivenBack { .. }
            | Self::OfferSet { .. }
            | Self::CallBondLocked { .. }
            | Self::CallBondUnlocked { .. }
            | Self::AgentRegistered { .. }
            | Self::AgentRetired { .. }
            | Self::CallChanged { .. } => None,
        }
    }

    /// What the block did to a miner's bond, apart from the miner's own transactions.
    #[must_use]
    pub const fn bond_change(&self) -> Option<(Address, BondChange)> {
        if let Self::BondUnlocked { miner, unlocked, burned, .. }
        | Self::CallBondUnlocked { miner, unlocked, burned, .. } = self
        {
            let (unlocked, burned) = (*unlocked, *burned);
            return Some((*miner, BondChange { locked: Amount::ZERO, unlocked, burned }));
        }
        if let Self::CallBondLocked { miner, amount, .. } = self {
            let (unlocked, burned) = (Amount::ZERO, Amount::ZERO);
            return Some((*miner, BondChange { locked: *amount, unlocked, burned }));
        }
        None
    }

    /// The run that the event is about.
    #[must_use]
    pub const fn agent_run_id(&self) -> Option<Hash> {
        match self {
            Self::RunRequested { agent_run_id, .. }
            | Self::RunClaimed { agent_run_id, .. }
            | Self::RunStepped { agent_run_id, .. }
            | Self::RunFinished { agent_run_id, .. }
            | Self::RunCancelled { agent_run_id, .. }
            | Self::RunReopened { agent_run_id, .. }
            | Self::RunTimedOut { agent_run_id, .. }
            | Self::RunHeld { agent_run_id, .. }
            | Self::RewardPaid { agent_run_id, .. }
            | Self::RewardRefused { agent_run_id, .. }
            | Self::BondUnlocked { agent_run_id, .. }
            | Self::RunGivenBack { agent_run_id, .. } => Some(*agent_run_id),
            Self::Transferred { .. }
            | Self::TurnAdded { .. }
            | Self::MinerRegistered { .. }
            | Self::BlobAnnounced { .. }
            | Self::BlobChunkStored { .. }
            | Self::BlobFinalized { .. }
            | Self::BlobDropped { .. }
            | Self::ValidatorVoted { .. }
            | Self::ValidatorChanged { .. }
            | Self::ValidatorSetActivated { .. }
            | Self::RewardMinted { .. }
            | Self::ForkVoted { .. }
            | Self::ForkFixed { .. }
            | Self::ParamVoted { .. }
            | Self::ParamFixed { .. }
            | Self::FeesCharged { .. }
            | Self::BondAdded { .. }
            | Self::UnbondingBegun { .. }
            | Self::UnbondingPaid { .. }
            | Self::EvidenceTaken { .. }
            | Self::OfferSet { .. }
            | Self::CallBondLocked { .. }
            | Self::CallBondUnlocked { .. }
            | Self::AgentRegistered { .. }
            | Self::AgentRetired { .. }
            | Self::CallChanged { .. } => None,
        }
    }

    /// Whose escrow the event changes, and how.
    #[must_use]
    pub const fn escrow_change(&self) -> Option<(Address, EscrowChange)> {
        match self {
            Self::RunRequested { submitter, escrow, .. } => {
                Some((*submitter, EscrowChange::Held(*escrow)))
            }
            Self::RunFinished { submitter, settlement, .. }
            | Self::RunCancelled { submitter, settlement, .. }
            | Self::RunTimedOut { submitter, settlement, .. } => {
                Some((*submitter, EscrowChange::Released(*settlement)))
            }
            Self::RunHeld { submitter, settlement, .. } => {
                let paid = Settlement { miner_reward: Amount::ZERO, ..*settlement };
                Some((*submitter, EscrowChange::Released(paid)))
            }
            Self::RewardPaid { submitter, amount, .. } => {
                let paid = Settlement { miner_reward: *amount, ..Settlement::NOTHING };
                Some((*submitter, EscrowChange::Released(paid)))
            }
            Self::RewardRefused { submitter, amount, .. } => {
                let burned = Settlement { network_fee: *amount, ..Settlement::NOTHING };
                Some((*submitter, EscrowChange::Released(burned)))
            }
            Self::Transferred { .. }
            | Self::TurnAdded { .. }
            | Self::RunClaimed { .. }
            | Self::RunStepped { .. }
            | Self::RunReopened { .. }
            | Self::MinerRegistered { .. }
            | Self::BlobAnnounced { .. }
            | Self::BlobChunkStored { .. }
            | Self::BlobFinalized { .. }
            | Self::BlobDropped { .. }
            | Self::ValidatorVoted { .. }
            | Self::ValidatorChanged { .. }
            | Self::ValidatorSetActivated { .. }
            | Self::RewardMinted { .. }
            | Self::ForkVoted { .. }
            | Self::ForkFixed { .. }
            | Self::ParamVoted { .. }
            | Self::ParamFixed { .. }
            | Self::FeesCharged { .. }
            | Self::BondAdded { .. }
            | Self::UnbondingBegun { .. }
            | Self::UnbondingPaid { .. }
            | Self::BondUnlocked { .. }
            | Self::EvidenceTaken { .. }
            | Self::RunGivenBack { .. }
            | Self::OfferSet { .. }
            | Self::CallBondLocked { .. }
            | Self::CallBondUnlocked { .. }
            | Self::AgentRegistered { .. }
            | Self::AgentRetired { .. }
            | Self::CallChanged { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
