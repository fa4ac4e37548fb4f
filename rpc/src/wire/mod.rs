//! The shapes of the public interface: what is read from parameters and written into results.
//!
//! Field names are camelCase, amounts decimal strings, hashes and addresses lowercase hex, times
//! integer milliseconds. An optional member that is absent is left out.

mod account;
mod agent;
mod block;
mod build;
mod call;
mod chain;
mod directory;
mod event;
mod kinds;
mod market;
mod offer;
mod params;
mod pool;
mod proof;
mod rest;
mod rules;
mod run;
mod schema;
mod transaction;
mod turn;

pub use account::{AccountTx, AccountView, Direction};
pub use agent::{AgentSummary, AgentVersionView, AgentView};
pub use block::{
    BlockFeesView, BlockSummary, BlockTransactions, BlockView, Commit, CommitEntry, HeaderView,
};
pub use build::{BuildEnvelope, Built, SignedParts};
pub use call::{
    AgentEvent, AgentEventKind, AnswerView, AppealView, BillView, CallEvent, CallEventKind,
    CallPricesView, CallQuery, CallState, CallView, CallWaitOptions, CommitmentQuery,
    CommitmentView, ConditionalView, GroupView, LimitsView, MemberAnswer, MemberView,
    RandomnessView, RevealView, RoundView, TermsView, WaitUntil,
};
pub use chain::{
    BlockRange, ChainInfo, EquivocationView, FeeSchedule, FixedForkView, ForkView, ForkVoterView,
    ForkVotesView, Forks, ForksView, NetInfo, PeerView, PunishedKeyView, SignedChoiceView,
    SupplyView, ValidatorView, ValidatorVoteView,
};
pub use directory::{BlobView, BondView, MinerView, UnbondingView};
pub use event::{BlockEvent, Lagged, PoolNotice, PoolNoticeKind, RunEvent, RunEventKind, TxEvent};
pub(crate) use kinds::field_schema;
pub use kinds::{TxObject, UnsignedTx, kinds_document};
pub use market::{
    ArgumentsText, CandidateView, DecodeQuery, DecodedResult, DecodedValue, ElectionView,
    EncodeQuery, EncodedCall, EstimateQuery, EstimateView, LimitsQuery, PricesQuery,
};
pub use offer::OfferView;
pub use params::{
    AgentQuery, BlockSelector, BlocksQuery, EventFilter, EventKind, MinerSelector, OfferProof,
    OfferQuery, Page, PageLimit, PeerQuery, ProofQuery, RunQuery, TxTexts, WaitOptions,
};
pub use pool::{PoolContent, PoolKindStatus, PoolStatus, SenderPool};
pub use proof::{ProofLeaf, ProofView};
pub use rest::{
    Accepted, BalanceView, BlockList, BlockName, ConversationHit, ConversationTurns, Distribution,
    FeeEstimate, Found, FullBlocks, GenesisHeader, HeightView, HeldBy, Holder, Holders,
    ListedBlock, MempoolView, RestAccount, RestBlock, RestHeader, RestTx, RunList, RunSteps,
    SocketBlock, StatsView, TxPlace,
};
pub use rules::{
    InclusionEstimate, NextValueView, ParamView, ParamVoterView, ParamVotesView, ParamsView,
    TipsView,
};
pub(crate) use run::RunTexts;
pub use run::{
    ConversationId, FeeSplit, ProtectionView, RunState, RunView, SettlementView, StepView,
    ToolCallView,
};
pub use schema::{
    AddressText, AmountText, ExecutorText, HashText, PublicKeyText, SignatureText, VrfProofText,
};
pub use transaction::{
    BalanceChange, DropView, EffectsView, ErrorView, SendAnswer, SendItem, Simulation, TxStatus,
    TxView, WaitView,
};
pub use turn::{AttachmentView, Relation, TurnView};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::Transaction;

/// One page of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageOf<T> {
    /// The entries.
    pub items: Vec<T>,
    /// What to ask with for the next page; null at the end.
    pub next_cursor: Option<String>,
}

/// The signed transaction as a JSON value with the signer's text.
pub(crate) fn tx_object(tx: &Transaction) -> Box<RawValue> {
    RawValue::from_string(tx.to_json()).expect("a transaction's text is JSON")
}
