//! A miner that follows a script: the last message of a request says what it does.
//!
//! ```text
//! say TEXT           answers TEXT
//! json TEXT          the same
//! call NAME JSON     has the client call a function
//! long TEXT          answers TEXT, and was cut off
//! fail TEXT          takes a step, and fails for this reason
//! refuse TEXT        fails at once
//! idle               claims, and does nothing
//! ignore             does not even claim
//! hold NAME          claims, and answers once NAME is let go
//! moody TEXT         says TEXT, or now and then does something else of this; the run's id decides
//! ```
//!
//! What a tool said is repeated.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::{self, Actor};
use testkit::breakpoint::lock;
use testkit::http::{Connection, send_body};
use testkit::miners::{Requester, micro, text};
use testkit::node::{wait_for, wait_until};
use types::{Body, Hash};

/// The account that mines.
const ACCOUNT: usize = 1;
/// Tokens of every answer.
pub(crate) const TOKENS: u64 = 7;
/// What its step burns.
pub(crate) const STEP_FEE: u64 = 100;
/// What is done with moody requests, by the first byte of the run's id.
const MOODS: [&str; 16] = [
    "ignore", "idle", "refuse", "fail", "say", "say", "say", "say", "say", "say", "say", "say",
    "say", "say", "say", "say",
];
/// Between two looks at what is pending.
const LOOK: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    let_go: BTreeSet<String>,
    /// Names that were held.
    held: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The miner. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts it at a node.
    pub(crate) fn start(node: SocketAddr) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared::default());
        let actor = Requester::again(ACCOUNT, node)?.actor().clone();
        let (at, actor) = (Arc::clone(&shared), Arc::new(Mutex::new(actor)));
        let thread = std::thread::spawn(move || at.work(node, &actor));
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Lets what is held by this name go.
    pub(crate) fn let_go(&self, name: &str) {
        self.shared.with(|state| state.let_go.insert(name.to_owned()));
    }

    /// Whether something is held by this name.
    pub(crate) fn holds(&self, name: &str) -> bool {
        lock(&self.shared.state).held.contains(name)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.with(|state| state.is_over = true);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl Shared {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) {
        change(&mut lock(&self.state));
        self.changed.notify_all();
    }

    /// Waits until a name is let go; false if the miner ends.
    fn wait(&self, name: &str) -> bool {
        let mut state = lock(&self.state);
        state.held.insert(name.to_owned());
        while !state.is_over && !state.let_go.contains(name) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.is_over
    }

    fn work(self: &Arc<Self>, node: SocketAddr, actor: &Arc<Mutex<Actor>>) {
        let (mut seen, mut hands) = (BTreeSet::new(), Vec::new());
        loop {
            {
                let state = lock(&self.state);
                if state.is_over {
                    break;
                }
                drop(self.changed.wait_timeout(state, LOOK));
            }
            // A node that is away is asked again.
            for run in pending(node).unwrap_or_default() {
                if seen.insert(text(&run, "agentRunId").to_owned()) {
                    let (shared, actor) = (Arc::clone(self), Arc::clone(actor));
                    hands.push(std::thread::spawn(move || {
                        if let Err(error) = shared.serve(node, &actor, &run) {
                            testkit::suite::say(&format!("   the miner: {error:#}"));
                        }
                    }));
                }
            }
        }
        hands.into_iter().map(JoinHandle::join).for_each(drop);
    }

    fn serve(&self, node: SocketAddr, actor: &Mutex<Actor>, run: &Value) -> anyhow::Result<()> {
        let id: Hash = text(run, "agentRunId").parse()?;
        let asked = asked(node, run)?;
        let (word, rest) = asked.split_once(' ').unwrap_or((&asked, ""));
        let mood = usize::from(id.as_bytes()[0]) % MOODS.len();
        let word = if word == "moody" { MOODS[mood] } else { word };
        if word == "ignore" {
            return Ok(());
        }
        let send = |body: &Body| send(node, actor, body);
        let claim = lock(actor).claim(id);
        if !send(&Body::AgentClaim(claim))? || word == "idle" {
            return Ok(());
        }
        if word == "hold" && !self.wait(rest) {
            return Ok(());
        }
        let steps = u64::from(word != "refuse");
        if steps > 0 && !send(&actor::step(id, 0, TOKENS))? {
            return Ok(());
        }
        let max_fee = micro(run, "maxFee")?;
        let (tokens, fee) = (TOKENS * steps, STEP_FEE * steps);
        let mut finish = actor::finish(id, tokens, [tokens, max_fee - tokens - fee, fee]);
        if matches!(word, "fail" | "refuse") {
            finish.status = "failed".to_owned();
        }
        finish.final_answer_inline = Some(answer(word, rest)?);
        send(&Body::AgentFinish(finish)).map(drop)
    }
}

