//! Chains of several nodes, as real processes.

mod local;
mod script;
