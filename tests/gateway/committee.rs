//! A published agent and three miners that offer to run it. They follow a script: the argument of a call
//! says what they answer.
//!
//! ```text
//! say TEXT     all answer TEXT
//! fail TEXT    all say that the agent fails, for this reason
//! split        each answers something else
//! hold NAME    all answer NAME, once it is let go
//! unable WHY   none can do it, for this reason
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use fixtures::{bond, judge_of, offer, register_judge};
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::breakpoint::lock;
use testkit::market::Saying;
pub(crate) use testkit::market::{PER_CALL, REVEAL_FEE, ROYALTY, VERSION};
use testkit::metadata::{method, of_model};
use testkit::miners::text;
use testkit::node::wait_until;
use testkit::senders::Senders;
use types::abi::Method;
use types::agent::Document;
use types::agent::ExecutorId;
use types::call::Outcome;
use types::ids::Committer;
use types::tx::CallReveal;
use types::{Address, Amount, Body, Hash, Usage};
use wallet::accounts::development_account;

/// Tokens that each member reads and writes.
pub(crate) const TOKENS: (u64, u64) = (9, 3);
/// How many miners there are.
pub(crate) const MEMBERS: u64 = 3;
/// The account that publishes, and those that mine.
const OWNER: u32 = 4;
const MINERS: [u32; 3] = [5, 6, 7];
/// The account that offers the same for so much that nobody is to pay it.
const DEAR: u32 = 8;
const DEAR_PER_CALL: u64 = 900_000_000;
const BOND: u64 = 20_000_000;
/// Between two looks at what is to be done.
const LOOK: Duration = Duration::from_millis(20);
/// Rejections of what comes before its time.
const TOO_EARLY: [&str; 3] = ["CALL_NOT_FOUND", "NOT_MEMBER", "CALL_PHASE"];

/// The miners. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Committee {
    /// The agent.
    pub(crate) agent: Hash,
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: bool,
    let_go: BTreeSet<String>,
    held: BTreeSet<String>,
}

impl Committee {
    /// Publishes the agent, and has the miners offer to run it.
    pub(crate) fn start(node: SocketAddr) -> anyhow::Result<Self> {
        let mut members = Members::open(node)?;
        let agent = members.publish()?;
        members.join()?;
        let shared = Arc::new(Mutex::new(Shared::default()));
        let seen = Arc::clone(&shared);
        let thread = std::thread::spawn(move || members.work(&seen));
        Ok(Self { agent, shared, thread: Some(thread) })
    }

    /// The agent as models are named.
    pub(crate) fn model(&self) -> String {
        format!("agent:{}@{VERSION}", self.agent)
    }

    /// Where the gateway has the agent.
    pub(crate) fn path(&self) -> String {
        format!("/v1/agents/{}/{VERSION}", self.agent)
    }

    /// Lets what is held by this name go.
    pub(crate) fn let_go(&self, name: &str) {
        lock(&self.shared).let_go.insert(name.to_owned());
    }

    /// Waits until something is held by this name.
    pub(crate) fn wait_for(&self, name: &str) -> anyhow::Result<()> {
        wait_until("a call to be held", || Ok(lock(&self.shared).held.contains(name)))
    }
}

