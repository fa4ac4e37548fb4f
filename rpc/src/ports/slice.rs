//! Parts of lists.

/// Part of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice<T, P> {
    /// At most as many as asked for. May be fewer, even none, although there are more: an
    /// implementation may bound how many entries it looks at.
    pub items: Vec<T>,
    /// The position to ask with next, or none at the end. Must lie beyond the position that was
    /// asked with.
    pub next: Option<P>,
}
