//! Pages of lists.

use crate::cursor::{self, Position};
use crate::ports::Slice;
use crate::wire::PageOf;

/// An entry of a page: what is answered, its size in bytes, and its place in the list.
pub(super) struct Entry<T, P> {
    pub(super) item: T,
    pub(super) bytes: usize,
    pub(super) position: P,
}

/// A page that goes on where the port says.
pub(super) fn page<T, U, P: Position>(slice: Slice<T, P>, view: impl FnMut(T) -> U) -> PageOf<U> {
    let Slice { items, next } = slice;
    PageOf {
        items: items.into_iter().map(view).collect(),
        next_cursor: next.as_ref().map(cursor::encode),
    }
}

/// Where a list goes on of which only so many entries were loaded.
pub(super) fn next_after<P: Copy>(asked: &[P], loaded: usize, next: Option<P>) -> Option<P> {
    let last = asked.get(loaded.saturating_sub(1)).copied();
    if loaded < asked.len() { last } else { next }
}

/// A page that ends when it holds `bytes_max`, though never empty, and goes on after its last
/// entry.
pub(super) fn page_within<T, P: Position>(
    entries: Vec<Entry<T, P>>,
    next: Option<&P>,
    bytes_max: usize,
) -> PageOf<T> {
    let mut items = Vec::with_capacity(entries.len());
    let mut bytes_total = 0_usize;
    let mut last = None;
    for Entry { item, bytes, position } in entries {
        bytes_total = bytes_total.saturating_add(bytes);
        if bytes_total > bytes_max && !items.is_empty() {
            return PageOf { items, next_cursor: last.as_ref().map(cursor::encode) };
        }
        items.push(item);
        last = Some(position);
    }
    PageOf { items, next_cursor: next.map(cursor::encode) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_page_goes_on_after_its_last_entry() {
        let entry = |n: u64| Entry { item: n, bytes: 10, position: n };
        let page = page_within((1..=5).map(entry).collect(), Some(&5), 25);
        assert_eq!((vec![1, 2], Some(cursor::encode(&2_u64))), (page.items, page.next_cursor));
    }

    #[test]
    fn a_page_holds_at_least_one_entry_and_ends_with_the_list() {
        let entry = Entry { item: 1, bytes: 1_000, position: 1_u64 };
        let page = page_within(vec![entry], None, 25);
        assert_eq!((vec![1], None), (page.items, page.next_cursor));
    }
}
