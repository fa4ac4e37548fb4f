//! Several nodes of this network in one process, over loopback, each with a double of the pool.

mod admission;
mod blocks;
mod cut_off;
mod echo;
mod flood;
mod peers;
mod spreading;
mod streams;
mod support;
