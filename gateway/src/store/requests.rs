//! Requests in the store: each is admitted, reserved for, and released in one transaction.

use miner::journal::JournalError;
use redb::{Durability, ReadableDatabase, ReadableTable, WriteTransaction};
use types::Hash;

use super::Store;
use super::tables::{
    BODIES, DAYS, META, NAMES, NEXT, Next, OPEN, REQUESTS, Result, TALLIES, get, put, read,
};
use crate::keys::{Key, KeyId};
use crate::money::{Day, Demand, KeyUsage, Refused, Tally, admit, day_of};
use crate::record::{Delivery, Phase, Record, RequestId, Work};

/// For how long an answer is kept for its `Idempotency-Key`.
const NAMED_MS: u64 = 24 * 60 * 60 * 1_000;
/// For how long a request whose connection was lost is followed by one that says that it repeats it.
const LOST_MS: u64 = 60 * 60 * 1_000;

/// How many requests are forgotten with each new one, at most: more than come, so that none is left over.
const FORGOTTEN_AT_ONCE: usize = 4;

/// How many requests of all keys are looked at for those of one.
const LOOKED_AT_MAX: usize = 5_000;

/// A request that came in.
#[derive(Clone, Debug)]
pub struct NewRequest {
    /// Whose it is.
    pub key: Key,
    /// SHA-256 of its body.
    pub body: Hash,
    /// SHA-256 of its `Idempotency-Key`, if it has one.
    pub name: Option<Hash>,
    /// Whether the client says that it has sent this before.
    pub is_retry: bool,
    /// The model that it asks.
    pub model: String,
    /// What it asks the chain for.
    pub work: Work,
    /// What its run or call has in escrow, micro-OMBRA.
    pub max_fee_micro: u64,
    /// The most that it can cost, micro-OMBRA.
    pub micro: u64,
    /// What the wallet has, micro-OMBRA, what is in blocks counted.
    pub balance_micro: u64,
}

/// A request that the store knew already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached(pub RequestId);

/// What becomes of a request that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is written down, and its money is reserved.
    New(RequestId),
    /// It is the same as an earlier one, which is followed.
    Known(Attached),
    /// Its `Idempotency-Key` was used with another body.
    NameReused,
    /// It does not fit what the key may spend.
    Refused(Refused),
    /// The wallet does not have so much.
    WalletEmpty {
        /// What it has that nothing is reserved of.
        left_micro: u64,
    },
}

/// What tells whether a request repeats an earlier one.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Whose it is.
    pub key: KeyId,
    /// SHA-256 of its body.
    pub body: Hash,
    /// SHA-256 of its `Idempotency-Key`, if it has one.
    pub name: Option<Hash>,
    /// Whether the client says that it has sent this before.
    pub is_retry: bool,
}

impl NewRequest {
    const fn identity(&self) -> Identity {
        let Self { key: Key { id: key, .. }, body, name, is_retry, .. } = self;
        Identity { key: *key, body: *body, name: *name, is_retry: *is_retry }
    }
}

impl Store {
    /// Finds the request that this one repeats, so that it is followed without being priced again.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing is.
    pub async fn repeated(&self, identity: Identity) -> Result<Option<Admission>> {
        if identity.name.is_none() && !identity.is_retry {
            return Ok(None);
        }
        let now_ms = self.clock.now_ms();
        self.change(move |write| known(write, identity, now_ms)).await
    }

    /// Admits a request: finds the one that it repeats, or reserves its money and writes it down.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing is.
    pub async fn admit(&self, new: NewRequest) -> Result<Admission> {
        let now_ms = self.clock.now_ms();
        let admission = self.change(move |write| admitted(write, &new, now_ms)).await?;
        match &admission {
            Admission::Refused(refused) => self.meter.refused(refused),
            Admission::WalletEmpty { .. } => self.meter.wallet_is_empty(),
            Admission::New(_) | Admission::Known(_) | Admission::NameReused => (),
        }
        Ok(admission)
    }

