//! Clients at work: each sends a transfer, waits until it is included, and sends the next; when a
//! node does not answer, it turns to the next one, as a wallet with several nodes does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::actor::{Actor, transfer};
use crate::http::Connection;
use crate::net::Net;
use crate::parallel::Worker;
use crate::workload::keys;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::ledger::Ledger;

/// How long a transaction that was accepted may take until it is included, whatever happens.
const INCLUDED_MAX: Duration = Duration::from_secs(120);
/// How long a client waits for a node before it asks again, in milliseconds.
const WAIT_MS: u64 = 2_000;
/// The pause of clients at a steady rate.
const STEADY: Duration = Duration::from_millis(20);
/// Transfers after which clients are at work.
const CONFIRMED_FIRST: usize = 20;
/// A client's pause when a node does not answer.
const PAUSE: Duration = Duration::from_millis(50);

/// The clients at work. They stop when told to, after the transfer that they are at.
#[derive(Debug)]
pub struct Load {
    ledger: Arc<Ledger>,
    clients: Vec<Worker<()>>,
}

impl Load {
    /// Starts so many clients on these nodes, each with an account of its own; a client pauses so
    /// long after each transfer.
    pub fn start(
        net: &Net,
        nodes: &[usize],
        clients: usize,
        pause: Duration,
    ) -> anyhow::Result<Self> {
        let ledger = Arc::<Ledger>::default();
        let nodes: Vec<(usize, SocketAddr)> = nodes
            .iter()
            .map(|at| Ok((*at, net.members.get(*at).context("no such node")?.rpc)))
            .collect::<anyhow::Result<_>>()?;
        let keys = keys(clients)?;
        let clients = keys.into_iter().enumerate().map(|(number, key)| {
            let mut nodes = nodes.clone();
            let first = number % nodes.len().max(1);
            nodes.rotate_left(first);
            let client = Client {
                actor: Actor::new(key),
                nodes,
                at: 0,
                connection: None,
                ledger: Arc::clone(&ledger),
            };
            Worker::start(move |over| client.work(over, pause))
        });
        let clients = clients.collect();
        Ok(Self { ledger, clients })
    }

    /// Starts clients that pause a little after each transfer, and waits until they are at work.
    pub fn steady(net: &Net, nodes: &[usize], clients: usize) -> anyhow::Result<Self> {
        Self::at_work(net, nodes, clients, STEADY)
    }

    /// The same of clients that do not pause.
    pub fn full(net: &Net, nodes: &[usize], clients: usize) -> anyhow::Result<Self> {
        Self::at_work(net, nodes, clients, Duration::ZERO)
    }

    fn at_work(
        net: &Net,
        nodes: &[usize],
        clients: usize,
        pause: Duration,
    ) -> anyhow::Result<Self> {
        let load = Self::start(net, nodes, clients, pause)?;
        load.confirms(CONFIRMED_FIRST)?;
        Ok(load)
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Waits until the clients have seen so many more transactions confirmed.
    pub fn confirms(&self, more: usize) -> anyhow::Result<()> {
        let goal = self.ledger.confirmed_count() + more;
        crate::node::wait_until(&format!("{more} more confirmed transactions"), || {
            self.is_alive()?;
            Ok(self.ledger.confirmed_count() >= goal)
        })
    }

    fn is_alive(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.clients.iter().any(Worker::has_ended), "a client has given up");
        Ok(())
    }

    /// Ends the load; answers what the clients were told. An accepted transaction that was not
    /// included in time is an error.
    pub fn stop(self) -> anyhow::Result<Arc<Ledger>> {
        Worker::stop_all(self.clients)?;
        Ok(self.ledger)
    }
}

struct Client {
    actor: Actor,
    nodes: Vec<(usize, SocketAddr)>,
    at: usize,
    connection: Option<Connection>,
    ledger: Arc<Ledger>,
}

impl Client {
    fn work(mut self, over: &AtomicBool, pause: Duration) -> anyhow::Result<()> {
        let body = transfer(self.actor.address(), 1);
        while !over.load(Ordering::Relaxed) {
            let text = self.actor.sign(&body);
            self.bring_in(&text)?;
            // The load is a rate.
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// Sends a transaction until it is included.
    fn bring_in(&mut self, text: &str) -> anyhow::Result<()> {
        let deadline = Instant::now() + INCLUDED_MAX;
        while Instant::now() < deadline {
            if let Some((hash, height)) = self.try_once(text) {
                self.ledger.confirm(hash, height);
                return Ok(());
            }
        }
        bail!("a transaction was not included within {INCLUDED_MAX:?}: {text}")
    }

    /// Sends it to one node and waits there for a while.
    fn try_once(&mut self, text: &str) -> Option<(String, u64)> {
        let (node, rpc) = *self.nodes.get(self.at)?;
        let was_away = self.ledger.is_away(node);
        match self.exchange(rpc, text) {
            Ok(seen) => seen,
            Err(error) => {
                self.ledger.fail(node, was_away, format!("{error:#}"));
                self.connection = None;
                self.at = (self.at + 1) % self.nodes.len();
                // Nobody asks a node that is away without a pause.
                std::thread::sleep(PAUSE);
                None
            }
        }
    }

    fn exchange(&mut self, rpc: SocketAddr, text: &str) -> anyhow::Result<Option<(String, u64)>> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(rpc)?,
        };
        let sent = connection.send(text)?;
        let hash = sent.pointer("/result/hash").and_then(Value::as_str);
        let Some(hash) = hash.map(str::to_owned) else { bail!("refused: {sent}") };
        let wait = json!([hash, { "timeoutMs": WAIT_MS }]);
        let seen = connection.call("ombra_waitForTransaction", &wait)?;
        self.connection = Some(connection);
        let height = seen.get("blockIndex").and_then(Value::as_u64);
        Ok(height.map(|height| (hash, height)))
    }
}
