//! A requester who has a model call a tool with arguments that take seconds to check against the
//! schema of the tool's server. Runs of others must not wait for it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::harness::{Town, User};
use testkit::miners::{MinerHome, Requester, Wish};
use testkit::parallel::{at_once, beside};
use testkit::script::{Model, Question, Reply};
use testkit::suite::say;
use testkit::tool_server::ToolServer;
use testkit::workload::key;

use super::paid::Paid;

/// The accounts: the user, the miner, who attacks (three), who pays.
const MINER: usize = 1;
const ATTACKER: usize = 2;
const PAYER: usize = 5;
const ATTACKERS: usize = 3;
/// Patterns of the schema, and how long the argument is: as many and as long as may be.
const PATTERNS: usize = 32;
const BYTES: usize = 16_000;
/// The longest that one of them may take: a check takes seconds, and there is one after the other.
const SETTLED_MAX: Duration = Duration::from_secs(3);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let rpc = town.node(0)?.rpc;
    let user = User::start(rpc, key(0)?);
    let tools = ToolServer::with_schema(schema(), |_, _| "done".to_owned())?;
    let long = json!({ "s": "ab".repeat(BYTES / 2) });
    let model = Model::start(move |question: &Question| {
        if question.prompt.starts_with("long") && question.outputs < 3 {
            Reply::calls(&[("own__again", long.clone())], &json!({}))
        } else {
            Reply::said("Well.")
        }
    })?;
    let settings = format!(
        "{}[engine]\npoll_ms = 300\npause_ms = 50\n[policy]\nclaim_jitter_ms = 0\nruns_max = 8\n{}",
        model.settings(""),
        tools.settings()
    );
    let folder = tempfile::tempdir()?;
    let home = MinerHome::new(folder.path(), MINER, rpc, &settings)?;
    let miner = home.start()?;
    let (paid, attacked) = beside(
        || Paid::ask(PAYER, &home),
        |over| at_once(&[(); ATTACKERS], |number, ()| attack(ATTACKER + number, rpc, over)),
    )?;
    drop(miner);
    let attacked: usize = attacked.into_iter().sum();
    say(&format!("   {paid} beside {attacked} with long arguments"));
    let seen = user.tell("meanwhile")?;
    paid.waited_less_than(SETTLED_MAX)?;
    seen.is_served()
}

/// Patterns of which none matches, and each of which has many places at a time where it could.
fn schema() -> Value {
    let pattern = |number: usize| json!({ "pattern": format!("[ab]*a[ab]{{{}}}c", 900 + number) });
    let patterns: Vec<Value> = (0..PATTERNS).map(pattern).collect();
    json!({ "type": "object", "properties": { "s": { "anyOf": patterns } } })
}

/// Has long arguments checked until it is over, and gives the last run up.
fn attack(account: usize, rpc: SocketAddr, over: &AtomicBool) -> anyhow::Result<usize> {
    let mut requester = Requester::new(account, rpc)?;
    let mut asked = 0;
    while !over.load(Ordering::Relaxed) {
        let run = requester.ask(&Wish::new(format!("long {asked}"), &["own__again"]))?;
        asked += 1;
        testkit::node::wait_until("a long run to be over", || {
            let settled = requester.record(&run)?["finishedAt"].is_number();
            Ok(settled || over.load(Ordering::Relaxed))
        })?;
    }
    Ok(asked)
}
