//! Chains of one and of several validators in one process: the real engine, real sockets on
//! loopback, real files; only the ledger is a small one in memory.

mod alone;
mod chain;
mod time;
mod together;
mod town;
mod unheard;
