//! Values in numbered cells that are used again.

/// The number of a cell.
pub(crate) type Slot = usize;

/// A vector with holes. Its size is the largest number of values that it ever held at once.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    cells: Vec<Option<T>>,
    free: Vec<Slot>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { cells: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> Slot {
        let reused = self.free.pop().and_then(|slot| Some((slot, self.cells.get_mut(slot)?)));
        if let Some((slot, cell)) = reused {
            *cell = Some(value);
            return slot;
        }
        self.cells.push(Some(value));
        self.cells.len().saturating_sub(1)
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<T> {
        let value = self.cells.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        self.cells.get(slot)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.cells.get_mut(slot)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        self.cells.iter().enumerate().filter_map(|(slot, cell)| Some((slot, cell.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Slot, &mut T)> {
        self.cells.iter_mut().enumerate().filter_map(|(slot, cell)| Some((slot, cell.as_mut()?)))
    }

    /// One more than the largest slot that was ever used.
    pub(crate) const fn bound(&self) -> usize {
        self.cells.len()
    }
}
