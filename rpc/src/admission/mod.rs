//! What clients may have: how fast they ask, and their share of connections, places and memory, so that
//! none can take everything from others. Nothing here knows what is asked or how it came.

mod client;
mod memory;
mod rate;
mod readers;
mod requests;
mod share;

pub(crate) use client::{Calls, Client};
pub(crate) use memory::{AnswerMemory, FREE_BYTES, Kept, Ledger, Room, wait_for_room};
pub(crate) use rate::{Bucket, RateStanding, quota};
pub(crate) use readers::{READERS_MAX, ReaderPlace, Readers};
pub(crate) use requests::{Full, Messages, RequestBlocks, RequestMemory};
pub(crate) use share::{Held, Party, Share, Shares};
