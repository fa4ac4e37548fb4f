//! A client that hangs up now and then, and persists until it is answered.

use std::io::{ErrorKind, Read as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use testkit::chat::{Answer, Client, parsed, streamed};
use testkit::dice::Dice;
use testkit::node::PATIENCE;

use super::Town;
use super::order::Order;
use crate::worker::Worker;

/// How long one waits who hangs up then, milliseconds.
const HANG_UP_MS: (u64, u64) = (1, 600);
/// Between two attempts, milliseconds.
const PAUSE_MS: (u64, u64) = (5, 150);

/// The codes of faults that may pass.
const MAY_PASS: [&str; 5] =
    ["no_miner", "run_failed", "still_running", "node_unavailable", "gateway_stopping"];

/// A client.
pub(super) struct Customer<'a> {
    number: u64,
    town: &'a Town,
    worker: &'a Worker,
    dice: Dice,
}

/// What came of an attempt.
enum Came {
    /// An answer, which is for good.
    Answer,
    /// A reason to ask again.
    Again(String),
}

/// How an attempt ends before there is an answer.
#[derive(Clone, Copy)]
enum Patience {
    /// It does not.
    Enough,
    /// The client stops sending, and reads what is still on its way.
    Leaves(Duration),
    /// The client is gone. Only while no answer can be on its way: nobody could tell whether it got it.
    Dies(Duration),
}

impl<'a> Customer<'a> {
    pub(super) const fn new(number: u64, town: &'a Town, worker: &'a Worker, dice: Dice) -> Self {
        Self { number, town, worker, dice }
    }

    /// Asks one thing after the other until there is no more trouble.
    pub(super) fn shop(mut self) -> anyhow::Result<()> {
        let client = self.town.client(self.number)?;
        let mut named = Vec::new();
        for number in 0.. {
            if self.town.is_calm() {
                break;
            }
            let order = Order::next(self.number, number, &mut self.dice);
            let title = order.title.clone();
            self.begin(&client, &order).with_context(|| title)?;
            named.extend(order.name.is_some().then_some(order));
        }
        // What has a name is answered once more, and not paid.
        named.iter().try_for_each(|order| self.persist(&client, order))
    }

    /// Asks for the first time.
    fn begin(&mut self, client: &Client, order: &Order) -> anyhow::Result<()> {
        self.town.with(|ledger| {
            let asked = ledger.asked.entry(order.title.clone()).or_default();
            asked.is_named = order.name.is_some();
            asked.firsts += 1;
        });
        self.persist(client, order)
    }

    /// Asks until there is an answer.
    fn persist(&mut self, client: &Client, order: &Order) -> anyhow::Result<()> {
        let deadline = Instant::now() + 2 * PATIENCE;
        for count in 0.. {
            let patience = self.patience(order, count);
            let came = self.attempt(client, order, count, patience)?;
            if order.is_held {
                self.worker.let_go(&order.title);
            }
            let (is_over, told) = match came {
                Came::Answer => (true, "answer".to_owned()),
                Came::Again(why) => (false, format!("again: {why}")),
            };
            self.town.tells(&order.title, format!("client {}, {count}: {told}", self.number));
            if is_over {
                return Ok(());
            }
            self.town.happens(&told);
            ensure!(Instant::now() < deadline, "no answer after {count} attempts");
            let pause_ms = self.dice.roll(PAUSE_MS.0, PAUSE_MS.1);
            // How soon a client comes back is what is tried.
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
        Ok(())
    }

    fn patience(&mut self, order: &Order, count: u32) -> Patience {
        let time = Duration::from_millis(self.dice.roll(HANG_UP_MS.0, HANG_UP_MS.1));
        let is_in_a_hurry = self.dice.hits(2);
        if order.is_held && count == 0 {
            Patience::Dies(time)
        } else if is_in_a_hurry && !self.town.is_calm() {
            Patience::Leaves(time)
        } else {
            Patience::Enough
        }
    }

    fn attempt(
        &mut self,
        client: &Client,
        order: &Order,
        count: u32,
        patience: Patience,
    ) -> anyhow::Result<Came> {
        let count = count.to_string();
        let mut headers = vec![("x-stainless-retry-count", count.as_str())];
        headers.extend(order.name.as_deref().map(|name| ("idempotency-key", name)));
        // Some say how long they wait; they are answered before that.
        headers.extend(self.dice.hits(6).then_some(("x-stainless-read-timeout", "1")));
        let Ok(connection) = client.begin(&order.body, &headers) else {
            return Ok(Came::Again("nobody there".to_owned()));
        };
        let Some(bytes) = heard(connection, patience)? else {
            return Ok(Came::Again("dead".to_owned()));
        };
        let hung_up = !matches!(patience, Patience::Enough);
        let Ok(answer) = parsed(bytes) else {
            let why = if hung_up { "hung up" } else { "cut off" };
            return Ok(Came::Again(why.to_owned()));
        };
        let came = read(&answer, order)?;
        if matches!(came, Came::Answer) {
            self.town.happens(if hung_up { "answer in the last moment" } else { "answer" });
        }
        Ok(came)
    }
}

/// What comes on a connection until it ends; none if the client dies.
fn heard(mut connection: TcpStream, patience: Patience) -> anyhow::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let time = match patience {
        Patience::Enough => PATIENCE,
        Patience::Leaves(time) | Patience::Dies(time) => time,
    };
    if listen(&mut connection, &mut bytes, Instant::now() + time)? {
        return Ok(Some(bytes));
    }
    match patience {
        Patience::Enough => bail!("no answer within {PATIENCE:?}"),
        Patience::Dies(_) => Ok(None),
        Patience::Leaves(_) => {
            // A gateway that was killed has closed it already.
            drop(connection.shutdown(Shutdown::Write));
            let is_over = listen(&mut connection, &mut bytes, Instant::now() + PATIENCE)?;
            ensure!(is_over, "the gateway still answers a client that hung up");
            Ok(Some(bytes))
        }
    }
}

/// Reads to the end of a connection; false if the time is over before.
fn listen(
    connection: &mut TcpStream,
    bytes: &mut Vec<u8>,
    deadline: Instant,
) -> anyhow::Result<bool> {
    let mut part = [0; 4_096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        connection.set_read_timeout(Some(left))?;
        match connection.read(&mut part) {
            Ok(0) => return Ok(true),
            Ok(count) => bytes.extend(part.get(..count).unwrap_or_default()),
            Err(error) => {
                let goes_on = [ErrorKind::Interrupted, ErrorKind::WouldBlock, ErrorKind::TimedOut];
                // A process that is killed leaves its connections in any state.
                if !goes_on.contains(&error.kind()) {
                    return Ok(true);
                }
            }
        }
    }
}

/// Whether this is the answer, or a fault that may pass.
fn read(answer: &Answer, order: &Order) -> anyhow::Result<Came> {
    let said = match answer.status {
        200 if order.is_stream() => streamed(&answer.text)?,
        200 => Ok(answer.content()?),
        _ => Err(answer.code()),
    };
    match said {
        Ok(content) => {
            ensure!(content == order.title, "answered with {content:?}");
            Ok(Came::Answer)
        }
        // It is said that money moved, and that asking again is in vain.
        Err(code) if code == "run_failed_paid" => Ok(Came::Answer),
        Err(code) if MAY_PASS.contains(&code.as_str()) => Ok(Came::Again(code)),
        Err(_) => bail!("an answer that nobody expects: {answer:?}"),
    }
}
