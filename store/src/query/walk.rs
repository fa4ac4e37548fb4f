//! Walks over indexes of runs and calls, the newest first, one beside the other.

use state::error::StorageError;
use state::table::{Key, Table};
use types::{Hash, TxLocation};

use crate::meta::{TIP_CELL, Tip};
use crate::open_rows::{Below, ByStatus, OpenRows};
use crate::rocks::Back;
use crate::row::typed;
use crate::snapshot::Snapshot;

/// What a page has, and what it looks at, at most.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Entries.
    pub(super) limit: usize,
    /// Records and rows of indexes, but for one round over its lists.
    pub(super) rows_max: usize,
}

/// A part of a list.
pub(super) struct Walked<T> {
    pub(super) items: Vec<T>,
    /// Where to go on; none when there is nothing more.
    pub(super) next: Option<TxLocation>,
}

/// The newest that are in every list. Each list is in order, so what is in all of them is no newer than
/// the oldest of their heads. `take` reads a record, and answers none for one that is not wanted.
pub(super) fn in_all<T>(
    mut lists: Vec<List<'_>>,
    bounds: Bounds,
    mut take: impl FnMut(Hash) -> Result<Option<T>, StorageError>,
) -> Result<Walked<T>, StorageError> {
    let mut items = Vec::new();
    let mut seen = lists.len();
    // A list that has ended has no head: `None` is less than any.
    while let Some(place) = lists.iter().map(List::place).min().flatten() {
        if items.len() >= bounds.limit || seen >= bounds.rows_max {
            return Ok(Walked { items, next: Some(just_after(place)) });
        }
        for list in lists.iter_mut().filter(|list| list.place() > Some(place)) {
            list.go_to(place)?;
            seen = seen.saturating_add(1);
        }
        if lists.iter().any(|list| list.place() != Some(place)) {
            continue;
        }
        let Some(list) = lists.first_mut() else { break };
        let Some((_, id)) = list.head else { break };
        items.extend(take(id)?);
        list.go_on()?;
        seen = seen.saturating_add(1);
    }
    Ok(Walked { items, next: None })
}

/// The newest that are in one of the lists, none of which is in two.
pub(super) fn in_any<T>(
    lists: Vec<List<'_>>,
    bounds: Bounds,
    take: impl FnMut(Hash) -> Result<Option<T>, StorageError>,
) -> Result<Walked<T>, StorageError> {
    let rows_max = bounds.rows_max.saturating_sub(lists.len());
    in_all(vec![List::joined(lists)], Bounds { rows_max, ..bounds }, take)
}

impl Snapshot<'_> {
    /// A walk over the rows of an index that begin with `prefix`, from the first one below `before`.
    pub(super) fn list<T>(
        &self,
        prefix: &[u8],
        before: Option<TxLocation>,
    ) -> Result<List<'_>, StorageError>
    where
        T: Table<Value = Hash>,
        T::Key: RequestedAt,
    {
        let to = match before {
            Some(TxLocation { height, position }) => {
                [prefix, &(height, position).to_bytes()].concat()
            }
            None => [prefix, &[0xff; 13]].concat(),
        };
        let rows = self.source.back(T::ID, prefix, &to)?;
        let read =
            |key: &[u8], value: &[u8]| typed::<T>(key, value).map(|(key, id)| (key.place(), id));
        let walk = StoredWalk { rows, prefix: prefix.to_vec(), read };
        let head = walk.head()?;
        Ok(List { rows: Rows::Stored(walk), head })
    }

    /// A walk over the rows of a status that are in memory, from the first one below `before`.
    pub(super) fn kept<'a, T: ByStatus>(
        &'a self,
        rows: &'a OpenRows,
        status: u8,
        before: Option<TxLocation>,
    ) -> Result<List<'a>, StorageError> {
        let tip: Option<Tip> = self.source.cell(TIP_CELL)?;
        let height = tip.map_or(0, |tip| tip.height);
        let walk = OpenWalk { snapshot: self, rows, stored: stored_below::<T>, status, height };
        let end = TxLocation { height: u64::MAX, position: u32::MAX };
        let head = walk.below(before.unwrap_or(end))?;
        Ok(List { rows: Rows::Kept(walk), head })
    }
}

/// The newest row of a status below a place, in the database.
fn stored_below<T: ByStatus>(
    snapshot: &Snapshot<'_>,
    place: (u8, u64, u32),
) -> Result<Option<Head>, StorageError> {
    let (from, to) = ([place.0], place.to_bytes());
    let rows = snapshot.source.back(T::ID, &from, &to)?;
    let row = rows.item()?.map(|(key, id)| typed::<T>(key, id));
    Ok(row.transpose()?.map(|(key, id)| (key.place(), id)))
}

