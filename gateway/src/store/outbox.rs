//! Signed transactions in the store.

use std::collections::BTreeSet;

use async_trait::async_trait;
use miner::journal::JournalError;
use miner::outbox::{Rows, Slip, Verdict};
use redb::{ReadableDatabase, ReadableTable, WriteTransaction};

use super::Store;
use super::requests::{keep, record};
use super::tables::{About, LOOSE, Loose, OUTBOX, Post, RUNS, Result, get, put, read, rows};
use crate::record::{Included, Phase, Purpose, Record, RequestId};

impl Store {
    /// Writes down that a transaction is signed, with the phase of its request that says so.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing is.
    pub async fn sign(&self, slip: &Slip, about: About, phase: Option<Phase>) -> Result<()> {
        let (nonce, post) = (slip.nonce, post(slip, about));
        self.change(move |write| {
            put(&mut write.open_table(OUTBOX)?, nonce, &post)?;
            let (About::Request { id, .. }, Some(phase)) = (about, phase) else { return Ok(()) };
            if let Phase::Signed { run } = phase {
                write.open_table(RUNS)?.insert(*run.as_bytes(), id.0)?;
            }
            match record(write, id)? {
                Some(record) => keep(write, &Record { phase, ..record }),
                None => Ok(()),
            }
        })
        .await
    }

    /// The signed transactions whose fate is not known, by nonce.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn outbox(&self) -> Result<Vec<(Slip, About)>> {
        let table = self.database.begin_read()?.open_table(OUTBOX)?;
        table
            .iter()?
            .map(|row| {
                let (nonce, post) = row?;
                let Post { hash, text, about } = read(post.value())?;
                Ok((Slip { nonce: nonce.value(), hash, text }, about))
            })
            .collect()
    }

    /// The transactions of no request that are in blocks, by nonce.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn loose(&self) -> Result<Vec<Loose>> {
        rows(&self.database.begin_read()?.open_table(LOOSE)?)
    }
}

fn post(slip: &Slip, about: About) -> Post {
    Post { hash: slip.hash, text: slip.text.clone(), about }
}

#[async_trait]
impl Rows for Store {
    fn nonces(&self) -> std::result::Result<BTreeSet<u64>, JournalError> {
        let table = self.database.begin_read()?.open_table(OUTBOX)?;
        table.iter()?.map(|row| Ok(row?.0.value())).collect()
    }

    async fn fill(&self, filler: &Slip) -> std::result::Result<(), JournalError> {
        self.sign(filler, About::Filler, None).await
    }

    async fn resolve(
        &self,
        slip: &Slip,
        verdict: &Verdict,
    ) -> std::result::Result<(), JournalError> {
        let (nonce, verdict, now_ms) = (slip.nonce, verdict.clone(), self.clock.now_ms());
        self.change(move |write| resolved(write, nonce, &verdict, now_ms)).await
    }
}

fn resolved(write: &WriteTransaction, nonce: u64, verdict: &Verdict, now_ms: u64) -> Result<()> {
    let mut outbox = write.open_table(OUTBOX)?;
    let Some(Post { hash, text: _, about }) = get(&outbox, nonce)? else { return Ok(()) };
    outbox.remove(nonce)?;
    match about {
        About::Request { id, purpose } => {
            settled(write, id, Included { hash, purpose }, verdict, now_ms)
        }
        About::Filler | About::Drain { .. } if verdict.is_included() => {
            put(&mut write.open_table(LOOSE)?, nonce, &Loose { hash, about })
        }
        About::Filler | About::Drain { .. } => Ok(()),
    }
}

/// What follows for a request from the fate of its transaction.
fn settled(
    write: &WriteTransaction,
    id: RequestId,
    tx: Included,
    verdict: &Verdict,
    now_ms: u64,
) -> Result<()> {
    let Some(mut record) = record(write, id)? else { return Ok(()) };
    if verdict.is_included() {
        record.included.push(tx);
    }
    if tx.purpose == Purpose::Request {
        record.phase = after_request(record.phase, verdict, now_ms);
    }
    keep(write, &record)
}

fn after_request(phase: Phase, verdict: &Verdict, now_ms: u64) -> Phase {
    match (phase, verdict) {
        (Phase::Signed { run }, Verdict::Included { .. }) => Phase::Sent { run, since_ms: now_ms },
        // Another transaction of the wallet took the nonce: the same can be signed with another one.
        (Phase::Signed { .. }, Verdict::Refused(code)) if code.starts_with("NONCE_") => {
            Phase::Reserved
        }
        (Phase::Signed { .. }, Verdict::Refused(code)) => Phase::Refused { code: code.clone() },
        (
            phase @ (Phase::Reserved
            | Phase::Refused { .. }
            | Phase::Sent { .. }
            | Phase::Running { .. }
            | Phase::Settled(_)
            | Phase::Unpaid { .. }),
            _,
        ) => phase,
    }
}
