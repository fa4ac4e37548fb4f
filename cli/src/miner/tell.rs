//! What a miner tells about its runs: from the process or its journal, and from the chain.

use std::path::PathBuf;

use clap::Args;
use miner::chain::Runs;
use miner::engine::receipt::{self, Earnings, Receipt};
use miner::journal::Journal;
use miner::journal::call::Served;
use miner::journal::entry::Noted;
use miner::operate::WhyRecord;
use miner::operate::tell;
use node::clock::now_ms;
use serde::Serialize;
use types::{Amount, Hash};

use super::super::client::options::NodeArgs;
use super::super::client::output;
use super::super::client::{CliError, Out, Outcome};
use super::control::Control;
use super::error::{not_answered, unknown};
use super::market;
use super::place::{PlaceArgs, chain};
use super::report::{PlainArgs, RunsArgs, ago, print_json, table, unread};

/// A run or a call of a wallet's miner.
#[derive(Args, Debug)]
pub(super) struct RunArgs {
    /// The run, or the call
    run: Hash,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Args, Debug)]
pub(super) struct VerifyArgs {
    /// File with a receipt, as `ombra miner receipt` prints it
    file: PathBuf,
    #[command(flatten)]
    node: NodeArgs,
}

pub(super) async fn runs(args: &RunsArgs, out: Out<'_>) -> Outcome {
    let (wanted, place) = args.parts();
    let running = async |control: Control| control.runs(wanted).await;
    let stopped = async |journal: Box<Journal>| tell::runs(&journal, wanted).map_err(unread);
    let lines = place.told(place.miner()?, running, stopped).await?;
    if place.node.json {
        return print_json(&lines, out);
    }
    if lines.is_empty() {
        writeln!(out, "none")?;
        return Ok(());
    }
    writeln!(out, "{}", table(&lines, now_ms()))?;
    Ok(())
}

pub(super) async fn why(args: &RunArgs, out: Out<'_>) -> Outcome {
    let RunArgs { run, place } = args;
    let running = async |control: Control| control.why(run).await;
    let stopped = async |journal: Box<Journal>| tell::why(&journal, run).map_err(unread);
    let told = place.told(place.miner()?, running, stopped).await?;
    let Some(told) = told else {
        let rounds = market::why(place, run).await?;
        if rounds.is_empty() {
            return Err(unknown(run));
        }
        if place.node.json {
            return print_json(&rounds, out);
        }
        return market::show_why(&rounds, out);
    };
    if place.node.json {
        return print_json(&told, out);
    }
    let WhyRecord { decisions, state } = told;
    for Noted { decision, first_ms: _, last_ms, times } in &decisions {
        let (ago, code) = (ago(*last_ms, now_ms()), decision.code());
        // A reason may quote the request.
        let text = output::printable(&decision.to_string());
        writeln!(out, "{ago} ago, {times} times: {code}: {text}")?;
    }
    if let Some(state) = state {
        writeln!(out, "now: {}", output::printable(&state))?;
    }
    Ok(())
}

pub(super) async fn receipt(args: &RunArgs, out: Out<'_>) -> Outcome {
    let RunArgs { run, place } = args;
    let running = async |control: Control| control.receipt(run).await;
    let stopped = async |journal: Box<Journal>| receipt::receipt(&journal, run).map_err(unread);
    let found = place.told(place.miner()?, running, stopped).await?;
    let Some(found) = found else {
        let receipts = market::receipts(place, run).await?;
        for receipt in &receipts {
            writeln!(out, "{receipt:#}")?;
        }
        return if receipts.is_empty() { Err(unknown(run)) } else { Ok(()) };
    };
    let text = serde_json::to_string_pretty(&found).expect("a receipt is plain data");
    writeln!(out, "{text}")?;
    Ok(())
}

pub(super) async fn verify(args: VerifyArgs, out: Out<'_>) -> Outcome {
    let what = args.file.display().to_string();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|source| CliError::File { what: what.clone(), source })?;
    let receipt: Receipt = serde_json::from_str(&text)
        .map_err(|error| CliError::Usage(format!("{what} is not a receipt: {error}")))?;
    let steps = chain(&args.node)?.steps(&receipt.run).await.map_err(not_answered)?;
    let differences = receipt.differences(&steps);
    for difference in &differences {
        writeln!(out, "{difference}")?;
    }
    if !differences.is_empty() {
        let count = differences.len();
        return Err(CliError::Failed(format!(
            "the receipt and the chain differ in {count} places"
        )));
    }
    writeln!(out, "the chain matches the receipt: {} steps", steps.len())?;
    Ok(())
}

pub(super) async fn earnings(args: &PlainArgs, out: Out<'_>) -> Outcome {
    let place = &args.place;
    let runs = place.chain()?.of_miner(&place.miner()?).await.map_err(not_answered)?;
    let sum = Earnings::of(&runs);
    let served = market::told(place, place.miner()?).await?.served;
    if place.node.json {
        return print_json(&AllEarnings { runs: &sum, calls: served }, out);
    }
    let Earnings { completed, failed, timed_out, open, earned_micro, pending_micro, .. } = sum;
    writeln!(out, "earned     {} OMBRA", Amount::new(earned_micro).ombra())?;
    writeln!(out, "completed  {completed} runs")?;
    writeln!(out, "failed     {failed} runs, of which {timed_out} ended for lack of time")?;
    let Earnings { held_micro, refused, .. } = sum;
    if held_micro > 0 {
        writeln!(out, "held       {} OMBRA", Amount::new(held_micro).ombra())?;
    }
    if refused > 0 {
        writeln!(out, "refused    the rewards of {refused} runs")?;
    }
    writeln!(out, "open       {open} runs, {} OMBRA so far", Amount::new(pending_micro).ombra())?;
    if served.elected > 0 {
        let Served { elected, agreed, earned_micro, lost_micro, penalised, .. } = served;
        let earned = Amount::new(earned_micro).ombra();
        writeln!(out, "calls      {earned} OMBRA, {agreed} of {elected} agreed with the others")?;
        let lost = Amount::new(lost_micro).ombra();
        writeln!(out, "penalties  {lost} OMBRA for {penalised} calls")?;
    }
    Ok(())
}

/// What runs paid, as the chain has it, and what calls did, as the journal has it.
#[derive(Serialize)]
struct AllEarnings<'a> {
    #[serde(flatten)]
    runs: &'a Earnings,
    calls: Served,
}
