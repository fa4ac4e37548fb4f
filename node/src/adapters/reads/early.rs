//! Where lists end on a node that began with a snapshot.

use rpc::ports::{PortFault, Slice};
use types::TxLocation;

/// Lists go back in time and end where the node's blocks begin: the next page is refused, so that
/// nobody takes the end of what is here for the end of what there is. A list can have items from before
/// these blocks, those that were open when the node began; `place` is where an item stands.
pub(super) fn ended_early<T>(
    slice: Slice<T, TxLocation>,
    earliest: u64,
    place: impl FnOnce(&T) -> TxLocation,
) -> Result<Slice<T, TxLocation>, PortFault> {
    if earliest <= 1 || slice.next.is_some() {
        return Ok(slice);
    }
    let Some(last) = slice.items.last().map(place) else {
        return Err(PortFault::history(earliest));
    };
    let first = TxLocation { height: earliest, position: 0 };
    Ok(Slice { next: Some(last.min(first)), ..slice })
}

#[cfg(test)]
mod tests {
    //! Lists that are read to their end, page by page.

    use rpc::ports::Missing;

    use super::*;

    const EARLIEST: u64 = 1_001;

    fn at(height: u64) -> TxLocation {
        TxLocation { height, position: 0 }
    }

    /// A page of a list in which something stands at each of these heights, the newest first.
    fn page(
        heights: &[u64],
        before: Option<TxLocation>,
        limit: usize,
    ) -> Slice<TxLocation, TxLocation> {
        let places = heights.iter().copied().map(at);
        let places = places.filter(|place| before.is_none_or(|before| *place < before));
        super::super::page(places.take(limit + 1).collect(), limit, |place| *place)
    }

    /// Reads on until the node refuses; answers the heights that it told before.
    fn told(heights: &[u64], limit: usize) -> Vec<u64> {
        let (mut told, mut before) = (Vec::new(), None);
        // Each page but the last one has something.
        for _ in 0..=heights.len() {
            match ended_early(page(heights, before, limit), EARLIEST, |place| *place) {
                Ok(Slice { items, next }) => {
                    told.extend(items.iter().map(|place| place.height));
                    assert!(next.is_some(), "the list is not complete");
                    assert!(before.is_none() || next < before, "{next:?} is not beyond {before:?}");
                    before = next;
                }
                Err(fault) => {
                    assert_eq!(fault.missing, Some(Missing::BlocksBefore(EARLIEST)));
                    return told;
                }
            }
        }
        unreachable!("the list goes on for ever: {told:?}")
    }

    #[test]
    fn a_list_is_refused_where_the_blocks_begin_and_tells_everything_once_before() {
        for heights in [&[][..], &[1_005, 1_001], &[1_005, 990, 700], &[990]] {
            for limit in 1..=4 {
                assert_eq!(told(heights, limit), heights, "{limit}");
            }
        }
    }

    #[test]
    fn a_list_on_a_node_that_has_every_block_ends() {
        let whole = page(&[5, 3], None, 4);
        assert_eq!(ended_early(whole.clone(), 1, |place| *place).unwrap(), whole);
        assert_eq!(whole.next, None);
    }
}