/// An index that is walked from its newest row on.
pub(super) struct List<'a> {
    rows: Rows<'a>,
    head: Option<Head>,
}

/// Where the rows of an index are.
enum Rows<'a> {
    /// In the database: rows of this index are never deleted.
    Stored(StoredWalk<'a>),
    /// In memory.
    Kept(OpenWalk<'a>),
    /// In several lists, each in one of them.
    Joined(Vec<List<'a>>),
}

/// The place of a request, and the id of its run or call.
type Head = (TxLocation, Hash);

impl<'a> List<'a> {
    /// What is in one of these lists; none of it is in two.
    pub(super) fn joined(lists: Vec<Self>) -> Self {
        let head = newest(&lists);
        List { rows: Rows::Joined(lists), head }
    }

    /// Where that was requested which the walk is at; none at its end.
    fn place(&self) -> Option<TxLocation> {
        self.head.map(|(place, _)| place)
    }

    /// Goes to the next older one.
    fn go_on(&mut self) -> Result<(), StorageError> {
        let Some((place, _)) = self.head else { return Ok(()) };
        self.head = match &mut self.rows {
            Rows::Stored(walk) => {
                walk.rows.prev();
                walk.head()?
            }
            Rows::Kept(walk) => walk.below(place)?,
            Rows::Joined(lists) => {
                for list in lists.iter_mut().filter(|list| list.place() == Some(place)) {
                    list.go_on()?;
                }
                newest(lists)
            }
        };
        Ok(())
    }

    /// Goes to the newest one that is no newer than `place`.
    fn go_to(&mut self, place: TxLocation) -> Result<(), StorageError> {
        self.head = match &mut self.rows {
            Rows::Stored(walk) => {
                let TxLocation { height, position } = place;
                let key = [walk.prefix.as_slice(), &(height, position).to_bytes()].concat();
                walk.rows.seek(&key);
                walk.head()?
            }
            Rows::Kept(walk) => walk.below(just_after(place))?,
            Rows::Joined(lists) => {
                for list in lists.iter_mut().filter(|list| list.place() > Some(place)) {
                    list.go_to(place)?;
                }
                newest(lists)
            }
        };
        Ok(())
    }
}

fn newest(lists: &[List<'_>]) -> Option<Head> {
    lists.iter().filter_map(|list| list.head).max()
}

/// A walk over rows of the database.
struct StoredWalk<'a> {
    rows: Back<'a>,
    /// What the keys of the rows begin with.
    prefix: Vec<u8>,
    read: fn(&[u8], &[u8]) -> Result<Head, StorageError>,
}

impl StoredWalk<'_> {
    fn head(&self) -> Result<Option<Head>, StorageError> {
        self.rows.item()?.map(|(key, value)| (self.read)(key, value)).transpose()
    }
}

/// Finds the newest row of a status below a place, in the database.
type StoredBelow = fn(&Snapshot<'_>, (u8, u64, u32)) -> Result<Option<Head>, StorageError>;

/// A walk over the rows of a status that is left.
struct OpenWalk<'a> {
    snapshot: &'a Snapshot<'a>,
    rows: &'a OpenRows,
    /// Asks the database instead.
    stored: StoredBelow,
    status: u8,
    /// That of the snapshot.
    height: u64,
}

impl OpenWalk<'_> {
    /// The newest one that was requested before a place. The database is asked only if it has moved on
    /// by two blocks since the snapshot was taken.
    fn below(&self, place: TxLocation) -> Result<Option<Head>, StorageError> {
        let place = (self.status, place.height, place.position);
        match self.rows.below(place, self.height) {
            Below::Known(head) => Ok(head),
            Below::Forgotten => (self.stored)(self.snapshot, place),
        }
    }
}

/// The cursor from which the next page begins with what was requested at `place`.
const fn just_after(TxLocation { height, position }: TxLocation) -> TxLocation {
    match position.checked_add(1) {
        Some(position) => TxLocation { height, position },
        None => TxLocation { height: height.saturating_add(1), position: 0 },
    }
}

/// The place in the chain at the end of an index key.
pub(super) trait RequestedAt {
    fn place(&self) -> TxLocation;
}

impl<A> RequestedAt for (A, u64, u32) {
    fn place(&self) -> TxLocation {
        TxLocation { height: self.1, position: self.2 }
    }
}
