//! `ombra miner selftest`: whether this machine computes what others compute.

use std::path::PathBuf;

use agent::executor::{Executors, Tested, selftest};
use clap::Args;
use serde_json::{Value, json};

use crate::client::output::{one_line, table};
use crate::client::{CliError, Out, Outcome, model};

const FAULT_CHARS_MAX: usize = 300;

/// What is asked.
#[derive(Args, Debug)]
pub(super) struct SelftestArgs {
    /// The model file [default: the one that `ombra model fetch` downloads]
    #[arg(long, value_name = "FILE", conflicts_with = "without_model")]
    model: Option<PathBuf>,
    /// Test only the programs
    #[arg(long)]
    without_model: bool,
    /// Print JSON on one line instead of text for people
    #[arg(long)]
    json: bool,
}

/// Asks, and ends with a failure if an answer is not the one that it should be.
pub(super) async fn run(args: SelftestArgs, out: Out<'_>) -> Outcome {
    let SelftestArgs { model: file, without_model, json: is_json } = args;
    let ask = move || {
        let model = (!without_model).then(|| model::open(file)).transpose()?;
        Ok::<_, CliError>(selftest(&Executors::of(model)))
    };
    let asked = tokio::task::spawn_blocking(ask).await;
    let tested = asked.map_err(|ended| CliError::Failed(ended.to_string()))??;
    if is_json {
        let all = tested.iter().map(|Tested { executor, questions, faults }| {
            let faults: Vec<_> = faults.iter().map(|fault| &fault.why).collect();
            json!({ "executor": executor, "questions": questions, "faults": faults })
        });
        writeln!(out, "{}", Value::Array(all.collect()))?;
    } else {
        let mut rows = table(["EXECUTOR", "QUESTIONS", "FOUND"]);
        for Tested { executor, questions, faults } in &tested {
            let first = faults.first().map(|fault| one_line(&fault.why, FAULT_CHARS_MAX));
            let found = first.map_or_else(|| "ok".to_owned(), |fault| format!("WRONG: {fault}"));
            rows.add_row([executor.to_string(), questions.to_string(), found]);
        }
        writeln!(out, "{rows}")?;
    }
    if tested.iter().any(|it| !it.faults.is_empty()) {
        let text = "this machine computes other results than others: do not offer what is wrong";
        return Err(CliError::Failed(text.to_owned()));
    }
    Ok(())
}
