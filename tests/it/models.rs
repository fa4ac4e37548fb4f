//! What comes of a run when the model's server fails, in every way that one can: how it ends, what it
//! costs, and whether the miner goes on claiming.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};
use testkit::miners::{MinerHome, Requester, Wish, text};
use testkit::node::{DevOptions, Node, wait_until};
use testkit::parallel;
use testkit::process::peak_rss_kb;
use testkit::script::{Count, Model, Question, Reply, TOKENS};

use crate::support::dev;

/// What a miner may take while a server sends it more than it should.
const RSS_MB_MAX: u64 = 400;

/// A way to fail, and what must come of it.
struct Mode {
    name: &'static str,
    script: fn(&Question) -> Reply,
    /// Settings of the back end.
    backend: &'static str,
    max_fee: u64,
    end: End,
    /// Whether the next run is claimed.
    claims_after: bool,
    /// The least time between the first two questions.
    pause_min: Duration,
}

struct End {
    status: &'static str,
    /// What the answer has.
    answer: &'static str,
    /// Tokens of each step.
    steps: &'static [u64],
    /// Calls of tools that were made.
    calls: usize,
}

const fn mode(name: &'static str, script: fn(&Question) -> Reply, end: End) -> Mode {
    Mode {
        name,
        script,
        backend: "",
        max_fee: 10_000,
        end,
        claims_after: true,
        pause_min: Duration::ZERO,
    }
}

const fn end(status: &'static str, answer: &'static str, steps: &'static [u64]) -> End {
    End { status, answer, steps, calls: 0 }
}

/// A server that fails first, and answers in the end; nothing of the failure is paid.
const WELL: End = end("completed", "Well.", &[TOKENS]);

/// Asked for the first time.
fn first(question: &Question, then: Reply) -> Reply {
    if question.times == 1 { then } else { Reply::said("Well.") }
}

/// The model's first output; the second is the answer.
fn before_answer(question: &Question, output: Reply) -> Reply {
    if question.outputs == 0 { output } else { Reply::said("Well.") }
}

fn counted(output: Option<u64>, prompt: Option<u64>) -> Reply {
    let count = Count { output, prompt, ..Count::default() };
    Reply::counted(&json!({ "content": "Well." }), count)
}

/// A line that does not end.
fn endless_line() -> Reply {
    Reply::flood(vec![b'x'; 1 << 16])
}

fn passing() -> Vec<Mode> {
    let busy =
        |it: &Question| first(it, Reply::status("429 Too Many Requests", &["retry-after: 1"]));
    let fails = |it: &Question| match it.times {
        1 | 2 => Reply::status("500 Internal Server Error", &[]),
        _ => Reply::said("Well."),
    };
    vec![
        Mode {
            pause_min: Duration::from_secs(1),
            ..mode("busy, with the time to ask again", busy, WELL)
        },
        mode("it fails twice", fails, WELL),
        Mode {
            backend: "first_token_timeout_ms = 500",
            ..mode("silence before the answer", |it| first(it, Reply::silence()), WELL)
        },
        Mode {
            backend: "token_timeout_ms = 500",
            ..mode("silence within the answer", |it| first(it, Reply::stall("So far")), WELL)
        },
        mode("the connection breaks", |it| first(it, Reply::cut("So far")), WELL),
        mode("bytes that are no text", |it| first(it, Reply::bytes(vec![0xff, 0, b'\n'])), WELL),
        mode("a part that is no JSON", |it| first(it, Reply::bytes(b"data: {\"\n\n".into())), WELL),
        mode("a line without an end", |it| first(it, endless_line()), WELL),
    ]
}

/// One call of a tool.
fn call(tool: &str, arguments: Value) -> Reply {
    Reply::calls(&[(tool, arguments)], &json!({}))
}

/// Calls that cannot be made. The model is told, and answers.
fn strange_calls() -> Vec<Mode> {
    const TOLD: End = end("completed", "Well.", &[TOKENS, TOKENS]);
    vec![
        mode(
            "a call whose arguments are no JSON",
            |it| before_answer(it, call("math_eval", json!("{\"expression\": "))),
            TOLD,
        ),
        mode(
            "a call of a tool that the run does not grant",
            |it| before_answer(it, call("chain_get_height", json!({}))),
            TOLD,
        ),
        mode(
            "more calls than a step can have",
            |it| {
                let call = ("math_eval", json!({ "expression": "1" }));
                before_answer(it, Reply::calls(&vec![call; 300], &json!({})))
            },
            TOLD,
        ),
        mode("a call without a name", |it| before_answer(it, call("", json!({}))), TOLD),
        mode(
            "a call with wrong arguments",
            |it| before_answer(it, call("math_eval", json!({ "x": 1 }))),
            End { calls: 1, ..TOLD },
        ),
    ]
}

