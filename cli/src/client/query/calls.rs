//! `ombra query call`, `calls` and `randomness`.

use clap::Args;
use serde_json::{Map, Value, json};
use types::{Address, Hash};
use wallet::{Answer, Client};

use super::answer::{show, text};
use super::pages::{PageArgs, items};
use super::{election, lists, single};
use crate::client::call::agent::Agent;
use crate::client::call::show as call_show;
use crate::client::options::NodeArgs;
use crate::client::{CliError, Out, Outcome, input};

/// Which call.
#[derive(Args, Debug)]
pub struct CallArgs {
    /// The call's id
    call: Hash,
    /// Repeat the draw of the members from its inputs, and check these inputs
    #[arg(long)]
    check_election: bool,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which calls.
#[derive(Args, Debug)]
pub struct CallsArgs {
    /// Only calls of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<Hash>,
    /// Only calls of this account
    #[arg(long, value_name = "ADDRESS", value_parser = input::address)]
    requester: Option<Address>,
    /// Only calls for which this miner was drawn
    #[arg(long, value_name = "ADDRESS", value_parser = input::address)]
    member: Option<Address>,
    /// Only calls of this status: electing, committing, revealing, success, failed, timedOut, unassigned
    #[arg(long)]
    status: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Whose randomness.
#[derive(Args, Debug)]
pub struct RandomnessArgs {
    /// The block's index
    height: u64,
    #[command(flatten)]
    node: NodeArgs,
}

/// A call's record with its members.
pub(in crate::client) async fn record(client: &Client, id: &Hash) -> Result<Value, CliError> {
    let call: Answer = client.call("ombra_getCall", [id]).await?;
    Ok(call.into_value())
}

/// Carries out `ombra query call`.
pub(super) async fn one(args: &CallArgs, out: Out<'_>) -> Outcome {
    let client = args.node.client()?;
    let call = record(&client, &args.call).await?;
    if args.check_election {
        return election::check(&client, &args.call, &call, &args.node, out).await;
    }
    // A call is shown without the words of its method where its agent cannot be had.
    let agent = match call["agentId"].as_str().map(str::parse) {
        Some(Ok(id)) => Agent::of(&client, id, call["agentVersion"].as_str()).await.ok(),
        Some(Err(_)) | None => None,
    };
    if args.node.json {
        writeln!(out, "{}", call_show::as_json(&call, agent.as_ref()))?;
    } else {
        writeln!(out, "{}", call_show::whole(&call, agent.as_ref()))?;
    }
    Ok(())
}

/// Carries out `ombra query calls`.
pub(super) async fn many(args: &CallsArgs, out: Out<'_>) -> Outcome {
    let members = [
        ("agentId", args.agent.map(|id| json!(id))),
        ("requester", args.requester.map(|address| json!(address))),
        ("member", args.member.map(|address| json!(address))),
        ("status", args.status.as_ref().map(|status| json!(status))),
    ];
    let members = members.into_iter();
    let filter: Map<String, Value> =
        members.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    let client = args.node.client()?;
    let calls = items(args.page.page(), async |page| {
        let page = json!({ "cursor": page.cursor, "limit": page.limit });
        let answer = client.call::<Value, _>("ombra_listCalls", (&filter, page)).await;
        answer.map(|it| text(&it))
    });
    show(&args.node, &calls.await?, out, lists::calls)
}

/// Carries out `ombra query randomness`.
pub(super) async fn randomness(args: &RandomnessArgs, out: Out<'_>) -> Outcome {
    let client = args.node.client()?;
    let told: Answer = client.call("ombra_getRandomness", [args.height]).await?;
    show(&args.node, told.text(), out, |value| single::randomness(value).to_string())
}
