//! `ombra agents list` and `ombra agents show`.

use clap::Args;
use serde_json::{Map, Value, json};
use types::{Address, Hash};

use super::answer::{show, text};
use super::pages::{PageArgs, items};
use super::{lists, single};
use crate::client::options::NodeArgs;
use crate::client::{Out, Outcome, input};

/// Which agents.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only agents of this owner
    #[arg(long, value_name = "ADDRESS", value_parser = input::address)]
    owner: Option<Address>,
    /// Only agents with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only agents that need this executor
    #[arg(long)]
    executor: Option<String>,
    /// Only agents with this text in name, description or tags
    #[arg(long)]
    text: Option<String>,
    /// Only agents whose answers can be compared, or, with =false, only others
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    deterministic: Option<bool>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Which agent.
#[derive(Args, Debug)]
#[command(disable_version_flag = true)]
pub struct ShowArgs {
    /// The agent's id
    agent: Hash,
    /// A version; the latest if not given
    #[arg(long, conflicts_with = "versions")]
    version: Option<String>,
    /// List its versions instead, the latest first
    #[arg(long)]
    versions: bool,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Carries out `ombra agents list`.
pub(in crate::client) async fn list(args: ListArgs, out: Out<'_>) -> Outcome {
    let members = [
        ("owner", args.owner.map(|owner| json!(owner))),
        ("tag", args.tag.map(Value::from)),
        ("executor", args.executor.map(Value::from)),
        ("text", args.text.map(Value::from)),
        ("deterministic", args.deterministic.map(Value::from)),
    ];
    let members = members.into_iter();
    let filter: Map<String, Value> =
        members.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    let client = args.node.client()?;
    let agents = items(args.page.page(), async |page| {
        client.agents(&filter, &page).await.map(|it| text(&it))
    });
    show(&args.node, &agents.await?, out, lists::agents)
}

/// Carries out `ombra agents show`.
pub(in crate::client) async fn one(args: ShowArgs, out: Out<'_>) -> Outcome {
    let client = args.node.client()?;
    if args.versions {
        let versions = items(args.page.page(), async |page| {
            client.agent_versions(&args.agent, &page).await.map(|it| text(&it))
        });
        return show(&args.node, &versions.await?, out, lists::agent_versions);
    }
    let agent = client.agent(&args.agent, args.version.as_deref()).await?;
    show(&args.node, agent.text(), out, single::agent)
}