/// What a pool said of a transaction.
enum Taken {
    /// It has it; its hash.
    Yes(String),
    /// It may have it later.
    Later,
    /// The run is over, or somebody else's.
    TooLate,
}

/// Sends a transaction, and waits until it is in a block; false if the run went on without it. Others
/// may be sent meanwhile, and the node may be killed.
fn send(node: SocketAddr, actor: &Mutex<Actor>, body: &Body) -> anyhow::Result<bool> {
    let sent = wait_for("a place in the pool", || {
        let mut actor = lock(actor);
        let (signer, text) = (actor.clone(), actor.draft(body));
        Ok(match taken(node, &text)? {
            Taken::Yes(hash) => {
                actor.nonce += 1;
                Some(Some((signer, text, hash)))
            }
            Taken::Later => None,
            Taken::TooLate => Some(None),
        })
    })?;
    let Some((signer, text, hash)) = sent else { return Ok(false) };
    let is_included = wait_for("a transaction to be in a block", || {
        let told = Connection::open(node)
            .and_then(|mut connection| connection.call("ombra_waitForTransaction", &json!([hash])));
        match told.as_ref().ok().and_then(|told| told["status"].as_str()) {
            Some("included") => Ok(Some(true)),
            Some("dropped") => Ok(Some(false)),
            Some(_) => Ok(None),
            // A node that was killed may have forgotten it.
            None => Ok(matches!(taken(node, &text)?, Taken::TooLate).then_some(false)),
        }
    })?;
    if !is_included {
        // Those after it would wait for its nonce.
        let nothing = signer.draft(&actor::transfer(signer.address(), 0));
        wait_until("a place in the pool", || Ok(!matches!(taken(node, &nothing)?, Taken::Later)))?;
    }
    Ok(is_included)
}

fn taken(node: SocketAddr, text: &str) -> anyhow::Result<Taken> {
    let Ok(mut connection) = Connection::open(node) else { return Ok(Taken::Later) };
    let Ok(answer) = connection.post(&send_body(&[text.to_owned()])) else {
        return Ok(Taken::Later);
    };
    let answer: Value = serde_json::from_str(&answer)?;
    if let Some(hash) = answer["result"]["hash"].as_str() {
        return Ok(Taken::Yes(hash.to_owned()));
    }
    let code = answer["error"]["data"]["code"].as_str().unwrap_or_default();
    if code.starts_with("RUN_") || ["NOT_RUN_MINER", "NONCE_STALE"].contains(&code) {
        return Ok(Taken::TooLate);
    }
    let may_pass = ["SENDER_LIMIT", "POOL_FULL", "NONCE_TOO_HIGH", "SYNCING"].contains(&code);
    ensure!(may_pass || answer["error"]["code"] == -32053, "refused: {answer}");
    Ok(Taken::Later)
}

fn pending(node: SocketAddr) -> anyhow::Result<Vec<Value>> {
    let filter = json!([{ "status": "pending" }, { "limit": 500 }]);
    let listed = Connection::open(node)?.call("ombra_listAgentRuns", &filter)?;
    Ok(listed["items"].as_array().cloned().unwrap_or_default())
}

/// The last message of a request: what it asks of the miner.
pub(crate) fn asked(node: SocketAddr, run: &Value) -> anyhow::Result<String> {
    let envelope: Value = match run["promptBlobId"].as_str() {
        None => serde_json::from_str(text(run, "prompt"))?,
        Some(id) => {
            let bytes = Connection::open(node)?.get(&format!("/api/blob/{id}"))?;
            serde_json::from_str(&bytes)?
        }
    };
    let messages = envelope["args"]["messages"].as_array().context("messages")?;
    let last = messages.last().context("a message")?;
    let content = text(last, "content");
    if text(last, "role") == "tool" {
        return Ok(format!("say told: {content}"));
    }
    // Long texts end with what is asked.
    Ok(content.rsplit('\n').next().unwrap_or_default().to_owned())
}

fn answer(word: &str, rest: &str) -> anyhow::Result<String> {
    let (reason, response, calls) = match word {
        "call" => {
            let (name, arguments) = rest.split_once(' ').context("a name and arguments")?;
            let arguments: Value = serde_json::from_str(arguments)?;
            ("tool_calls", "", json!([{ "id": "call_0", "name": name, "arguments": arguments }]))
        }
        "fail" | "refuse" => ("error", rest, json!([])),
        "long" => ("length", rest, json!([])),
        _ => ("stop", rest, json!([])),
    };
    let answer = json!({
        "ombraAgent": 1,
        "method": "inferMessages",
        "finishReason": reason,
        "response": response,
        "toolCalls": calls,
    });
    Ok(answer.to_string())
}
