//! Strangers whose texts drive terminals: a requester's prompt and turn, a miner's name, model, tools
//! and answer, a model's calls. None of it reaches the terminal of whoever looks, JSON included, or the
//! log of a miner.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::{finish, plain_step, register_miner, tool_call, turn};
use testkit::harness::{Town, User};
use testkit::miners::{MinerHome, Requester, Wish, micro, text};
use testkit::node::{program, wait_until};
use testkit::process::output;
use testkit::script::{Model, Question, Reply};
use testkit::terminal::shown;
use testkit::workload::key;
use types::tx::AgentStep;
use types::{Body, Hash};

/// The accounts: the user, the miner that works by itself, a requester, a miner by hand.
const MINER: usize = 1;
const REQUESTER: usize = 2;
const HAND: usize = 3;
/// Erases the screen by C0 and by C1, rings, deletes, and turns and hides what follows.
const HOSTILE: &str = "a\u{1b}[2Jb\u{9b}2Jc\u{7}d\u{7f}e\u{202e}f\u{2066}g\u{2028}h\u{200b}i\rj";

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let rpc = town.node(0)?.rpc;
    let user = User::start(rpc, key(0)?);
    let by_hand = work_by_hand(rpc)?;
    let conversation = testkit::actor::conversation().to_string();
    let mut looks = Looks { rpc: format!("http://{rpc}"), clean: 0, driven: Vec::new() };
    let run = by_hand.to_string();
    let queries: [&[&str]; 6] = [
        &["query", "run", &run],
        &["query", "steps", &run],
        &["query", "runs"],
        &["query", "conversation", &conversation],
        &["query", "miners"],
        &["chat", &conversation, "--no-follow"],
    ];
    for query in queries {
        looks.at(query)?;
        looks.at_json(&[query, &["--json"]].concat())?;
    }
    looks.at_json(&["run", "--follow", &run, "--json"])?;
    let logged = work_by_itself(rpc, &mut looks)?;
    let in_log = logged.chars().filter(|it| is_driving(*it)).count();
    let Looks { clean, driven, .. } = looks;
    let seen = user.tell(&format!(
        "{clean} of {} looks without control characters, {in_log} in a miner's log",
        clean + driven.len()
    ))?;
    ensure!(driven.is_empty(), "the terminal was driven by: {}", driven.join("; "));
    ensure!(in_log == 0, "the log has {in_log} control characters");
    seen.is_served()
}

/// A run, a turn and a miner of whose texts all are hostile.
fn work_by_hand(rpc: SocketAddr) -> anyhow::Result<Hash> {
    let (mut requester, mut miner) = (Requester::new(REQUESTER, rpc)?, Requester::new(HAND, rpc)?);
    requester.send(&Body::ChatTurn(turn(HOSTILE)))?;
    let run = requester.ask(&Wish::new(HOSTILE.to_owned(), &[]))?;
    miner.send(&register_miner(HOSTILE))?;
    let mut claim = miner.actor().claim(run);
    claim.model_info = HOSTILE.to_owned();
    miner.send(&Body::AgentClaim(claim))?;
    let tool_calls = Some(vec![tool_call(HOSTILE)]);
    miner.send(&AgentStep { tool_calls, ..plain_step(run, 0, 1) }.into())?;
    let fee = micro(&requester.record(&run)?, "maxFee")?;
    let mut end = finish(run, 1, [1, fee - 101, 100]);
    end.final_answer_inline = Some(HOSTILE.to_owned());
    miner.send(&Body::AgentFinish(end))?;
    Ok(run)
}

/// A run of a miner whose model calls a tool of a hostile name; answers what the miner logged.
fn work_by_itself(rpc: SocketAddr, looks: &mut Looks) -> anyhow::Result<String> {
    let model = Model::start(|question: &Question| {
        if question.outputs == 0 {
            Reply::calls(&[(HOSTILE, json!({ HOSTILE: HOSTILE }))], &json!({ "content": HOSTILE }))
        } else {
            Reply::said(HOSTILE)
        }
    })?;
    let folder = tempfile::tempdir()?;
    let settings = model.settings("[policy]\nclaim_jitter_ms = 0");
    let home = MinerHome::new(folder.path(), MINER, rpc, &settings)?;
    let miner = home.start()?;
    let mut requester = Requester::again(REQUESTER, rpc)?;
    let run = requester.ask(&Wish::new(format!("again {HOSTILE}"), &["now"]))?;
    let record = requester.settled(&run).map_err(|fault| home.explain(&fault))?;
    ensure!(text(&record, "status") == "completed", "{record}");
    wait_until("the miner to know that it is over", || {
        Ok(home.tell(&["runs", "--json"])?.contains("ended as completed"))
    })?;
    let (id, account) = (run.to_string(), MINER.to_string());
    let data = home.data().parent().context("a folder")?.display().to_string();
    let place = ["--dev", &account, "--data-dir", &data];
    let receipt = [&["miner", "receipt", &id], &place[..]].concat();
    looks.at_json(&receipt)?;
    // This is a text that quotes strangers.
    looks.at(&[&["miner", "why", &id], &place[..]].concat())?;
    looks.at(&[&["miner", "runs"], &place[..]].concat())?;
    miner.stop()?;
    looks.at_json(&receipt)?;
    home.logged()
}

/// What a person sees who looks.
struct Looks {
    rpc: String,
    clean: usize,
    driven: Vec<String>,
}

impl Looks {
    /// Looks in a terminal.
    fn at(&mut self, arguments: &[&str]) -> anyhow::Result<String> {
        let shown = shown(arguments, &[("OMBRA_RPC", &self.rpc)])?;
        ensure!(!shown.trim().is_empty(), "{arguments:?} shows nothing");
        match shown.chars().find(|it| is_driving(*it)) {
            None => self.clean += 1,
            Some(found) => self.driven.push(format!("{}: {found:?}", arguments.join(" "))),
        }
        Ok(shown)
    }

    /// The same at JSON, which says what it says to a program.
    fn at_json(&mut self, arguments: &[&str]) -> anyhow::Result<()> {
        let shown = self.at(arguments)?;
        let piped = self.piped(arguments)?;
        let read = |text: &str| -> Result<Vec<Value>, _> {
            serde_json::Deserializer::from_str(text).into_iter().collect()
        };
        let (shown, piped): (Vec<Value>, Vec<Value>) = (read(&shown)?, read(&piped)?);
        ensure!(shown == piped, "{arguments:?}: {shown:?} is not {piped:?}");
        let hostile = piped.iter().any(|it| it.to_string().contains("\u{202e}f"));
        ensure!(hostile, "{arguments:?} has no hostile text to show: {piped:?}");
        Ok(())
    }

    fn piped(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = program();
        let output = output(command.args(arguments).env("OMBRA_RPC", &self.rpc))?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// A character that drives a terminal, ends a line, turns the direction of writing, or hides. What the
/// program may write itself are line ends and tabs.
fn is_driving(character: char) -> bool {
    let hides = matches!(
        character,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    );
    hides || character.is_control() && !matches!(character, '\n' | '\t')
}
