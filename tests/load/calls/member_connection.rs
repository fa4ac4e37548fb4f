//! A connection that signs what its miners say and sends it, with the requests of its requesters, in
//! arrays.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;
use testkit::actor::Actor;
use testkit::breakpoint::lock;
use testkit::http::{self, Connection};
use testkit::market::{Market, Saying};
use types::Hash;
use types::ids::Committer;

use super::progress::Step;
use super::{Awaited, sign};
use crate::report::Lane;

/// Rejections of what comes a moment too early: the pool of a node that is asked may be behind the chain.
const TOO_EARLY: [&str; 3] = ["CALL_NOT_FOUND", "NOT_MEMBER", "CALL_PHASE"];
/// A pause before those are sent again, and how often that is done.
const PAUSE: Duration = Duration::from_millis(2);
const TRIES_MAX: usize = 2_000;

/// What a connection has to do.
pub(super) enum Job {
    /// Send a text.
    Send(String),
    /// Have a miner commit to its answer.
    Commit { miner: usize, id: Hash, number: usize },
    /// Have a miner show it.
    Reveal { miner: usize, id: Hash, number: usize },
}

pub(super) struct MemberConnection<'a> {
    /// By their places among all miners.
    pub(super) miners: BTreeMap<usize, Actor>,
    pub(super) market: &'a Market,
    pub(super) awaited: &'a Awaited,
}

impl MemberConnection<'_> {
    /// Works until there is nobody who could give it something to do.
    pub(super) fn work(
        &mut self,
        jobs: &Receiver<Job>,
        batch: usize,
        node: SocketAddr,
    ) -> anyhow::Result<Lane> {
        let mut connection = Connection::open(node)?;
        let mut done = Lane::default();
        while let Ok(first) = jobs.recv() {
            let mut texts = vec![self.text(first)?];
            while texts.len() < batch
                && let Ok(job) = jobs.try_recv()
            {
                texts.push(self.text(job)?);
            }
            send(&mut connection, texts, &mut done)?;
        }
        Ok(done)
    }

    fn text(&mut self, job: Job) -> anyhow::Result<String> {
        let (miner, id, number, step) = match job {
            Job::Send(text) => return Ok(text),
            Job::Commit { miner, id, number } => (miner, id, number, Step::Commit),
            Job::Reveal { miner, id, number } => (miner, id, number, Step::Reveal),
        };
        let actor = self.miners.get_mut(&miner).context("a miner of another connection")?;
        let by = Committer { call_id: id, round: 0, member: actor.address() };
        let saying = Saying::honest(id);
        let body = if step == Step::Commit { saying.commit(&by) } else { saying.reveal(&by) };
        let (hash, text) = sign(actor, &self.market.chain_id, &body);
        // Before it can be in a block.
        lock(self.awaited).insert(hash, (number, step));
        Ok(text)
    }
}

/// Sends texts, and again those that came too early.
fn send(connection: &mut Connection, texts: Vec<String>, done: &mut Lane) -> anyhow::Result<()> {
    let mut left = texts;
    for _ in 0..TRIES_MAX {
        let begun = Instant::now();
        let answer = connection.post(&http::send_body(&left))?;
        done.latencies.push(begun.elapsed());
        if !answer.contains("\"error\"") {
            return Ok(());
        }
        left = early(left, &answer)?;
        done.refused += left.len();
        std::thread::sleep(PAUSE);
    }
    bail!("refused {TRIES_MAX} times: {left:?}")
}

/// Those of the texts that were refused because their time has not come. Any other rejection is an error.
fn early(texts: Vec<String>, answer: &str) -> anyhow::Result<Vec<String>> {
    let answer: Value = serde_json::from_str(answer)?;
    let answers = answer.as_array().cloned().unwrap_or_else(|| vec![answer]);
    let mut early = Vec::new();
    for (text, answer) in texts.into_iter().zip(&answers) {
        let Some(error) = answer.get("error") else { continue };
        let code = error.pointer("/data/code").and_then(Value::as_str).unwrap_or_default();
        if !TOO_EARLY.contains(&code) {
            writeln!(std::io::stderr(), "refused: {text}")?;
            bail!("refused: {error}");
        }
        early.push(text);
    }
    Ok(early)
}