    /// A request.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn request(&self, id: RequestId) -> Result<Option<Record>> {
        get(&self.database.begin_read()?.open_table(REQUESTS)?, id.0)
    }

    /// The requests that are not over, in the order in which they came.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn open_requests(&self) -> Result<Vec<Record>> {
        let read = self.database.begin_read()?;
        let (open, requests) = (read.open_table(OPEN)?, read.open_table(REQUESTS)?);
        let mut records = Vec::new();
        for row in open.iter()? {
            records.extend(get::<u64, Record>(&requests, row?.0.value())?);
        }
        Ok(records)
    }

    /// The newest requests, at most `most`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn requests(&self, most: usize) -> Result<Vec<Record>> {
        let requests = self.database.begin_read()?.open_table(REQUESTS)?;
        requests.iter()?.rev().take(most).map(|row| read(row?.1.value())).collect()
    }

    /// The newest requests of a key, at most `most`; of the last ones of all keys only so many are looked
    /// at that this takes no long time.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn requests_of(&self, key: KeyId, most: usize) -> Result<Vec<Record>> {
        let requests = self.database.begin_read()?.open_table(REQUESTS)?;
        let mut records = Vec::new();
        for row in requests.iter()?.rev().take(LOOKED_AT_MAX) {
            let record: Record = read(row?.1.value())?;
            if record.key == key {
                records.push(record);
            }
            if records.len() >= most {
                break;
            }
        }
        Ok(records)
    }

    /// Writes down how far a request is. One that is over stays as it is.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing is.
    pub async fn advance(&self, id: RequestId, phase: Phase) -> Result<()> {
        let advanced = self.change(move |write| {
            let Some(record) = record(write, id)?.filter(|it| !it.is_over()) else {
                return Ok(None);
            };
            let record = Record { phase, ..record };
            if record.is_over() { end(write, &record) } else { keep(write, &record) }?;
            Ok(Some(record))
        });
        if let Some(record) = advanced.await? {
            self.meter.went_on(&record, self.clock.now_ms());
        }
        Ok(())
    }

    /// Writes down whether the client got its answer.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing is.
    pub async fn deliver(&self, id: RequestId, delivery: Delivery) -> Result<()> {
        self.change(move |write| delivered(write, id, delivery)).await
    }

    /// The same, ordered at once: whoever is admitted after this finds it. What is given back tells when it
    /// is written; there is none if too many changes wait, and nothing is ordered then.
    pub fn deliver_next(
        &self,
        id: RequestId,
        delivery: Delivery,
    ) -> Option<impl Future<Output = Result<()>> + Send + 'static> {
        let change = move |write: &WriteTransaction| delivered(write, id, delivery);
        let written = self.writer.order(Durability::Immediate, change)?;
        Some(async { written.await.map_err(|_gone| JournalError::Ended)? })
    }

    /// Writes down that no connection waits for anything, as it is when the gateway starts. Older requests
    /// are not looked at, because nobody picks them up any more.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing is.
    pub async fn lose_connections(&self) -> Result<()> {
        let now_ms = self.clock.now_ms();
        self.change(move |write| {
            let mut lost = Vec::new();
            for row in write.open_table(REQUESTS)?.iter()?.rev() {
                let record: Record = read(row?.1.value())?;
                if !is_younger(&record, now_ms, LOST_MS) {
                    break;
                }
                if record.delivery == Delivery::Waiting {
                    lost.push(Record { delivery: Delivery::Lost, ..record });
                }
            }
            lost.iter().try_for_each(|record| keep(write, record))
        })
        .await
    }
}

const fn is_younger(record: &Record, now_ms: u64, age_ms: u64) -> bool {
    now_ms.saturating_sub(record.created_ms) < age_ms
}

fn delivered(write: &WriteTransaction, id: RequestId, delivery: Delivery) -> Result<()> {
    match record(write, id)? {
        Some(record) if record.delivery != delivery => keep(write, &Record { delivery, ..record }),
        Some(_) | None => Ok(()),
    }
}

fn admitted(write: &WriteTransaction, new: &NewRequest, now_ms: u64) -> Result<Admission> {
    if let Some(known) = known(write, new.identity(), now_ms)? {
        return Ok(known);
    }
    let key = new.key.id;
    let mut tally: Tally = get(&write.open_table(TALLIES)?, key.0)?.unwrap_or_default();
    let today = day_of(now_ms);
    let mut day: Day = get(&write.open_table(DAYS)?, (key.0, today))?.unwrap_or_default();
    let demand = Demand { now_ms, model: &new.model, micro: new.micro };
    let standing = KeyUsage { tally: &tally, day: &day };
    if let Err(refused) = admit(&new.key.limits, standing, demand) {
        return Ok(Admission::Refused(refused));
    }
    let left_micro = new.balance_micro.saturating_sub(outstanding_micro(write)?);
    if new.micro > left_micro {
        return Ok(Admission::WalletEmpty { left_micro });
    }
    tally.open = tally.open.saturating_add(1);
    tally.reserved_micro = tally.reserved_micro.saturating_add(new.micro);
    if new.key.limits.rpm.is_some() {
        tally.window = tally.window.and_one(now_ms);
    }
    day.requests = day.requests.saturating_add(1);
    day.reserved_micro = day.reserved_micro.saturating_add(new.micro);
    put(&mut write.open_table(TALLIES)?, key.0, &tally)?;
    put(&mut write.open_table(DAYS)?, (key.0, today), &day)?;
    forget_old(write, now_ms)?;
    let id = number(write)?;
    let record = Record {
        id,
        key,
        body: new.body,
        name: new.name,
        created_ms: now_ms,
        model: new.model.clone(),
        work: new.work.clone(),
        max_fee_micro: new.max_fee_micro,
        reserved_micro: new.micro,
        phase: Phase::Reserved,
        included: Vec::new(),
        delivery: Delivery::Waiting,
    };
    keep(write, &record)?;
    write.open_table(OPEN)?.insert(id.0, ())?;
    write.open_table(BODIES)?.insert((key.0, *new.body.as_bytes(), id.0), ())?;
    if let Some(name) = new.name {
        write.open_table(NAMES)?.insert((key.0, *name.as_bytes()), id.0)?;
    }
    Ok(Admission::New(id))
}

