//! `ombra verify`: executes the agent of a call again, here, and compares what members answered.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::executor::{Agent, Context, Executed, Executors, Library, Stop, Task};
use clap::Args;
use miner::chain::client::Node;
use miner::chain::{CallView, Calls as _};
use miner::market::AgentCache;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use types::call::Answer;
use types::{Address, Hash};

use super::options::NodeArgs;
use super::output::{facts, one_line, table};
use super::{CliError, Out, Outcome, model};

const REASON_CHARS_MAX: usize = 300;

/// A call to be executed again.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                        ombra verify CALL\n  \
                        ombra verify CALL --member ADDRESS\n\n\
                        This asks only a node, for the call, the agent and its programs. An agent \
                        that uses a language model needs that model's file: `ombra model fetch` \
                        downloads the one that this program knows. With a threshold, the chain \
                        collects the members' answers without comparing them, so none of them \
                        stands: name the member whose answer you want to check.\n\n\
                        Exit codes: 0 the answer is confirmed, 1 it is not or cannot be checked, \
                        2 the command line is wrong.")]
pub struct VerifyArgs {
    /// The call
    call: Hash,
    /// The member whose answer to check [default: the answer that stands]
    #[arg(long, value_name = "ADDRESS", value_parser = super::input::address)]
    member: Option<Address>,
    /// The model file [default: the one that `ombra model fetch` downloads]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Write the record of the work, as members keep it in their receipts, to this file
    #[arg(long, value_name = "FILE")]
    work: Option<PathBuf>,
    #[command(flatten)]
    node: NodeArgs,
}

/// One part of an answer.
struct Part {
    what: &'static str,
    claimed: String,
    own: String,
}

/// Carries out the command.
///
/// # Errors
/// When the answer is not confirmed, there is none, or it cannot be executed here.
pub async fn run(args: VerifyArgs, out: Out<'_>) -> Outcome {
    let client = args.node.client()?;
    let node = Node::new(client).map_err(failed)?;
    let found = node.call(&args.call).await.map_err(failed)?;
    let call = found
        .ok_or_else(|| CliError::Failed(format!("there is no call {} on this chain", args.call)))?;
    let decided_by = if call.is_compared { By::Majority } else { By::Threshold };
    let claimed = claimed(&call, decided_by, args.member.as_ref())?;
    let payload = payload(&call)?;
    let agents = AgentCache::new(Arc::new(node));
    let gathered = agents.gather(&call.agent, &call.version).await;
    let (agent, library) = gathered.map_err(failed)?;
    let began = Instant::now();
    let executed = execute(&args, &call, payload, (agent, library)).await?;
    let took = began.elapsed();
    if let (Some(path), Some(work)) = (&args.work, &executed.work) {
        std::fs::write(path, work.to_text())
            .map_err(|source| CliError::file(path.display(), source))?;
    }
    let Some(_) = &executed.work else {
        let why = executed.reason.unwrap_or_default();
        return Err(CliError::Failed(format!("the call cannot be executed here: {why}")));
    };
    tell(&args, &claimed, &executed, took, out)
}

/// Whatever keeps the answer from being checked is no fault of the command line.
fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::Failed(error.to_string())
}

/// Who decides a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    /// More than half of the members, who gave the same answer.
    Majority,
    /// So many members, whose answers are not compared.
    Threshold,
}

/// What the call is executed for; a failure if the node tells another payload than the one whose hash is in
/// the call's record, or none.
fn payload(call: &CallView) -> Result<Vec<u8>, CliError> {
    let payload = call.payload.as_ref().ok_or_else(|| {
        CliError::Failed("the node does not report the payload of the call".to_owned())
    })?;
    let (hash, expected) = (Hash::digest(payload), call.payload_hash);
    if hash != expected {
        return Err(CliError::Failed(format!(
            "the call cannot be checked: the node's payload has the hash {hash}, but the call's \
             record says {expected}"
        )));
    }
    Ok(payload.clone())
}

