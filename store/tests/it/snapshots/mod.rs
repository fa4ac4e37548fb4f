//! Snapshots of the state: made, proved from genesis on, fetched chunk by chunk, and lived from.

pub(crate) mod busy;
mod honest;
mod killed;
mod liars;
