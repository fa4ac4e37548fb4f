//! Chains of several nodes, as real processes.

mod catching_up;
mod health;
mod liar;
mod local;
mod monitoring;
mod script;
mod service;
mod trust;