/// A server that cannot be right about its tokens, so that the miner claims no more.
fn uncounted(name: &'static str, script: fn(&Question) -> Reply) -> Mode {
    let end = end("failed", "the model's server does not count its tokens", &[]);
    Mode { claims_after: false, ..mode(name, script, end) }
}

/// Answers that a miner must not believe, and some that it must.
fn strange() -> Vec<Mode> {
    vec![
        mode(
            "it refuses the request",
            |_| Reply::status("400 Bad Request", &[]),
            end("failed", "the model's server refuses the request", &[]),
        ),
        mode(
            "it read a part of the prompt only",
            |_| counted(Some(TOKENS), Some(10)),
            end("failed", "the model's server cut the prompt", &[]),
        ),
        mode(
            "it forgot the begin of the conversation",
            |it| match it.outputs {
                0 => {
                    let count =
                        Count { prompt: Some(2_000), finish: "tool_calls", ..Count::default() };
                    let function =
                        json!({ "name": "math_eval", "arguments": "{\"expression\":\"1\"}" });
                    let calls = json!({ "tool_calls": [{ "index": 0, "function": function }] });
                    Reply::counted(&calls, count)
                }
                _ => counted(Some(TOKENS), Some(1_500)),
            },
            End { calls: 1, ..end("failed", "2000 tokens became 1500", &[TOKENS]) },
        ),
        Mode {
            max_fee: 1_000,
            ..mode(
                "the answer is cut where the escrow ends",
                |it| {
                    let output = Some(it.tokens_max);
                    let count = Count { finish: "length", output, prompt: None };
                    Reply::counted(&json!({ "content": "and so on" }), count)
                },
                end("insufficient_funds", "", &[900]),
            )
        },
        uncounted("more tokens than were asked for", |it| counted(Some(it.tokens_max + 1), None)),
        uncounted("no tokens for some text", |_| counted(Some(0), None)),
        uncounted("no tokens of the prompt", |_| counted(Some(TOKENS), Some(0))),
        uncounted("no counts", |_| Reply::uncounted("Well.")),
    ]
}

/// A server that never gives an answer. The run ends before the chain ends it.
fn endless() -> Vec<Mode> {
    const LATE: End =
        end("timeout", "no answer of the model before the deadline of the chain", &[]);
    vec![
        mode("silence for ever", |_| Reply::silence(), LATE),
        mode("it fails for ever", |_| Reply::status("500 Internal Server Error", &[]), LATE),
        mode(
            "busy for ever",
            |_| Reply::status("503 Service Unavailable", &["retry-after: 60"]),
            LATE,
        ),
        mode("it never comes to an end", |_| Reply::drip("and so on "), LATE),
        mode("lines without an end", |_| endless_line(), LATE),
    ]
}

/// A prompt that is long enough for its tokens to be compared with its bytes.
fn prompt() -> String {
    format!("How much is it? {}", "word ".repeat(600))
}

/// What is asked once the server is repaired.
const REPAIRED: &str = "And now?";