impl Drop for Committee {
    fn drop(&mut self) {
        lock(&self.shared).is_over = true;
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// The people, and their connection to a node.
struct Members {
    node: SocketAddr,
    chain_id: String,
    owner: Actor,
    miners: Vec<Actor>,
    dear: Actor,
    method: Method,
}

/// What each member of a call has done: committed, revealed.
type Open = BTreeMap<(Hash, Address), (bool, bool)>;

impl Members {
    fn open(node: SocketAddr) -> anyhow::Result<Self> {
        let info = Senders::open(node)?.call("ombra_chainInfo", &json!([]))?;
        let actor = |account| anyhow::Ok(Actor::new(development_account(account)?));
        let document = metadata();
        let document = Document::read(document.as_bytes()).map_err(|it| anyhow::anyhow!("{it}"))?;
        let checked = document.check(Amount::MAX).outcome.map_err(|it| anyhow::anyhow!("{it}"))?;
        Ok(Self {
            node,
            chain_id: text(&info, "chainId").to_owned(),
            owner: actor(OWNER)?,
            miners: MINERS.into_iter().map(actor).collect::<anyhow::Result<_>>()?,
            dear: actor(DEAR)?,
            method: checked.methods.into_iter().next().context("a method")?,
        })
    }

    fn publish(&mut self) -> anyhow::Result<Hash> {
        let register = register_judge(self.owner.address(), metadata());
        let text = self.owner.sign_on(&self.chain_id, &register);
        Senders::open(self.node)?.include(&[text])?;
        Ok(judge_of(self.owner.address()))
    }

    fn join(&mut self) -> anyhow::Result<()> {
        let executor = ExecutorId::Model { manifest: manifest() };
        let offer = |per_call| Body::MinerOffer(offer(executor, 8, [per_call, 0, 0, 0]));
        let mut senders = Senders::open(self.node)?;
        let honest = self.miners.iter_mut().map(|miner| (miner, offer(PER_CALL)));
        for (miner, offer) in honest.chain([(&mut self.dear, offer(DEAR_PER_CALL))]) {
            let texts = [miner.sign(&bond(BOND)), miner.sign_on(&self.chain_id, &offer)];
            senders.include(&texts)?;
        }
        Ok(())
    }

    fn work(&mut self, shared: &Mutex<Shared>) {
        let mut open = BTreeMap::new();
        while !lock(shared).is_over {
            // A node that is away is asked again.
            if let Err(error) = self.look(shared, &mut open) {
                testkit::suite::say(&format!("   the committee: {error:#}"));
            }
            // Members look for work again and again until the case is over.
            std::thread::sleep(LOOK);
        }
    }

    /// Looks at what is to be done, and does it.
    fn look(&mut self, shared: &Mutex<Shared>, open: &mut Open) -> anyhow::Result<()> {
        let Ok(mut senders) = Senders::open(self.node) else { return Ok(()) };
        for status in ["committing", "revealing"] {
            let filter = json!([{ "status": status }, { "limit": 100 }]);
            let Ok(listed) = senders.call("ombra_listCalls", &filter) else { return Ok(()) };
            for item in listed["items"].as_array().into_iter().flatten() {
                let call = senders.call("ombra_getCall", &json!([item["callId"]]))?;
                self.serve(&mut senders, (shared, open), &call)?;
            }
        }
        Ok(())
    }

    fn serve(
        &mut self,
        senders: &mut Senders,
        (shared, open): (&Mutex<Shared>, &mut Open),
        call: &Value,
    ) -> anyhow::Result<()> {
        let call_id: Hash = text(call, "callId").parse()?;
        let word = self.word(call)?;
        if let Some(name) = word.strip_prefix("hold ") {
            let mut shared = lock(shared);
            shared.held.insert(name.to_owned());
            if !shared.let_go.contains(name) {
                return Ok(());
            }
        }
        let round = call["rounds"].as_array().and_then(|it| it.last()).context("a round")?;
        let members = round["members"].as_array().context("members")?;
        for member in members {
            let member: Address = text(member, "address").parse()?;
            let done = open.entry((call_id, member)).or_default();
            let (saying, reason) = saying(&self.method, &word, member)?;
            let by = Committer { call_id, round: 0, member };
            let body = match (text(call, "status"), *done) {
                ("committing", (false, _)) => saying.commit(&by),
                ("revealing", (true, false)) => {
                    Body::CallReveal(CallReveal { reason, ..saying.plain_reveal(&by) })
                }
                _ => continue,
            };
            let miner = self.miners.iter_mut().find(|it| it.address() == member);
            let miner = miner.context("a miner of somebody else")?;
            let draft = miner.draft_on(&self.chain_id, &body);
            let answer = senders.send(&[draft])?.into_iter().next().unwrap_or_default();
            if answer.get("hash").is_some() {
                miner.nonce += 1;
                if done.0 { done.1 = true } else { done.0 = true }
            } else {
                let code =
                    answer.pointer("/error/data/code").or_else(|| answer.pointer("/data/code"));
                let code = code.and_then(Value::as_str).unwrap_or_default();
                ensure!(TOO_EARLY.contains(&code), "not taken: {answer}");
            }
        }
        Ok(())
    }

    /// What a call asks.
    fn word(&self, call: &Value) -> anyhow::Result<String> {
        let payload = const_hex::decode(text(call, "payload"))?;
        let arguments: Value = serde_json::from_str(&self.method.decode_arguments(&payload)?)?;
        Ok(text(&arguments[0], "value").to_owned())
    }
}

/// What a member says to a word, and the reason if it has no answer.
fn saying(
    method: &Method,
    word: &str,
    member: Address,
) -> anyhow::Result<(Saying, Option<String>)> {
    let (word, rest) = word.split_once(' ').unwrap_or((word, ""));
    let outcome = match word {
        "fail" => Outcome::Failure,
        "unable" => Outcome::Unable,
        _ => Outcome::Success,
    };
    let verdict = if word == "split" { member.to_string() } else { rest.to_owned() };
    let result = match outcome {
        Outcome::Success => method.encode_answer(&json!([verdict, rest.len()]).to_string())?,
        Outcome::Failure | Outcome::Unable => Vec::new(),
    };
    let usage = Usage { input_tokens: TOKENS.0, output_tokens: TOKENS.1, fuel: 0 };
    let reason = (outcome != Outcome::Success).then(|| rest.to_owned());
    Ok((Saying { outcome, result, usage, receipt_hash: Hash::digest(b"work") }, reason))
}

fn manifest() -> Hash {
    Hash::digest(b"a model")
}

fn metadata() -> String {
    let outputs = [("verdict", "string"), ("letters", "uint16")];
    let mut judge = method("judge", &[("review", "string")], &outputs);
    judge["description"] = json!("Judges one review.");
    let mut agent = of_model("judge", &manifest().to_string(), &[judge]);
    agent["description"] = json!("Judges what it is told.");
    agent["royalty"] = json!(ROYALTY.to_string());
    agent.to_string()
}