fn number(write: &WriteTransaction) -> Result<RequestId> {
    let mut meta = write.open_table(META)?;
    let mut next: Next = get(&meta, NEXT)?.unwrap_or_default();
    next.request = next.request.saturating_add(1);
    put(&mut meta, NEXT, &next)?;
    Ok(RequestId(next.request))
}

/// The earlier request that this one repeats; it is picked up by that.
fn known(write: &WriteTransaction, new: Identity, now_ms: u64) -> Result<Option<Admission>> {
    let Identity { key: KeyId(key), body, name, is_retry } = new;
    let mut found = None;
    if let Some(name) = name {
        let id = write.open_table(NAMES)?.get((key, *name.as_bytes()))?.map(|it| it.value());
        let named = id.map(|id| record(write, RequestId(id))).transpose()?.flatten();
        found = named.filter(|it| is_younger(it, now_ms, NAMED_MS));
        if found.as_ref().is_some_and(|it| it.body != body) {
            return Ok(Some(Admission::NameReused));
        }
    } else if is_retry {
        let body = *body.as_bytes();
        let bodies = write.open_table(BODIES)?;
        // From the newest on, so that older ones are not looked at, however many there are.
        for row in bodies.range((key, body, 0)..=(key, body, u64::MAX))?.rev() {
            let Some(earlier) = record(write, RequestId(row?.0.value().2))? else { continue };
            if !is_younger(&earlier, now_ms, LOST_MS) {
                break;
            }
            if earlier.delivery == Delivery::Lost {
                found = Some(earlier);
            }
        }
    }
    let Some(record) = found else { return Ok(None) };
    keep(write, &Record { delivery: Delivery::Waiting, ..record.clone() })?;
    Ok(Some(Admission::Known(Attached(record.id))))
}

/// What may still leave the wallet for open requests.
fn outstanding_micro(write: &WriteTransaction) -> Result<u64> {
    let (open, requests) = (write.open_table(OPEN)?, write.open_table(REQUESTS)?);
    let mut sum_micro = 0_u64;
    for row in open.iter()? {
        let record: Option<Record> = get(&requests, row?.0.value())?;
        let micro = record.map_or(0, |it| it.outstanding_micro());
        sum_micro = sum_micro.saturating_add(micro);
    }
    Ok(sum_micro)
}

pub(super) fn record(write: &WriteTransaction, id: RequestId) -> Result<Option<Record>> {
    get(&write.open_table(REQUESTS)?, id.0)
}

pub(super) fn keep(write: &WriteTransaction, record: &Record) -> Result<()> {
    put(&mut write.open_table(REQUESTS)?, record.id.0, record)
}

/// Writes a request down that is over, releases what is left of its money, and forgets it if nobody
/// was paid, so that the same request is a new one.
fn end(write: &WriteTransaction, record: &Record) -> Result<()> {
    let (key, cost_micro) = (record.key.0, record.cost_micro());
    let mut tallies = write.open_table(TALLIES)?;
    let mut tally: Tally = get(&tallies, key)?.unwrap_or_default();
    tally.open = tally.open.saturating_sub(1);
    tally.reserved_micro = tally.reserved_micro.saturating_sub(record.reserved_micro);
    tally.spent_micro = tally.spent_micro.saturating_add(cost_micro);
    put(&mut tallies, key, &tally)?;
    let mut days = write.open_table(DAYS)?;
    let number = day_of(record.created_ms);
    let mut day: Day = get(&days, (key, number))?.unwrap_or_default();
    day.reserved_micro = day.reserved_micro.saturating_sub(record.reserved_micro);
    day.spent_micro = day.spent_micro.saturating_add(cost_micro);
    put(&mut days, (key, number), &day)?;
    write.open_table(OPEN)?.remove(record.id.0)?;
    if matches!(record.phase, Phase::Unpaid { .. }) {
        forget(write, record)?;
    }
    keep(write, record)
}

/// Forgets a few of the oldest requests that no request repeats any more; their records stay.
fn forget_old(write: &WriteTransaction, now_ms: u64) -> Result<()> {
    let mut next: Next = get(&write.open_table(META)?, NEXT)?.unwrap_or_default();
    for _ in 0..FORGOTTEN_AT_ONCE {
        let id = RequestId(next.forgotten.saturating_add(1));
        let old = record(write, id)?.filter(|it| !is_younger(it, now_ms, NAMED_MS));
        let Some(old) = old else { break };
        forget(write, &old)?;
        next.forgotten = id.0;
    }
    put(&mut write.open_table(META)?, NEXT, &next)
}

fn forget(write: &WriteTransaction, record: &Record) -> Result<()> {
    let key = record.key.0;
    write.open_table(BODIES)?.remove((key, *record.body.as_bytes(), record.id.0))?;
    let Some(name) = record.name else { return Ok(()) };
    let mut names = write.open_table(NAMES)?;
    let name = (key, *name.as_bytes());
    let is_its = names.get(name)?.is_some_and(|id| id.value() == record.id.0);
    if is_its {
        names.remove(name)?;
    }
    Ok(())
}