/// The answer that is compared.
fn claimed(call: &CallView, decided_by: By, member: Option<&Address>) -> Result<Answer, CliError> {
    if decided_by == By::Threshold && member.is_none() {
        return Err(CliError::Failed(format!(
            "no single answer of the call {} stands: with a threshold, answers are collected and \
             not compared; check one member's answer with --member ADDRESS",
            call.id
        )));
    }
    let members = call.rounds.iter().rev().flat_map(|round| &round.members);
    let found = match member {
        Some(wanted) => {
            let mut of = members.filter(|it| it.address == *wanted).peekable();
            if of.peek().is_none() {
                let text = format!("{wanted} is not a member of the call {}", call.id);
                return Err(CliError::Usage(text));
            }
            of.find_map(|it| it.revealed)
        }
        None => members.filter(|it| it.agreed == Some(true)).find_map(|it| it.revealed),
    };
    found.ok_or_else(|| {
        let whose = member.map_or_else(|| "that stands".to_owned(), |it| format!("of {it}"));
        CliError::Failed(format!("the call {} has no answer {whose}", call.id))
    })
}

/// Executes the agent for the payload, within the limits of the call.
async fn execute(
    args: &VerifyArgs,
    call: &CallView,
    payload: Vec<u8>,
    (agent, library): (Arc<Agent>, Library),
) -> Result<Executed, CliError> {
    let context = Context { call_id: call.id, requester: call.requester };
    let limits = call.limits;
    let file = args.model.clone();
    let run = move || {
        let find = |id: &Hash, version: &str| library.agent(id, version);
        let is_asked = model::is_needed(&agent, &find);
        let is_named = file.is_some();
        // Where no file is named, the command line is not at fault that there is none.
        let at_fault = |error: CliError| if is_named { error } else { failed(error) };
        let model = is_asked.then(|| model::open(file)).transpose().map_err(at_fault)?;
        let executors = Executors::of(model);
        if let Some(missing) = executors.missing(&agent, &library) {
            return Ok(Executed::unable(missing));
        }
        Ok(executors.run(&Task {
            context,
            agent: &agent,
            payload: &payload,
            limits,
            library: &library,
            stop: Stop::new(CancellationToken::new(), None),
        }))
    };
    let ran = tokio::task::spawn_blocking(run).await;
    ran.map_err(|ended| CliError::Failed(ended.to_string()))?
}

fn parts(claimed: &Answer, own: &Answer) -> Vec<Part> {
    let part = |what, value: fn(&Answer) -> String| Part {
        what,
        claimed: value(claimed),
        own: value(own),
    };
    vec![
        part("outcome", |it| it.outcome.as_str().to_owned()),
        part("result", |it| it.result_hash.to_string()),
        part("input tokens", |it| it.usage.input_tokens.to_string()),
        part("output tokens", |it| it.usage.output_tokens.to_string()),
        part("fuel", |it| it.usage.fuel.to_string()),
        part("receipt", |it| it.receipt_hash.to_string()),
    ]
}

