//! Requests that were made earlier: they are found by their run, and taken back.

use redb::ReadableDatabase;
use types::Hash;

use super::Store;
use super::requests::{keep, record};
use super::tables::{REQUESTS, RUNS, Result, get};
use crate::keys::KeyId;
use crate::record::{Phase, Record, RequestId};

/// What becomes of a request that is to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBack {
    /// Its run waits for a miner, and no longer does: its worker takes the escrow back.
    Marked(Hash),
    /// Its run is not on the chain yet.
    TooEarly,
    /// A miner works on it.
    Claimed,
    /// It has ended.
    Over,
}

impl Store {
    /// The request of a key that made a run or a call.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn request_that_made(&self, key: KeyId, run: Hash) -> Result<Option<Record>> {
        let read = self.database.begin_read()?;
        let id = read.open_table(RUNS)?.get(*run.as_bytes())?.map(|it| it.value());
        let Some(id) = id else { return Ok(None) };
        let made: Option<Record> = get(&read.open_table(REQUESTS)?, id)?;
        Ok(made.filter(|it| it.key == key && it.made() == Some(run)))
    }

    /// Writes down that a run has waited long enough for a miner, if it still waits.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing is.
    pub async fn take_back(&self, id: RequestId) -> Result<TakenBack> {
        self.change(move |write| {
            let Some(known) = record(write, id)? else { return Ok(TakenBack::Over) };
            match known.phase {
                Phase::Reserved | Phase::Signed { .. } => Ok(TakenBack::TooEarly),
                Phase::Running { .. } => Ok(TakenBack::Claimed),
                Phase::Settled(_) | Phase::Unpaid { .. } | Phase::Refused { .. } => {
                    Ok(TakenBack::Over)
                }
                Phase::Sent { run, .. } => {
                    keep(write, &Record { phase: Phase::Sent { run, since_ms: 0 }, ..known })?;
                    Ok(TakenBack::Marked(run))
                }
            }
        })
        .await
    }
}
