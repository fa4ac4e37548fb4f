//! The command line: one binary, `ombra`.

pub mod client;
mod clock;
mod command;
mod config;
mod db;
mod demo;
mod dev;
mod gateway;
mod genesis;
mod health;
mod home;
mod http;
mod lock;
mod mcp;
mod miner;
mod model;
mod monitor;
mod new_file;
mod outcome;
mod signed;
mod terminal;
#[cfg(test)]
mod testing;
mod testnet;
mod validator;
mod version;

pub use command::{Cli, main};
