//! How long a node with a long chain takes to answer what wallets and pages read: every list and
//! every record, asked for at random places of the chain, one request at a time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use testkit::http::{Connection, call_body};

use crate::report::{at, line};

/// Blocks that names are taken from.
const BLOCKS_SAMPLED: u64 = 200;
/// Pages of a list that are walked through before it begins anew.
const PAGES_DEEP: usize = 50;

/// Names of things on the chain.
#[derive(Default)]
struct Names {
    blocks: Vec<String>,
    txs: Vec<String>,
    accounts: Vec<String>,
    miners: Vec<String>,
    /// Addresses and ids of the miner directory.
    entries: Vec<String>,
    entry_ids: Vec<String>,
    runs: Vec<String>,
    conversations: Vec<String>,
}

impl Names {
    /// Names from blocks that are spread over the whole chain.
    fn sample(connection: &mut Connection) -> anyhow::Result<Self> {
        let height =
            get(connection, "/api/chain/height")?["height"].as_u64().context("a height")?;
        let mut names = Self::default();
        for part in 1..=BLOCKS_SAMPLED {
            let index = (height * part / BLOCKS_SAMPLED).max(1);
            let block = get(connection, &format!("/api/chain/block/{index}"))?;
            names.blocks.extend(block["hash"].as_str().map(str::to_owned));
            for tx in block["transactions"].as_array().into_iter().flatten() {
                names.add(tx);
            }
        }
        names.read_directory(connection)?;
        if [&names.txs, &names.runs, &names.miners, &names.conversations, &names.entry_ids]
            .iter()
            .any(|it| it.is_empty())
        {
            bail!("the chain has no transactions, runs, miners or conversations to ask for");
        }
        Ok(names)
    }

    fn read_directory(&mut self, connection: &mut Connection) -> anyhow::Result<()> {
        let mut path = "/api/miners".to_owned();
        loop {
            let page = get(connection, &path)?;
            let known = self.entries.len();
            for entry in page.as_array().into_iter().flatten() {
                self.entries.extend(entry["address"].as_str().map(str::to_owned));
                self.entry_ids.extend(entry["minerId"].as_str().map(str::to_owned));
            }
            match self.entries.last() {
                Some(last) if self.entries.len() > known => {
                    path = format!("/api/miners?after={last}");
                }
                Some(_) | None => return Ok(()),
            }
        }
    }

    fn add(&mut self, tx: &Value) {
        let text = |key: &str| tx[key].as_str().map(str::to_owned);
        self.txs.extend(text("hash"));
        self.accounts.extend(text("from"));
        self.runs.extend(text("agentRunId"));
        self.conversations.extend(text("conversationId"));
        if tx["type"] == "AGENT_CLAIM" {
            self.miners.extend(text("from"));
        }
    }
}

/// What is asked for, each time by another name.
enum Question<'a> {
    /// A path, with the name in place of `{}`.
    Path(&'static str, &'a [String]),
    /// A list that goes on with its `nextCursor`.
    List(&'static str, &'a [String]),
    /// A JSON-RPC list that goes on with its `nextCursor`.
    Call(&'static str, Value),
    /// A JSON-RPC method of one name.
    CallOf(&'static str, &'a [String]),
}

fn get(connection: &mut Connection, path: &str) -> anyhow::Result<Value> {
    let body = connection.get(path).with_context(|| path.to_owned())?;
    serde_json::from_str(&body).with_context(|| format!("{path}: {body}"))
}

/// Asks the node everything, `requests` times each, and prints a line for each question; fails if
/// the 99th percentile of one is above `p99_max`.
pub(crate) fn measure(rpc: SocketAddr, requests: usize, p99_max: Duration) -> anyhow::Result<()> {
    let mut connection = Connection::open(rpc)?;
    let names = Names::sample(&mut connection)?;
    let mut slow = Vec::new();
    for (name, question) in questions(&names) {
        let took = ask(&mut connection, &question, requests)?;
        let [half, p99, most] = [50, 99, 100].map(|percent| at(&took, percent).unwrap_or_default());
        let ms = |duration: Duration| (duration.as_secs_f64() * 1e5).round() / 1e2;
        line(&json!({
            "question": name,
            "requests": took.len(),
            "p50Ms": ms(half),
            "p99Ms": ms(p99),
            "mostMs": ms(most),
        }))?;
        if p99 > p99_max {
            slow.push(name);
        }
    }
    if !slow.is_empty() {
        bail!("above {p99_max:?} at the 99th percentile: {}", slow.join(", "));
    }
    Ok(())
}

