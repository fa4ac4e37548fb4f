//! Every query of the public interface, on a [`super::Snapshot`]: one file for each subject.

mod accounts;
mod blobs;
mod blocks;
mod calls;
mod conversations;
mod miners;
mod proofs;
mod runs;
mod transactions;
mod validators;
mod walk;

pub use blocks::StoredHeader;
pub use calls::{CALL_ROWS_MAX, CallDetail, CallFilter, CallPage};
pub use conversations::TurnDetail;
pub use miners::MinerDetail;
pub use proofs::StateProof;
pub use runs::{RUN_ROWS_MAX, RunDetail, RunFilter, RunPage, StepDetail};
pub use transactions::StoredTx;
pub use validators::{KEY_ROWS_MAX, PunishedPage, StoredSet};
