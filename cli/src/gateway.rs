//! `ombra gateway`: the interface of language models, paid for out of one wallet.

mod books;
mod command;
mod control;
mod error;
mod figures;
mod key;
mod limits;
mod money;
mod monitor;
mod place;
mod requests;
mod serve;
mod tool;

pub(crate) use command::{GatewayArgs, run};
pub(super) use control::Socket;
pub(crate) use error::failed;
pub(super) use figures::Figures;
pub(super) use limits::LimitArgs;
pub(super) use monitor::serve as serve_monitoring;
pub(super) use place::PlaceArgs;
