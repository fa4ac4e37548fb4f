//! `ombra gateway requests`: the newest requests, and what became of them.

use clap::Args;
use gateway::record::{Phase, Record};
use serde_json::json;
use types::Amount;

use super::place::{PlaceArgs, Source};
use crate::client::output::{ombra, one_line, time};
use crate::client::{CliError, Out, Outcome};

/// The longest reason that is shown, characters.
const SHOWN_CHARS: usize = 80;

/// The newest requests
#[derive(Args, Debug)]
pub(super) struct RequestsArgs {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) async fn run(args: RequestsArgs, out: Out<'_>) -> Outcome {
    let records = match args.place.source(args.place.wallet()?).await? {
        Source::Running(control) => control.requests(args.limit).await?,
        Source::Stopped(store) => {
            store.requests(args.limit).map_err(|error| CliError::Failed(error.to_string()))?
        }
    };
    if args.place.node.json {
        writeln!(out, "{}", json!(records))?;
        return Ok(());
    }
    for record in &records {
        print(record, out)?;
    }
    Ok(())
}

fn print(record: &Record, out: Out<'_>) -> Outcome {
    let Record { id, created_ms, model, .. } = record;
    let model = one_line(model, SHOWN_CHARS);
    writeln!(out, "{}  {}  {model}  {}", id.0, time(*created_ms), standing(record))?;
    if let Some(run) = record.run() {
        writeln!(out, "    run {run}")?;
    }
    if let Some(call) = record.call() {
        writeln!(out, "    call {call}")?;
    }
    Ok(())
}

fn standing(record: &Record) -> String {
    let cost = ombra(Amount::new(record.cost_micro()));
    match &record.phase {
        Phase::Reserved => "reserved".to_owned(),
        Phase::Signed { .. } => "signed".to_owned(),
        Phase::Refused { code } => format!("rejected by the chain: {code}"),
        Phase::Sent { .. } if record.work.is_run() => "waits for a miner".to_owned(),
        Phase::Sent { .. } => "waits for its committee".to_owned(),
        Phase::Running { .. } if record.work.is_run() => "a miner works on it".to_owned(),
        Phase::Running { .. } => "a committee works on it".to_owned(),
        Phase::Settled(bill) => format!("{}, {cost}", one_line(&bill.status, SHOWN_CHARS)),
        Phase::Unpaid { why, .. } => {
            format!("unpaid, {cost}: {}", one_line(&json!(why).to_string(), SHOWN_CHARS))
        }
    }
}
