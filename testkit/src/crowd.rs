//! Several miners that compete for the runs of several requesters on one node.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::json;
use tempfile::TempDir;

use crate::books::Books;
use crate::miners::{MinerHome, Requester, Wish, micro, text};
use crate::node::{DevOptions, Node};
use crate::parallel;
use crate::script::{Count, Model, Question, Reply, TOKENS};
use crate::tool_server::ToolServer;

/// Each miner's own policy. The last one leaves cheap runs to the others.
const POLICIES: [&str; 3] = [
    "claim_jitter_ms = 0\nruns_max = 4\n",
    "claim_jitter_ms = 20\nruns_max = 2\n",
    "claim_jitter_ms = 50\nruns_max = 8\nmin_max_fee_micro = 2000\n",
];
/// The least that the last miner works for.
const DEAR: u64 = 2_000;
const REQUESTERS: usize = 4;
/// What a call of a tool takes: long enough for a death to meet one.
const CALL: Duration = Duration::from_millis(60);

/// A node, miners that do not run yet, and requesters.
#[derive(Debug)]
pub struct Crowd {
    pub node: Node,
    pub miners: Vec<MinerHome>,
    tools: ToolServer,
    model: Model,
    _folder: TempDir,
}

/// What must become of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct End {
    status: &'static str,
    steps: u64,
    tokens: u64,
}

impl Crowd {
    pub fn new() -> anyhow::Result<Self> {
        let accounts = POLICIES.len() + REQUESTERS;
        let node = Node::start(DevOptions { accounts, ..DevOptions::from_environment() })?;
        let folder = tempfile::tempdir()?;
        let tools = ToolServer::start(|_, arguments| {
            std::thread::sleep(CALL);
            format!("noted {arguments}")
        })?;
        let model = Model::start(follow)?;
        let engine = "[engine]\npoll_ms = 500\npause_ms = 50\n";
        let home = |(account, policy): (usize, &&str)| {
            let (model, tools) = (model.settings(""), tools.settings());
            let settings = format!("{model}{engine}[policy]\n{policy}{tools}");
            MinerHome::new(folder.path(), account, node.rpc, &settings)
        };
        let miners = POLICIES.iter().enumerate().map(home).collect::<anyhow::Result<_>>()?;
        Ok(Self { node, miners, tools, model, _folder: folder })
    }

    /// The requesters, who have asked for nothing before, ask for so many runs in all: each for its
    /// own one after the other, all of them at once.
    pub fn ask(node: SocketAddr, runs: usize) -> anyhow::Result<()> {
        let places: Vec<usize> = (0..REQUESTERS).collect();
        parallel::each(
            &places,
            |_| "a requester",
            |_, place| {
                let mut requester = Requester::new(POLICIES.len() + place, node)?;
                let mut own = (*place..runs).step_by(REQUESTERS);
                own.try_for_each(|number| requester.ask(&wish(number)).map(drop))
            },
        )
    }

    /// Waits until every run that was asked for is settled.
    pub fn settled(&self, runs: usize) -> anyhow::Result<()> {
        for number in 0..runs {
            let place = number % REQUESTERS;
            let requester = Requester::new(POLICIES.len() + place, self.node.rpc)?;
            let nonce = u64::try_from(number / REQUESTERS)?;
            let prompt = wish(number).prompt;
            let from = requester.address().to_string();
            requester.settled(&types::ids::compute_agent_run_id(&from, nonce, &prompt))?;
        }
        Ok(())
    }

    /// Checks the books and that every run ended as it must.
    pub fn check(&self, runs: usize) -> anyhow::Result<Books> {
        let books = Books::of(self.node.rpc, &self.miners)?;
        ensure!(books.runs.len() == runs, "{} runs of {runs}", books.runs.len());
        books.check(&self.miners)?;
        let dear = self.miners.last().context("a miner")?.address().to_string();
        for number in 0..runs {
            let wish = wish(number);
            let run = books.runs.get(&wish.prompt).context(wish.prompt)?;
            let steps = run["stepCount"].as_u64().context("steps")?;
            let found = (text(run, "status"), steps, micro(run, "minerReward")?);
            let End { status, steps, tokens } = end(number);
            ensure!(found == (status, steps, tokens), "{found:?} and not {:?}: {run}", end(number));
            let is_cheap = wish.max_fee < DEAR;
            ensure!(!is_cheap || text(run, "minerAddress") != dear, "too cheap for it: {run}");
        }
        self.check_tools()?;
        Ok(books)
    }

    /// No call that changes something was made twice.
    fn check_tools(&self) -> anyhow::Result<()> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (tool, arguments) in self.tools.calls() {
            *counts.entry(format!("{tool} {arguments}")).or_default() += 1;
        }
        let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
        ensure!(twice.is_empty(), "calls that were made twice: {twice:?}");
        Ok(())
    }

    /// How often the model was asked.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.model.asked().len()
    }
}

/// What the requesters want, one after the other.
fn wish(number: usize) -> Wish {
    let calls = number % 3;
    let tools = ["math_eval", "own__once"];
    match number % 10 {
        8 => {
            let wish = Wish::new(format!("run={number} never=1"), &tools);
            Wish { max_steps: 2, ..wish }
        }
        9 => {
            let wish = Wish::new(format!("run={number} long=1"), &tools);
            Wish { max_fee: 1_000, ..wish }
        }
        _ => Wish::new(format!("run={number} calls={calls}"), &tools),
    }
}

/// What must become of it.
fn end(number: usize) -> End {
    let calls = u64::try_from(number % 3).unwrap_or_default();
    match number % 10 {
        // It calls tools in each of its two steps.
        8 => End { status: "failed", steps: 2, tokens: 2 * TOKENS },
        // All that the escrow pays for after the fee of one step.
        9 => End { status: "insufficient_funds", steps: 1, tokens: 900 },
        _ => End { status: "completed", steps: calls + 1, tokens: (calls + 1) * TOKENS },
    }
}

/// The model: calls tools as often as the prompt says, in turn one that may be called again and one
/// that may not, and answers.
fn follow(question: &Question) -> Reply {
    let (outputs, run) = (question.outputs, question.number("run"));
    if question.number("long") == 1 {
        let count = Count { finish: "length", output: Some(question.tokens_max), prompt: None };
        return Reply::counted(&json!({ "content": "and so on" }), count);
    }
    if question.number("never") == 1 || outputs < question.number("calls") {
        let pure = ("math_eval", json!({ "expression": format!("{run} * 7 + {outputs}") }));
        let once = ("own__once", json!({ "run": run, "place": outputs }));
        return Reply::calls(&[pure, once], &json!({ "content": "Let me see." }));
    }
    Reply::said(&format!("It is done: {}", question.told))
}