/// Account 2n asks and account 2n + 1 works.
fn check(number: usize, mode: &Mode, node: &Node, folder: &Path) -> anyhow::Result<()> {
    let script = mode.script;
    let model = Model::start(move |question: &Question| {
        if question.prompt == REPAIRED { Reply::said("Well.") } else { script(question) }
    })?;
    let mut requester = Requester::new(2 * number, node.rpc)?;
    let engine = "[engine]\npoll_ms = 300\npause_ms = 50\ndeadline_margin_ms = 4000\n";
    let settings = format!(
        "{}{engine}[policy]\nclaim_jitter_ms = 0\nrequesters_allow = [\"{}\"]\n",
        model.settings(mode.backend),
        requester.address(),
    );
    let home = MinerHome::new(folder, 2 * number + 1, node.rpc, &settings)?;
    let miner = home.start()?;
    let wish = Wish { max_fee: mode.max_fee, ..Wish::new(prompt(), &["math_eval"]) };
    let run = requester.ask(&wish)?;
    let record = requester.settled(&run).map_err(|fault| home.explain(&fault))?;
    check_end(mode, &record, &requester.steps(&run)?).map_err(|fault| home.explain(&fault))?;
    check_pause(mode, &model)?;
    let peak_mb = peak_rss_kb(miner.pid())? / 1024;
    ensure!(peak_mb < RSS_MB_MAX, "the miner took {peak_mb} MB");
    if mode.claims_after {
        // The server is repaired, and nobody has told the miner.
        let next = requester.ask(&Wish { prompt: REPAIRED.into(), ..wish })?;
        let record = requester.settled(&next).map_err(|fault| home.explain(&fault))?;
        let end = (text(&record, "status"), text(&record, "finalAnswerInline"));
        ensure!(end == ("completed", "Well."), "the run after it: {record}");
        return miner.stop();
    }
    let next = requester.ask(&wish)?;
    wait_until("the miner to look at the next run", || {
        Ok(home.logged()?.contains("BACKEND_DOWN"))
    })?;
    miner.stop()?;
    let record = node.call("ombra_getAgentRun", &json!([next]))?;
    ensure!(record["status"] == "pending", "it was claimed: {record}");
    let why = home.tell(&["why", &next.to_string()])?;
    ensure!(
        why.contains("BACKEND_DOWN: not now: the back end is down: the model failed")
            && why.contains("tokens"),
        "the reason is not told: {why}"
    );
    Ok(())
}

/// The end, the bill and the steps.
fn check_end(mode: &Mode, record: &Value, steps: &[Value]) -> anyhow::Result<()> {
    let End { status, answer, steps: expected, calls } = &mode.end;
    let said = text(record, "finalAnswerInline");
    ensure!(text(record, "status") == *status && said.contains(answer), "{record}");
    ensure!(record["finishTx"].is_string(), "the chain ended it, not the miner: {record}");
    let tokens: Vec<_> = steps.iter().filter_map(|step| step["outputTokens"].as_u64()).collect();
    ensure!(tokens == *expected, "tokens of the steps: {tokens:?}, not {expected:?}");
    let reward: u64 = expected.iter().sum();
    let fee = 100 * u64::try_from(expected.len())?;
    for (part, micro) in
        [("minerReward", reward), ("networkFee", fee), ("userRefund", mode.max_fee - reward - fee)]
    {
        ensure!(text(record, part) == micro.to_string(), "{part} is not {micro}: {record}");
    }
    let made: usize =
        steps.iter().map(|step| step["toolCalls"].as_array().map_or(0, Vec::len)).sum();
    ensure!(made == *calls, "{made} calls of tools, not {calls}");
    Ok(())
}

/// A server that said when to ask again was not asked before.
fn check_pause(mode: &Mode, model: &Model) -> anyhow::Result<()> {
    let asked = model.asked();
    if let [(early, _), (late, _), ..] = asked.as_slice() {
        let pause = late.duration_since(*early);
        ensure!(pause >= mode.pause_min, "it was asked again after {pause:?}");
    }
    Ok(())
}

/// Tries all ways to fail, some at a time, on a chain with these arguments.
fn check_all(modes: &[Mode], arguments: &[&str]) -> anyhow::Result<()> {
    let node = Node::start(DevOptions { accounts: 2 * modes.len(), ..dev(arguments) })?;
    let folder = tempfile::tempdir()?;
    let check = |number: usize, mode: &Mode| check(number, mode, &node, folder.path());
    parallel::each(modes, |mode| mode.name, check)
}

#[test]
fn what_a_server_fails_to_do_at_first_costs_nothing() -> anyhow::Result<()> {
    check_all(&passing(), &[])
}

#[test]
fn what_a_server_says_wrongly_ends_the_run_or_is_told_to_the_model() -> anyhow::Result<()> {
    let modes: Vec<Mode> = strange_calls().into_iter().chain(strange()).collect();
    check_all(&modes, &[])
}

#[test]
fn a_server_that_never_answers_ends_the_run_in_time() -> anyhow::Result<()> {
    check_all(&endless(), &["--param", "claimTtlMs=9000"])
}
