//! Where the crates meet: each file implements the ports of one crate over the others.

pub(crate) mod blocks;
pub(crate) mod consensus;
pub(crate) mod events;
pub(crate) mod gossip;
pub(crate) mod operator;
pub(crate) mod pool;
pub(crate) mod reads;
pub(crate) mod submit;
