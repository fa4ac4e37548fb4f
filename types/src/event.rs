//! What a block did: typed events, and the money that it credited (docs/protocol.md section 6).
//!
//! The ledger writes them while it executes a block. The node stores them with the block, and whoever
//! executes the block again gets the same bytes. Everything that follows the chain (the pool,
//! subscriptions, histories, figures) reads them instead of working out from the transactions what
//! happened.

use serde::{Deserialize, Serialize};

use crate::agent::ExecutorId;
use crate::call::CallChange;
use crate::{Address, Amount, Hash, Offer, PublicKey, RunStatus, Settlement};

/// Everything that a block did, in the order in which it happened.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BlockEvents {
    /// What its transactions did, by ascending position. Each transaction has exactly one event.
    pub transactions: Vec<TxEvent>,
    /// What its end did: deadlines, then changes of the validator set, then the reward.
    pub end: Vec<Event>,
    /// The money that accounts received without a transaction of their own: the proposer's fees, and
    /// the refunds and the reward at the end of the block. Several credits may go to one account.
    pub credits: Vec<Credit>,
}

impl BlockEvents {
    /// What the transaction at a position did.
    #[must_use]
    pub fn of_transaction(&self, position: u32) -> Option<&Event> {
        let index = self.transactions.binary_search_by_key(&position, |event| event.position);
        self.transactions.get(index.ok()?).map(|found| &found.event)
    }

    /// What the places in the block cost; none before fork v7.
    #[must_use]
    pub fn fees(&self) -> Option<BlockFees> {
        self.end.iter().rev().find_map(|event| {
            let Event::FeesCharged { base_fee, burned, tips, next_base_fee } = *event else {
                return None;
            };
            Some(BlockFees { base_fee, burned, tips, next_base_fee })
        })
    }

    /// Every event: those of transactions with their positions, then those of the end.
    pub fn iter(&self) -> impl Iterator<Item = (Option<u32>, &Event)> {
        let transactions = self.transactions.iter().map(|tx| (Some(tx.position), &tx.event));
        transactions.chain(self.end.iter().map(|event| (None, event)))
    }
}

/// What one transaction did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TxEvent {
    /// The transaction's place in the block, from 0.
    pub position: u32,
    /// What it did.
    pub event: Event,
}

/// Money that an account received. Never zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Credit {
    /// Who received it.
    pub address: Address,
    /// How much.
    pub amount: Amount,
}

