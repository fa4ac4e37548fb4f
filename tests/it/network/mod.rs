//! Chains of several nodes, as real processes.

mod health;
mod local;
mod monitoring;
mod script;
