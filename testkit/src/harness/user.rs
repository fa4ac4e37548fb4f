//! An honest user: sends ten transfers a second, whether or not the earlier ones are in a block yet,
//! and asks ten times a second whether the node is ready. What the user saw is what an attack is
//! judged by.
//!
//! Each time is taken from the moment at which the transfer was due. So a node that stands still for a
//! second makes ten transfers late, not one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use types::Keypair;

use crate::actor::{Actor, transfer};
use crate::http::{self, Connection};
use crate::parallel::{Worker, joined};
use crate::suite::{Unserved, say};

/// Where the user connects from: nobody else does, so that no limit for an address counts others.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 99));
/// How often the user sends a transfer.
const PERIOD: Duration = Duration::from_millis(100);
/// How often the user looks whether the time is over.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the user waits for one transfer before it counts as lost.
const LOST_MS: u64 = 60_000;
/// The longest that an attack may make an honest user wait for a block, at the 99th percentile.
pub const INCLUSION_P99_MAX: Duration = Duration::from_secs(1);

/// An honest user at work.
#[derive(Debug)]
pub struct User {
    work: Worker<Vec<Sent>>,
    looks: Worker<Looks>,
}

/// How long a transfer took.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// From the moment at which it was due until the node had accepted it.
    submit: Duration,
    /// From the same moment until it was in a block.
    inclusion: Duration,
}

/// A transfer that the node has accepted.
struct Accepted {
    hash: Value,
    due: Instant,
    submit: Duration,
}

/// What `/readyz` and the height said.
#[derive(Clone, Default, Debug)]
struct Looks {
    ready: u64,
    not_ready: u64,
    /// What it said the last time when it was not.
    reason: Option<String>,
}

/// What the user saw.
#[derive(Clone, Debug)]
pub struct Seen {
    submit: Vec<Duration>,
    inclusion: Vec<Duration>,
    looks: Looks,
}

impl User {
    /// Starts a user of a node's JSON-RPC, with an address of their own. Nobody else may use the key.
    #[must_use]
    pub fn start(node: SocketAddr, key: Keypair) -> Self {
        Self::start_from(node, ADDRESS, key)
    }

    /// The same from this address.
    #[must_use]
    pub fn start_from(node: SocketAddr, from: IpAddr, key: Keypair) -> Self {
        Self {
            work: Worker::start(move |over| send_until(over, node, from, Actor::new(key))),
            looks: Worker::start(move |over| look_until(over, node, from)),
        }
    }

    /// Ends the user's work when all that was sent is in blocks; answers what the user saw.
    pub fn stop(self) -> anyhow::Result<Seen> {
        self.looks.tell();
        let sent = self.work.stop().context("the honest user")?;
        let looks = self.looks.stop().context("asking for readiness")?;
        let mut submit: Vec<_> = sent.iter().map(|it| it.submit).collect();
        let mut inclusion: Vec<_> = sent.iter().map(|it| it.inclusion).collect();
        submit.sort_unstable();
        inclusion.sort_unstable();
        Ok(Seen { submit, inclusion, looks })
    }

    /// The same, and prints what the user saw.
    pub fn tell(self, when: &str) -> anyhow::Result<Seen> {
        let seen = self.stop()?;
        seen.tell(when);
        Ok(seen)
    }

    /// Lets the user work for so long, then ends it.
    pub fn work_for(self, time: Duration) -> anyhow::Result<Seen> {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.work.has_ended() {
            // The time of a measurement.
            std::thread::sleep(PAUSE);
        }
        self.stop()
    }
}