/// What happened to which record, with the amounts that moved.
///
/// The order of the variants and of their fields is stored. Append new variants at the end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Event {
    /// Money moved between accounts (docs/protocol.md section 5.8).
    Transferred {
        /// Who received it.
        to: Address,
        /// How much.
        amount: Amount,
        /// What the proposer received.
        fee: Amount,
    },
    /// A turn was added to a conversation (section 5.1).
    TurnAdded {
        /// The conversation.
        conversation_id: Hash,
    },
    /// A run was requested, and its fee is held (section 5.2).
    RunRequested {
        /// The run.
        agent_run_id: Hash,
        /// Who asked and paid.
        submitter: Address,
        /// What is held.
        escrow: Amount,
    },
    /// A miner claimed a run (section 5.3).
    RunClaimed {
        /// The run.
        agent_run_id: Hash,
        /// Who claimed it.
        miner: Address,
    },
    /// A miner reported a step (section 5.4).
    RunStepped {
        /// The run.
        agent_run_id: Hash,
        /// Who reported it.
        miner: Address,
        /// The step's index.
        step_index: u64,
        /// Tokens that the model wrote.
        output_tokens: u64,
    },
    /// A miner ended a run (section 5.5).
    RunFinished {
        /// The run.
        agent_run_id: Hash,
        /// Who had asked.
        submitter: Address,
        /// Who ended it.
        miner: Address,
        /// How it ended; always a terminal status.
        status: RunStatus,
        /// How the escrow was divided.
        settlement: Settlement,
    },
    /// The submitter took a pending run back (section 5.6).
    RunCancelled {
        /// The run.
        agent_run_id: Hash,
        /// Who had asked.
        submitter: Address,
        /// How the escrow was divided.
        settlement: Settlement,
    },
    /// A claim lapsed: the run is pending again, and the miner may not claim it again (section 5.7).
    RunReopened {
        /// The run.
        agent_run_id: Hash,
        /// The miner that let its claim lapse.
        miner: Address,
    },
    /// A run ended because its deadline passed (section 5.7).
    RunTimedOut {
        /// The run.
        agent_run_id: Hash,
        /// Who had asked.
        submitter: Address,
        /// The miner that worked on it; none if nobody did.
        miner: Option<Address>,
        /// How the escrow was divided.
        settlement: Settlement,
    },
    /// A miner entered or changed its entry of the directory (section 5.9).
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
        /// With the last missing chunk: whether the bytes have the hash that was announced.
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
    /// A validator voted for a change of the set (section 5.11).
    ValidatorVoted {
        /// The candidate's key.
        public_key: PublicKey,
        /// The power that it shall have; 0 to remove it.
        power: u64,
    },
    /// A change of the validator set was decided (section 5.11).
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
        /// How much.
        amount: Amount,
    },
    /// A validator voted for a fork (section 5.12).
    ForkVoted {
        /// The fork.
        fork: String,
        /// The first block in which its rules shall hold.
        height: u64,
    },
    /// The height of a fork was fixed (section 5.12).
    ForkFixed {
        /// The fork.
        fork: String,
        /// The first block in which its rules hold.
        height: u64,
    },
    /// A validator voted for a value of a parameter (section 5.13).
    ParamVoted {
        /// The parameter.
        name: String,
        /// The value that it shall have.
        value: u64,
        /// The first block in which it shall have it.
        height: u64,
    },
    /// A parameter's next value was fixed (section 5.13).
    ParamFixed {
        /// The parameter.
        name: String,
        /// The value that it will have.
        value: u64,
        /// The first block in which it has it.
        height: u64,
    },
    /// What the places in the block cost (section 15). Every block from v7 on has one.
    FeesCharged {
        /// The base fee of this block, in micro-OMBRA per KiB.
        base_fee: u64,
        /// The inclusion fees of its transactions, burned.
        burned: Amount,
        /// The tips of its transactions but those of transfers, for the proposer.
        tips: Amount,
        /// The base fee of the next block.
        next_base_fee: u64,
    },
    /// A miner put money at stake (section 5.14).
    BondAdded {
        /// How much.
        amount: Amount,
    },
    /// A miner took money out of its bond (section 5.15).
    UnbondingBegun {
        /// How much.
        amount: Amount,
        /// When it is paid out.
        due: u64,
    },
    /// Money that a miner had taken out of its bond was paid out (section 5.15).
    UnbondingPaid {
        /// The miner.
        miner: Address,
        /// How much.
        amount: Amount,
    },
    /// A miner ended a run, and its reward is held (section 5.5).
    RunHeld {
        /// The run.
        agent_run_id: Hash,
        /// Who had asked.
        submitter: Address,
        /// Who ended it.
        miner: Address,
        /// How it ended; always a terminal status.
        status: RunStatus,
        /// How the escrow is divided; the reward is not paid yet.
        settlement: Settlement,
        /// Until when the submitter may refuse the reward.
        until: u64,
    },
    /// A reward that was held was paid (section 5.7).
    RewardPaid {
        /// The run.
        agent_run_id: Hash,
        /// Who had asked.
        submitter: Address,
        /// Who received it.
        miner: Address,
        /// How the run had ended.
        status: RunStatus,
        /// How much.
        amount: Amount,
    },
    /// A submitter refused the reward that was held (section 5.16).
    RewardRefused {
        /// The run.
        agent_run_id: Hash,
        /// Who refused.
        submitter: Address,
        /// Whose reward it was.
        miner: Address,
        /// How the run had ended.
        status: RunStatus,
        /// How much of the escrow was burned.
        amount: Amount,
    },
    /// The end of a block unlocked a part of a miner's bond that was locked for a run (section 5.14).
    BondUnlocked {
        /// The run.
        agent_run_id: Hash,
        /// The miner.
        miner: Address,
        /// How much is free again.
        unlocked: Amount,
        /// How much was burned.
        burned: Amount,
    },
    /// Somebody proved that a validator signed two different things: it loses its power for good
    /// (section 5.17).
    EvidenceTaken {
        /// The validator's key.
        public_key: PublicKey,
        /// The height about which it contradicted itself.
        height: u64,
    },
    /// A miner ended a run without having worked on it: the run is pending again, and the miner may not
    /// claim it again (section 5.5).
    RunGivenBack {
        /// The run.
        agent_run_id: Hash,
        /// The miner that gave it back.
        miner: Address,
    },
    /// An agent was published, or a version of one (section 5.18).
    AgentRegistered {
        /// The agent.
        agent_id: Hash,
        /// Whose it is.
        owner: Address,
        /// The version.
        version: String,
    },
    /// An agent takes no more calls (section 5.19).
    AgentRetired {
        /// The agent.
        agent_id: Hash,
    },
    /// A miner made or changed an offer, or took it back (section 5.20).
    OfferSet {
        /// For which executor.
        executor: ExecutorId,
        /// What it offers; none any more if it took it back.
        offer: Option<Offer>,
    },
    /// A part of a miner's bond was locked because it was drawn as a member of a call (section 17).
    CallBondLocked {
        /// The call.
        call_id: Hash,
        /// The miner.
        miner: Address,
        /// How much.
        amount: Amount,
    },
    /// The end of a block unlocked what was locked of a miner's bond for a call (section 17).
    CallBondUnlocked {
        /// The call.
        call_id: Hash,
        /// The miner.
        miner: Address,
        /// How much is free again.
        unlocked: Amount,
        /// How much was burned.
        burned: Amount,
    },
    /// Something happened to a call (section 18).
    CallChanged {
        /// The call.
        call_id: Hash,
        /// What.
        change: CallChange,
    },
}

/// What the places in a block cost (docs/protocol.md section 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlockFees {
    /// The base fee of the block, in micro-OMBRA per KiB.
    pub base_fee: u64,
    /// The inclusion fees of its transactions, burned.
    pub burned: Amount,
    /// The tips of its transactions except those of transfers, for the proposer.
    pub tips: Amount,
    /// The base fee of the next block.
    pub next_base_fee: u64,
}

/// What a block did to a miner's bond beside the transactions of that miner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BondChange {
    /// How much is locked that was free.
    pub locked: Amount,
    /// How much is free again.
    pub unlocked: Amount,
    /// How much of what was locked was burned.
    pub burned: Amount,
}

/// What an event does to the money that is held for a submitter's runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EscrowChange {
    /// So much more is held.
    Held(Amount),
    /// What was held for a run was divided.
    Released(Settlement),
}

impl Event {
    /// The account beside the transaction's sender whose history the event belongs to: the receiver of
    /// a transfer, or the submitter of a run that its miner ended.
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

    /// What the block did to a miner's bond beside the transactions of that miner.
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