fn questions(names: &Names) -> Vec<(&'static str, Question<'_>)> {
    let path = |path: &'static str, names| (path, Question::Path(path, names));
    let list = |path: &'static str, names| (path, Question::List(path, names));
    let call = |name, method, params| (name, Question::Call(method, params));
    vec![
        path("/api/chain/height", &[]),
        path("/api/chain/stats", &[]),
        path("/api/chain/blocks?limit=100", &[]),
        path("/api/chain/block/{}", &names.blocks),
        path("/api/chain/tx/{}", &names.txs),
        path("/api/chain/account/{}", &names.accounts),
        path("/api/wallet/balance/{}", &names.accounts),
        path("/api/chain/fee-estimate", &[]),
        path("/api/chain/search/{}", &names.runs),
        path("/api/chain/mempool", &[]),
        path("/api/miners", &[]),
        path("/api/miners?after={}", &names.entries),
        path("/api/miners/{}", &names.entry_ids),
        path("/api/miners/by-address/{}", &names.entries),
        path("/api/tokenomics/supply", &[]),
        path("/api/tokenomics/holders?limit=500", &[]),
        path("/api/tokenomics/distribution", &[]),
        path("/api/agent/v6/run/{}", &names.runs),
        path("/api/agent/v6/run/{}/steps", &names.runs),
        list("/api/agent/v6/by-status/completed?limit=100", &[]),
        list("/api/agent/v6/by-status/pending?limit=100", &[]),
        list("/api/agent/v6/by-submitter/{}?limit=100", &names.accounts),
        list("/api/agent/v6/by-miner/{}?limit=100", &names.miners),
        list("/api/agent/v6/conversation/{}?limit=100", &names.conversations),
        ("ombra_getBlock, hashes", Question::CallOf("ombra_getBlock", &names.blocks)),
        call("ombra_getBlocks, 100", "ombra_getBlocks", json!({ "limit": 100 })),
        call("ombra_listAgentRuns, 100", "ombra_listAgentRuns", json!({ "limit": 100 })),
        call("ombra_listMiners, 100", "ombra_listMiners", json!({ "limit": 100 })),
        call(
            "ombra_getAccountTransactions, 100",
            "ombra_getAccountTransactions",
            json!({ "address": names.miners.first(), "limit": 100 }),
        ),
    ]
}

/// What is answered, and how long that took.
fn timed(ask: impl FnOnce() -> anyhow::Result<String>) -> anyhow::Result<(String, Duration)> {
    let started = Instant::now();
    let text = ask()?;
    Ok((text, started.elapsed()))
}

fn called(
    connection: &mut Connection,
    method: &str,
    params: &Value,
) -> anyhow::Result<(String, Duration)> {
    let call = call_body(method, params);
    timed(|| connection.post(&call))
}

/// How long each answer took, ascending.
fn ask(
    connection: &mut Connection,
    question: &Question<'_>,
    requests: usize,
) -> anyhow::Result<Vec<Duration>> {
    let mut took = Vec::with_capacity(requests);
    let mut cursor: Option<String> = None;
    for number in 0..requests {
        if number % PAGES_DEEP == 0 {
            cursor = None;
        }
        // A step that shares no factor with most lengths: neighbours are far apart.
        let name = |names: &[String]| names.get(number * 7_919 % names.len().max(1)).cloned();
        // What the generator does with the answer is not the node's time.
        let (text, elapsed) = match question {
            Question::Path(path, names) => {
                let path = path.replace("{}", &name(names).unwrap_or_default());
                timed(|| connection.get(&path))?
            }
            Question::List(path, names) => {
                let path = path.replace("{}", &name(names).unwrap_or_default());
                // A cursor belongs to its list, and these are many.
                let cursor = cursor.take().filter(|_| names.is_empty());
                let path = cursor.map_or_else(|| path.clone(), |it| format!("{path}&cursor={it}"));
                timed(|| connection.get(&path))?
            }
            Question::Call(method, params) => {
                let mut params = params.clone();
                if let (Some(cursor), Some(members)) = (cursor.take(), params.as_object_mut()) {
                    members.insert("cursor".to_owned(), cursor.into());
                }
                called(connection, method, &params)?
            }
            Question::CallOf(method, names) => {
                called(connection, method, &json!([name(names), false]))?
            }
        };
        took.push(elapsed);
        let answer: Value = serde_json::from_str(&text)?;
        if let Some(error) = answer.get("error") {
            bail!("{error}");
        }
        // JSON-RPC has it in its result.
        let page = answer.get("result").unwrap_or(&answer);
        cursor = page["nextCursor"].as_str().map(str::to_owned);
    }
    took.sort_unstable();
    Ok(took)
}
