//! Which of many names occurs before it: in a bounded time for whatever names strangers choose.

/// More names than these are sorted.
const LINEAR_MAX: usize = 6;
/// How many bytes of a name are sorted as a number.
const PREFIX_BYTES: usize = 8;

/// Names with the numbers of their places, which ascend. What is sorted is a number of the first bytes
/// of the name, its length and its place, from the highest to the lowest bits.
#[derive(Clone, Default, Debug)]
pub(crate) struct Repeats(Vec<u128>);

impl Repeats {
    /// Room for so many names.
    pub(crate) fn with_capacity(names: usize) -> Self {
        Self(Vec::with_capacity(names))
    }

    /// Forgets all names.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds the name at a place behind all others.
    pub(crate) fn push(&mut self, name: &str, place: u32) {
        let mut prefix = [0; PREFIX_BYTES];
        for (to, from) in prefix.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        let (prefix, length) = (u64::from_be_bytes(prefix), u32::try_from(name.len()));
        let length = u128::from(length.unwrap_or(u32::MAX)) << u32::BITS;
        self.0.push((u128::from(prefix) << u64::BITS) | length | u128::from(place));
    }

    /// The place of the first name that occurs before it. The order of the names is lost.
    pub(crate) fn first<'a>(&mut self, name_at: impl Fn(u32) -> &'a str) -> Option<u32> {
        if self.0.len() <= LINEAR_MAX {
            let is_same = |left: u128, right: u128| {
                are_alike(left, right) && {
                    let (left, right) = (name_at(place_of(left)), name_at(place_of(right)));
                    left.len() <= PREFIX_BYTES || left == right
                }
            };
            let mut names = self.0.iter().enumerate();
            return names.find_map(|(count, name)| {
                let occurs = self.0.iter().take(count).any(|earlier| is_same(*earlier, *name));
                occurs.then(|| place_of(*name))
            });
        }
        self.0.sort_unstable();
        let alike = self.0.chunk_by(|left, right| are_alike(*left, *right));
        alike.filter_map(|alike| second_of(alike, &name_at)).min()
    }
}

/// Whether two names have the same first bytes and the same length.
const fn are_alike(left: u128, right: u128) -> bool {
    left >> u32::BITS == right >> u32::BITS
}

fn place_of(name: u128) -> u32 {
    u32::try_from(name & u128::from(u32::MAX)).unwrap_or(u32::MAX)
}

/// The first name that occurs before it, of names that are alike in the order of their places.
fn second_of<'a>(alike: &[u128], name_at: &impl Fn(u32) -> &'a str) -> Option<u32> {
    let (first, second) = (alike.first()?, alike.get(1)?);
    if name_at(place_of(*first)).len() <= PREFIX_BYTES {
        return Some(place_of(*second));
    }
    let mut names: Vec<_> =
        alike.iter().map(|name| (name_at(place_of(*name)), place_of(*name))).collect();
    names.sort_unstable();
    let same = names.chunk_by(|left, right| left.0 == right.0);
    same.filter_map(|same| same.get(1).map(|second| second.1)).min()
}
