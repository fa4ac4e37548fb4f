//! What an operator sees of a miner, and is told by it.
//!
//! ```text
//! engine ──events──▶ Tally ──▶ metrics            journal ──┐
//! node, back end ──▶ Lookout ──▶ alarms            tell::*  ├──▶ records ──▶ CLI, control socket
//!                         └────▶ Desk ──────────────────────┘
//! ```
//!
//! Every record is made by one function of the journal (`tell`), whether a running miner is asked
//! or the journal of a stopped one is read. Nothing here decides about runs or signs anything.

mod alarm;
mod config;
mod desk;
mod lookout;
pub mod market;
mod measured;
mod record;
mod tally;
pub mod tell;
#[cfg(test)]
mod tests;
mod trial;

pub use alarm::{Alarm, Facts, Idle, alarms};
pub use config::{AlarmConfig, MetricsConfig, SweepConfig};
pub use desk::{Check, Desk, Plan, Unread};
pub use lookout::look_out;
pub use market::{AssignmentLine, BondFact, MarketFact, OfferFact, OfferState, WhyCall};
pub use measured::Measured;
pub use record::{
    AlarmFact, BackendFact, DecisionCount, NodeAnswers, NodeFact, NodeState, PolicyFact, Process,
    RunLine, StakeFact, Starting, Status, SweepFact, ToolFact, WaitFact, WhyRecord,
};
pub use tally::{Counts, Tally};
pub use trial::{Trial, Tried};
