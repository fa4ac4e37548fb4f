//! Looking through blocks for the events that a subscriber wants, a slice at a time: so many blocks, so
//! long, so many bytes. A slice in which nothing is found ends as soon as one that is full, so nobody
//! reads for longer than others by looking for what is not there.

use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::filter::Filter;
use super::hub::Hub;
use super::item::Item;
use crate::admission::FREE_BYTES;
use crate::error::RpcError;

/// Blocks in a slice.
const BLOCKS_MAX: u64 = 64;
/// What is read for one call of the rate limit: 64 empty blocks, or fewer that are full.
const BYTES_PER_CALL: u64 = BLOCKS_MAX * BYTES_PER_BLOCK;
/// What a block counts on top of its texts and its many events.
const BYTES_PER_BLOCK: u64 = 4 * 1024;
/// How long a slice reads, but for the block that it has begun.
const TIME_MAX: Duration = Duration::from_millis(2);
/// Events in a slice that are not counted in the memory for answers.
pub(crate) const BYTES_MAX: usize = 2 * FREE_BYTES;

/// The next event to look at. A subscriber keeps this and nothing else of what it has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cursor {
    /// The block.
    pub(crate) height: u64,
    /// The place among the block's events.
    pub(crate) item: usize,
}

impl Cursor {
    /// The first event of a block.
    pub(crate) const fn at(height: u64) -> Self {
        Self { height, item: 0 }
    }
}

/// What a slice brought.
#[derive(Debug)]
pub(crate) struct Slice {
    /// Wanted events, in order.
    pub(crate) found: Vec<Box<RawValue>>,
    /// Where to go on.
    pub(crate) next: Cursor,
    /// How many bytes of blocks were read to their end.
    pub(crate) read: u64,
    /// If nothing was found because the next event is too large for the room that there is: its
    /// size.
    pub(crate) needs: Option<usize>,
}

/// What a replay has read and not paid for yet.
#[derive(Debug, Default)]
pub(crate) struct Meter(u64);

impl Meter {
    /// Counts what was read; answers how many calls are to be paid for it.
    pub(crate) fn calls(&mut self, read: u64) -> u64 {
        let total = self.0.saturating_add(read);
        self.0 = total % BYTES_PER_CALL;
        total / BYTES_PER_CALL
    }
}

/// Reads a slice of the blocks up to `tip`. An event larger than a slice is found if `room` says that
/// there is room for it, then alone.
///
/// # Errors
/// Of the first block; a later one ends the slice before it.
pub(crate) fn scan(
    hub: &Hub,
    filter: &Filter,
    from: Cursor,
    tip: u64,
    room: usize,
) -> Result<Slice, RpcError> {
    let (started, mut blocks) = (Instant::now(), 0);
    let mut slice = Slice { found: Vec::new(), next: from, read: 0, needs: None };
    let mut bytes = 0;
    while slice.next.height <= tip && blocks < BLOCKS_MAX && started.elapsed() < TIME_MAX {
        let (items, read) = match hub.items(slice.next.height, filter.kind) {
            Ok(read) => read,
            Err(error) if blocks == 0 => return Err(error),
            Err(_) => break,
        };
        if !pick(&items, filter, room, &mut bytes, &mut slice) {
            break;
        }
        slice.next = Cursor::at(slice.next.height.saturating_add(1));
        slice.read = slice.read.saturating_add(read).saturating_add(BYTES_PER_BLOCK);
        blocks += 1;
    }
    Ok(slice)
}

/// Picks what is wanted of a block; false if the slice is full before its end.
fn pick(
    items: &[Item],
    filter: &Filter,
    room: usize,
    bytes: &mut usize,
    slice: &mut Slice,
) -> bool {
    for (index, item) in items.iter().enumerate().skip(slice.next.item) {
        if !filter.wants(&item.keys) {
            continue;
        }
        let size = item.json.get().len();
        let fits = bytes.saturating_add(size) <= BYTES_MAX;
        let fits_alone = slice.found.is_empty() && size <= room;
        if !fits && !fits_alone {
            slice.next.item = index;
            slice.needs = slice.found.is_empty().then_some(size);
            return false;
        }
        *bytes = bytes.saturating_add(size);
        slice.found.push(item.json.clone());
    }
    true
}
