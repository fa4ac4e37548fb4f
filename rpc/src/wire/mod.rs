//! The shapes of the public interface: what the node reads from parameters and writes into results.
//!
//! Field names are camelCase, amounts are decimal strings, hashes and addresses are lowercase hex,
//! and times are integer milliseconds. An optional member without a value is left out.

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
mod page;
mod params;
mod place;
mod pool;
mod proof;
mod rest;
mod rules;
mod run;
mod schema;
mod text;
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
pub use event::{
    BlockEvent, Lagged, PoolNotice, PoolNoticeKind, PoolNoticeStanding, RunEvent, RunEventKind,
    TxEvent,
};
pub(crate) use kinds::field_schema;
pub use kinds::{TxObject, UnsignedTx, kinds_document};
pub use market::{
    ArgumentsText, CandidateView, DecodeQuery, DecodedResult, DecodedValue, ElectionView,
    EncodeQuery, EncodedCall, EstimateQuery, EstimateView, LimitsQuery, PricesQuery, TypicalView,
};
pub use offer::OfferView;
pub use page::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, Page, PageLimit, PageOf};
pub(crate) use params::parse_run_status;
pub use params::{
    AgentQuery, BlockSelector, BlocksQuery, EventFilter, EventKind, MinerSelector, OfferProof,
    OfferQuery, PeerQuery, ProofQuery, RunQuery, SUBMIT_ITEMS_MAX, TxTexts, WaitOptions,
};
pub(crate) use place::tx_with_place;
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
pub(crate) use text::tx_object;
pub use transaction::{
    BalanceChange, DropView, EffectsView, ErrorView, SendAnswer, SendItem, Simulation, TxStatus,
    TxView, WaitView,
};
pub use turn::{AttachmentView, Relation, TurnView};
