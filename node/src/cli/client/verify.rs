//! `ombra verify`: executes the agent of a call again, here, and compares what members answered.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use miner::chain::client::Node;
use miner::chain::{CallView, Calls as _};
use miner::executor::{Agent, Context, Executed, Executors, Library, Stop, Task};
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
#[command(after_help = "Examples:\n  ombra verify CALL\n  ombra verify CALL --member ADDRESS\n\n\
                        Nobody is asked but a node, for the call, the agent and its programs. An agent of a \
                        language model needs the file of that model: `ombra model fetch` gets the one that \
                        this program knows. The command ends with code 0 if the answer follows, else with 1.")]
pub struct VerifyArgs {
    /// The call
    call: Hash,
    /// Whose answer is compared [default: the one that stands]
    #[arg(long, value_name = "ADDRESS", value_parser = super::input::address)]
    member: Option<Address>,
    /// The file of the model [default: where `ombra model fetch` keeps the one that this program knows]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Write the work that was done, as members keep it in their receipts, to this file
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
/// When the answer does not follow, there is none, or it cannot be executed here.
pub async fn run(args: VerifyArgs, out: Out<'_>) -> Outcome {
    let client = args.node.client()?;
    let node = Node::new(client).map_err(|error| CliError::Failed(error.to_string()))?;
    let found = node.call(&args.call).await;
    let found = found.map_err(|error| CliError::Failed(error.to_string()))?;
    let call = found
        .ok_or_else(|| CliError::Failed(format!("there is no call {} on this chain", args.call)))?;
    let claimed = claimed(&call, args.member.as_ref())?;
    let payload = call.payload.clone();
    let payload = payload
        .ok_or_else(|| CliError::Failed("the node does not tell the payload of the call".into()))?;
    let agents = AgentCache::new(Arc::new(node));
    let gathered = agents.gather(&call.agent, &call.version).await;
    let (agent, library) = gathered.map_err(|error| CliError::Failed(error.to_string()))?;
    let began = Instant::now();
    let executed = execute(&args, &call, payload, (agent, library)).await?;
    let took = began.elapsed();
    if let (Some(path), Some(work)) = (&args.work, &executed.work) {
        std::fs::write(path, work.to_text())
            .map_err(|source| CliError::file(path.display(), source))?;
    }
    let Some(_) = &executed.work else {
        let why = executed.reason.unwrap_or_default();
        return Err(CliError::Failed(format!("it cannot be executed here: {why}")));
    };
    tell(&args, &claimed, &executed, took, out)
}

/// The answer that is compared.
fn claimed(call: &CallView, member: Option<&Address>) -> Result<Answer, CliError> {
    let members = call.rounds.iter().rev().flat_map(|round| &round.members);
    let found = match member {
        Some(wanted) => {
            let mut of = members.filter(|it| it.address == *wanted).peekable();
            if of.peek().is_none() {
                let text = format!("{wanted} is no member of the call {}", call.id);
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
        let model = is_asked.then(|| model::open(file)).transpose()?;
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
        let verdict = if follows {
            "the answer follows: it is what the agent answers, with the work that was billed"
        } else {
            "the answer does NOT follow"
        };
        writeln!(out, "{verdict}; executed in {took:.1?}")?;
    }
    if follows { Ok(()) } else { Err(CliError::Failed("the answer does not follow".to_owned())) }
}
