//! `ombra query`: the node's answers as tables, or as the JSON that the node sent.

pub mod agents;
mod answer;
pub mod calls;
mod certified;
mod command;
mod election;
mod forks;
mod lists;
mod pages;
mod single;

pub use command::{
    AccountArgs, BlockArgs, BondArgs, ConversationArgs, FeesArgs, MinersArgs, OffersArgs,
    PlainArgs, PunishedArgs, QueryCommand, RunArgs, RunsArgs, StepsArgs, TxArgs, run,
};
pub use pages::PageArgs;

#[cfg(test)]
mod tests;