impl Seen {
    /// The transfers that were included.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.inclusion.len()
    }

    /// How often the node said that it was not ready.
    #[must_use]
    pub const fn not_ready(&self) -> u64 {
        self.looks.not_ready
    }

    /// A percentile of the time until a transfer was accepted.
    #[must_use]
    pub fn submit(&self, percent: usize) -> Duration {
        percentile(&self.submit, percent)
    }

    /// A percentile of the time until a transfer was in a block.
    #[must_use]
    pub fn inclusion(&self, percent: usize) -> Duration {
        percentile(&self.inclusion, percent)
    }

    /// Prints the figures in one line.
    pub fn tell(&self, when: &str) {
        say(&format!(
            "   {when}: {} transfers, submit p50/p99 {:.0?}/{:.0?}, inclusion {:.0?}/{:.0?}, slowest {:.0?}, not ready {} of {} times",
            self.count(),
            self.submit(50),
            self.submit(99),
            self.inclusion(50),
            self.inclusion(99),
            self.inclusion.last().copied().unwrap_or_default(),
            self.looks.not_ready,
            self.looks.ready + self.looks.not_ready,
        ));
        if let Some(reason) = &self.looks.reason {
            say(&format!("   not ready, the last time: {reason}"));
        }
    }

    /// What holds under any attack: transfers are included in time, and the node says that it is ready.
    ///
    /// # Errors
    /// [`Unserved`] if not.
    pub fn is_served(&self) -> anyhow::Result<()> {
        self.is_served_within(INCLUSION_P99_MAX)
    }

    /// The same where the 99th percentile of the time until a transfer is in a block may be so long.
    ///
    /// # Errors
    /// [`Unserved`] if not.
    pub fn is_served_within(&self, p99_max: Duration) -> anyhow::Result<()> {
        ensure!(self.count() > 0, Unserved("no transfer was included".to_owned()));
        let p99 = self.inclusion(99);
        let waited = || Unserved(format!("the user waited {p99:?} for a block (p99)"));
        ensure!(p99 < p99_max, waited());
        self.is_always_ready()
    }

    /// The node said each time that it is ready.
    ///
    /// # Errors
    /// [`Unserved`] if not.
    pub fn is_always_ready(&self) -> anyhow::Result<()> {
        let not_ready = self.not_ready();
        ensure!(not_ready == 0, Unserved(format!("the node was not ready {not_ready} times")));
        Ok(())
    }
}

/// The value that so many percent do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = sorted.len().saturating_mul(percent) / 100;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn send_until(
    over: &AtomicBool,
    node: SocketAddr,
    from: IpAddr,
    mut actor: Actor,
) -> anyhow::Result<Vec<Sent>> {
    let mut connection = Connection::open_from(from, node)?;
    let mut waiting = Connection::open_from(from, node)?;
    let body = transfer(actor.address(), 1);
    actor.nonce = http::account_nonce(&mut connection, &actor.address().to_string())?;
    let (tell, accepted) = mpsc::channel();
    let waits = std::thread::spawn(move || {
        accepted.into_iter().map(|tx| included(&mut waiting, &tx)).collect::<anyhow::Result<_>>()
    });
    let mut due = Instant::now();
    while !over.load(Ordering::Relaxed) {
        // If it does not get through, the other thread says why.
        if tell.send(send(&mut connection, &actor.sign(&body), due)?).is_err() {
            break;
        }
        due += PERIOD;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    drop(tell);
    joined(waits.join(), "waiting for transfers")
}

fn send(connection: &mut Connection, text: &str, due: Instant) -> anyhow::Result<Accepted> {
    let answer = connection.send(text)?;
    let Some(hash) = answer.pointer("/result/hash").cloned() else {
        bail!("an honest transfer was refused: {answer}")
    };
    Ok(Accepted { hash, due, submit: due.elapsed() })
}

/// Waits until a transfer is in a block.
fn included(connection: &mut Connection, tx: &Accepted) -> anyhow::Result<Sent> {
    let deadline = tx.due + Duration::from_millis(LOST_MS);
    loop {
        let wait = json!([tx.hash, { "timeoutMs": 10_000 }]);
        let seen = connection.call("ombra_waitForTransaction", &wait)?;
        if seen.get("blockIndex").is_some_and(Value::is_u64) {
            return Ok(Sent { submit: tx.submit, inclusion: tx.due.elapsed() });
        }
        ensure!(Instant::now() < deadline, "a transfer was not included within {LOST_MS} ms");
    }
}

fn look_until(over: &AtomicBool, node: SocketAddr, from: IpAddr) -> anyhow::Result<Looks> {
    let mut connection = Connection::open_from(from, node)?;
    let mut looks = Looks::default();
    while !over.load(Ordering::Relaxed) {
        match connection.get("/readyz") {
            Ok(_) => looks.ready += 1,
            Err(not_ready) => {
                looks.not_ready += 1;
                looks.reason = Some(format!("{not_ready:#}"));
                connection = Connection::open_from(from, node)?;
            }
        }
        // The user looks ten times a second.
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(looks)
}
