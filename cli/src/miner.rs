//! `ombra miner`: works on agent runs for their fee, and tells about it.

mod command;
mod confinement;
mod control;
mod error;
mod figures;
mod market;
mod monitor;
mod place;
mod policy;
mod report;
mod selftest;
mod start;
mod status;
mod tell;
mod work;

pub(crate) use command::{MinerArgs, run};
pub(crate) use confinement::{confine, wrapper};
pub(super) use control::{SameUserOrRoot, Socket};
pub(crate) use error::failed;
