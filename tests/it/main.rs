//! The tests that need several crates, or the whole repository. One module per suite.

#[cfg(test)]
mod alone;
#[cfg(test)]
mod amnesia;
#[cfg(test)]
mod call;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod crossing;
#[cfg(test)]
mod crossing_v8;
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod dashboard;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod fake_peer;
#[cfg(test)]
mod forks;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod javascript;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod miner;
#[cfg(test)]
mod models;
#[cfg(test)]
mod network;
#[cfg(test)]
mod operate;
#[cfg(test)]
mod payer;
#[cfg(test)]
mod randomness;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod rejections;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod sdk;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod subscribers;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod validators;
#[cfg(test)]
mod wallets;
