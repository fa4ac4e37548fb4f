//! What an operator sees of a miner, and is told by it.
//!
//! ```text
//! engine ──events──▶ Tally ──▶ metrics            journal ──┐
//! node, back end ──▶ Lookout ──▶ alarms            tell::*  ├──▶ records ──▶ CLI, control socket
//!                         └────▶ StatusService ──────────────────────┘
//! ```
//!
//! Every record is made by one function of the journal (`tell`), whether a running miner is asked
//! or the journal of a stopped one is read. Nothing here decides about runs or signs anything.

mod alarm;
mod config;
mod health_probe;
pub mod market;
mod measured;
mod record;
mod status_service;
mod tally;
pub mod tell;
#[cfg(test)]
mod tests;
mod trial;

pub use alarm::{Alarm, Facts, Idle, alarms};
pub use config::{AlarmConfig, MetricsConfig, SweepConfig};
pub use health_probe::look_out;
pub use market::{AssignmentLine, BondFact, MarketFact, OfferFact, OfferState, WhyCall};
pub use measured::Measured;
pub use record::{
    AlarmFact, BackendFact, DecisionCount, NodeAnswers, NodeFact, NodeState, PolicyFact, Process,
    RunLine, StakeFact, Starting, Status, SweepFact, ToolFact, WaitFact, WhyRecord,
};
pub use status_service::{Check, Plan, StatusService, Unread};
pub use tally::{Counts, Tally};
pub use trial::{Trial, Tried};
