//! How many of something there are at the moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Number(Arc<AtomicU64>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct One(Number);

impl Number {
    /// One more.
    pub(crate) fn one(&self) -> One {
        self.0.fetch_add(1, Ordering::Relaxed);
        One(self.clone())
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        let Self(Number(number)) = self;
        number.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    //! What is counted.

    use super::Number;

    #[test]
    fn what_is_dropped_counts_no_longer() {
        let number = Number::default();
        let (one, other) = (number.one(), number.one());
        assert_eq!(2, number.get());
        drop(one);
        assert_eq!(1, number.get());
        drop(other);
        assert_eq!(0, number.get());
    }
}