fn tell(
    args: &VerifyArgs,
    claimed: &Answer,
    executed: &Executed,
    took: Duration,
    out: Out<'_>,
) -> Outcome {
    let parts = parts(claimed, &executed.answer);
    let follows = *claimed == executed.answer;
    let reason = executed.reason.as_deref().map(|why| one_line(why, REASON_CHARS_MAX));
    if args.node.json {
        let parts = parts.iter().map(|Part { what, claimed, own }| {
            json!({ "part": what, "claimed": claimed, "own": own, "same": claimed == own })
        });
        let parts: Vec<Value> = parts.collect();
        writeln!(
            out,
            "{}",
            json!({ "callId": args.call, "follows": follows, "reason": reason, "parts": parts })
        )?;
    } else {
        let mut rows = table(["PART", "FOUND", "ANSWERED", "EXECUTED HERE"]);
        for Part { what, claimed, own } in &parts {
            let found = if claimed == own { "ok" } else { "DIFFERS" };
            rows.add_row([*what, found, claimed, own]);
        }
        writeln!(out, "{rows}\n")?;
        if let Some(reason) = reason {
            writeln!(out, "{}", facts([("reason", reason)]))?;
        }
        let verdict = match (follows, args.member) {
            (true, None) => {
                "the answer is confirmed: the agent gives the same answer, with the work that was \
                 billed"
            }
            (true, Some(_)) => {
                "the answer is confirmed: the agent gives the same answer, with the work that the \
                 member names"
            }
            (false, _) => {
                "the answer is NOT confirmed: the agent gives another answer, or other work"
            }
        };
        writeln!(out, "{verdict}; executed in {took:.1?}")?;
    }
    if follows { Ok(()) } else { Err(CliError::Failed("the answer is not confirmed".to_owned())) }
}

#[cfg(test)]
mod tests {
    use miner::chain::{MemberView, RoundView};
    use types::Usage;
    use types::call::{CallLimits, CallStatus, Outcome as Ended};

    use super::*;

    const MEMBERS: [Address; 2] = [Address::new([1; 20]), Address::new([2; 20])];

    fn answer(result: u8) -> Answer {
        Answer {
            outcome: Ended::Success,
            result_hash: Hash::new([result; 32]),
            usage: Usage::default(),
            receipt_hash: Hash::ZERO,
        }
    }

    /// A decided call in which the members said different things.
    fn call() -> CallView {
        let member = |(address, result)| MemberView {
            address,
            commitment: None,
            revealed: Some(answer(result)),
            agreed: Some(true),
            paid_micro: 0,
            penalty_micro: 0,
        };
        let members = MEMBERS.into_iter().zip(1..).map(member).collect();
        CallView {
            id: Hash::new([9; 32]),
            agent: Hash::ZERO,
            version: "1.0.0".to_owned(),
            requester: Address::new([3; 20]),
            status: CallStatus::Success,
            is_settled: true,
            is_compared: true,
            limits: CallLimits { usage: Usage::default(), result_bytes: 1 },
            budget_micro: 0,
            payload: Some(b"asked".to_vec()),
            payload_hash: Hash::digest(b"asked"),
            deadline_ms: None,
            rounds: vec![RoundView { is_decided: true, members }],
        }
    }

    #[test]
    fn only_the_payload_of_the_record_is_executed() {
        assert_eq!(payload(&call()).unwrap(), b"asked");
        let other = CallView { payload: Some(b"another".to_vec()), ..call() };
        let why = payload(&other).unwrap_err();
        assert_eq!(why.exit_code(), 1);
        let hashes = [Hash::digest(b"another"), Hash::digest(b"asked")];
        assert!(hashes.iter().all(|hash| why.to_string().contains(&hash.to_string())), "{why}");
        assert_eq!(payload(&CallView { payload: None, ..call() }).unwrap_err().exit_code(), 1);
    }

    #[test]
    fn no_answer_of_a_threshold_stands_and_that_of_a_member_can_be_compared() {
        let why = claimed(&call(), By::Threshold, None).unwrap_err();
        assert_eq!(why.exit_code(), 1);
        assert!(why.to_string().contains("--member ADDRESS"), "{why}");
        let [first, second] = MEMBERS;
        assert_eq!(claimed(&call(), By::Threshold, Some(&second)).unwrap(), answer(2));
        assert_eq!(claimed(&call(), By::Majority, None).unwrap(), answer(1));
        assert_eq!(claimed(&call(), By::Majority, Some(&first)).unwrap(), answer(1));
        let stranger = claimed(&call(), By::Majority, Some(&Address::new([7; 20])));
        assert_eq!(stranger.unwrap_err().exit_code(), 2);
    }
}
