//! `ombra gateway check`: the gateway's books beside the chain's.

use std::time::Duration;

use clap::Args;
use gateway::books::{OwnBooks, Verdict, compare};
use gateway::chain::Node;
use miner::chain::client::Node as MinersNode;
use serde_json::json;
use types::{Address, Amount};

use super::place::{PlaceArgs, Source};
use crate::client::output::ombra;
use crate::client::{CliError, Out, Outcome};

/// How often books are read that change meanwhile, and the pause between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(250);

/// Compare the gateway's books with the chain's
#[derive(Args, Debug)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) async fn run(args: CheckArgs, out: Out<'_>) -> Outcome {
    let wallet = args.place.wallet()?;
    let client = args.place.node.client()?;
    let miners = MinersNode::new(client.clone());
    let miners = miners
        .map_err(|error| CliError::Failed(format!("cannot create the HTTP client: {error}")))?;
    let node = Node::new(client, miners);
    let verdict = checked(&args.place, wallet, &node).await?;
    if args.place.node.json {
        writeln!(out, "{}", json!(verdict))?;
    } else {
        print(&verdict, out)?;
    }
    out.flush()?;
    if verdict.agrees() {
        return Ok(());
    }
    Err(CliError::Failed(format!("the books do not agree: {} faults", verdict.faults.len())))
}

/// Reads both until they agree, or do not although nothing happened between: the chain goes on while it
/// is read.
async fn checked(place: &PlaceArgs, wallet: Address, node: &Node) -> Result<Verdict, CliError> {
    let mut tries = TRIES;
    loop {
        let before = own(place, wallet).await?;
        let opening = before.opening.ok_or_else(|| {
            CliError::Failed("the gateway has never run, so it has no books".to_owned())
        })?;
        let chain = node.books(&wallet, opening).await?;
        let verdict = compare(&before, &chain);
        let after = own(place, wallet).await?;
        let is_still = before.requests == after.requests && before.outbox == after.outbox;
        tries = tries.saturating_sub(1);
        if verdict.agrees() || (is_still && tries == 0) {
            return Ok(verdict);
        }
        if tries == 0 {
            let text = "the gateway is running, and its books keep changing during the comparison: \
                        try again";
            return Err(CliError::Failed(text.to_owned()));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn own(place: &PlaceArgs, wallet: Address) -> Result<OwnBooks, CliError> {
    match place.source(wallet).await? {
        Source::Running(control) => control.books().await,
        Source::Stopped(store) => {
            store.books().map_err(|error| CliError::Failed(error.to_string()))
        }
    }
}

fn print(verdict: &Verdict, out: Out<'_>) -> Outcome {
    let Verdict { faults, requests, open, spent_micro, escrowed_micro, balance_micro } = verdict;
    let micro = |micro: u64| ombra(Amount::new(micro));
    writeln!(out, "requests  {requests}, {open} of them open")?;
    writeln!(out, "spent     {}", micro(*spent_micro))?;
    writeln!(out, "escrow    {}", micro(*escrowed_micro))?;
    writeln!(out, "balance   {}", micro(*balance_micro))?;
    for fault in faults {
        writeln!(out, "fault     {fault}")?;
    }
    if faults.is_empty() {
        writeln!(out, "the books agree")?;
    }
    Ok(())
}
