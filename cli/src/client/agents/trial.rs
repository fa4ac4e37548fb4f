//! `ombra agents try`: executes an agent here, as a member of a committee would, before it is published.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::executor::{self, Containers, ContainersConfig, Executed, Local, check_program};
use agent::tools::canonical_json;
use clap::Args;
use serde_json::{Value, json};
use types::agent::{Document, Executor, Metadata, ROYALTY_MAX};
use types::call::{CallLimits, Outcome as Ending};
use types::ids::compute_agent_id;
use types::{Address, Amount, Hash, Prices, Usage};

use crate::client::call::agent::method_named;
use crate::client::call::options::{self, Limit, Price};
use crate::client::call::{arguments, show};
use crate::client::input::{address, read_bytes};
use crate::client::output::{facts, ombra, one_line};
use crate::client::{CliError, Out, Outcome, model};
use crate::clock::Clock;

/// More is not read of a file: enough to say that it is too large.
pub(super) const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Enough for most agents, and over within minutes: 100,000 tokens to read, 10,000 to choose, 10^10 fuel.
const LIMITS: CallLimits = CallLimits {
    usage: Usage { input_tokens: 100_000, output_tokens: 10_000, fuel: 10_000_000_000 },
    result_bytes: 16_384,
};
/// What docs/market.md shows in its examples of offers.
const PRICES: Prices = Prices {
    per_call: Amount::new(1_000),
    prompt_per_m: Amount::new(100_000),
    completion_per_m: Amount::new(500_000),
    fuel_per_g: Amount::new(1_000),
};
const REASON_CHARS_MAX: usize = 1_024;

/// Execute an agent on this machine
#[derive(Debug, Args)]
pub struct TryArgs {
    /// The file with the agent's metadata
    file: PathBuf,
    /// The method's name, or its canonical signature
    method: String,
    /// The arguments, as `ombra call` reads them
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true)]
    arguments: Vec<String>,
    /// The program of an agent of wasm-1
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The metadata of an agent among the tools; may be given several times
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// The file to use as the program of an agent of --with: the blob id in its metadata, and the
    /// path; may be given several times
    #[arg(long, value_name = "ID=FILE", value_parser = blob)]
    blob: Vec<(String, PathBuf)>,
    /// The model file [default: the one that `ombra model fetch` downloads]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// The socket of Docker or Podman, for agents in containers
    #[arg(long, value_name = "SOCKET", default_value = "/var/run/docker.sock")]
    engine: PathBuf,
    /// Let the engine pull an image that it does not have
    #[arg(long)]
    pull: bool,
    /// The agents' owner: an address, or dev:N
    #[arg(long, value_name = "ADDRESS", default_value = "dev:0", value_parser = address)]
    owner: Address,
    /// A limit: inputTokens, outputTokens, fuel or resultBytes; may be given several times
    #[arg(long, value_name = "NAME=NUMBER", value_parser = options::limit)]
    limit: Vec<Limit>,
    /// A price: perCall, promptPerM, completionPerM or fuelPerG; may be given several times
    #[arg(long, value_name = "NAME=AMOUNT", value_parser = options::price)]
    price: Vec<Price>,
    /// Write the receipt into this file
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `ID=FILE`.
fn blob(text: &str) -> Result<(String, PathBuf), String> {
    let (id, file) = text.split_once('=').ok_or_else(|| format!("{text:?}: expected ID=FILE"))?;
    Ok((id.to_owned(), PathBuf::from(file)))
}

/// Carries out the command.
///
/// # Errors
/// [`CliError::Usage`] if the metadata, the program or the arguments are not in order,
/// [`CliError::Failed`] if the agent does not answer.
pub(super) async fn run(args: &TryArgs, out: Out<'_>) -> Outcome {
    let tried = read(&args.file, &args.owner)?;
    let method = method_named(&tried.metadata.methods, &args.method, &tried.metadata.name)?;
    let arguments = arguments::as_json(method, &args.arguments)?;
    let payload = method.encode_arguments(&arguments).map_err(|error| {
        CliError::Usage(format!("{}: argument {error}", arguments::described(method)))
    })?;
    let (local, containers) = assemble(args, &tried)?;
    if let Some(containers) = &containers {
        containers.look().await;
    }
    let executed = local.run(&tried, &payload, limits(&args.limit), args.owner);
    if let Some(containers) = &containers {
        containers.close().await;
    }
    if let Some(file) = &args.receipt {
        write_receipt(file, &executed)?;
    }
    let result = executed
        .work
        .as_ref()
        .map_or(Value::Null, |_| Value::from(const_hex::encode_prefixed(&executed.result)));
    let is_success = executed.answer.outcome == Ending::Success;
    let bill = Bill::new(&executed, &prices(&args.price), &tried.metadata);
    if args.json {
        let answer = if is_success { show::decoded(&result, Some(method)) } else { Value::Null };
        writeln!(out, "{}", as_json(&executed, &answer, &bill))?;
    } else {
        if is_success {
            writeln!(out, "{}\n", show::result(&result, Some(method)))?;
        }
        tell(&executed, &bill, out)?;
    }
    let reason = one_line(executed.reason.as_deref().unwrap_or_default(), REASON_CHARS_MAX);
    match executed.answer.outcome {
        Ending::Success => Ok(()),
        Ending::Failure => Err(CliError::Failed(format!("failure: {reason}"))),
        Ending::Unable => Err(CliError::Failed(format!("unable: {reason}"))),
    }
}

/// An agent whose metadata keep the rules.
fn read(file: &Path, owner: &Address) -> Result<executor::Agent, CliError> {
    let text = read_bytes(file, FILE_BYTES_MAX)?;
    let wrong =
        |fault: &dyn std::fmt::Display| CliError::Usage(format!("{}: {fault}", file.display()));
    let checked = Document::read(&text).and_then(|document| document.check(ROYALTY_MAX).outcome);
    let metadata = checked.map_err(|fault| wrong(&fault))?;
    let id = compute_agent_id(owner, &metadata.name);
    executor::Agent::read(id, &text).map_err(|error| wrong(&error))
}

/// The executors of this machine, with what the agent needs, and the engine if it is asked.
fn assemble(
    args: &TryArgs,
    tried: &executor::Agent,
) -> Result<(Local, Option<Arc<Containers>>), CliError> {
    let mut nested = Vec::new();
    for file in &args.with {
        nested.push(Arc::new(read(file, &args.owner)?));
    }
    let find = |id: &Hash, version: &str| {
        let is_it = |agent: &&Arc<executor::Agent>| {
            agent.id == *id && agent.metadata.version.as_str() == version
        };
        nested.iter().find(is_it).cloned()
    };
    let is_asked = model::is_needed(tried, &find);
    let mut local = Local::new(is_asked.then(|| model::open(args.model.clone())).transpose()?);
    let all = || [tried].into_iter().chain(nested.iter().map(AsRef::as_ref));
    let containers = containers(args, all().filter_map(|agent| agent.image.clone()).collect())?;
    if let Some(containers) = &containers {
        local = local.with_containers(containers);
    }
    if let Some(file) = &args.program {
        if !matches!(tried.metadata.executor, Executor::Wasm { .. }) {
            let text =
                format!("--program: the agent in {} is not a wasm-1 agent", args.file.display());
            return Err(CliError::Usage(text));
        }
        local.add_program(tried, program(file)?);
    }
    for nested in &nested {
        if let Executor::Wasm { blob_id, .. } = &nested.metadata.executor
            && let Some((_, file)) = args.blob.iter().find(|(id, _)| id == blob_id)
        {
            local.add_program(nested, program(file)?);
        }
        local.add_agent(Arc::clone(nested));
    }
    Ok((local, containers))
}

/// The engine, if there are images to run.
fn containers(args: &TryArgs, images: Vec<String>) -> Result<Option<Arc<Containers>>, CliError> {
    if images.is_empty() {
        return Ok(None);
    }
    let config = ContainersConfig {
        socket: args.engine.clone(),
        images,
        pull: args.pull,
        ..ContainersConfig::default()
    };
    if let Some(fault) = config.faults().first() {
        return Err(CliError::Usage(fault.clone()));
    }
    Ok(Some(Containers::new(config, None, Arc::new(Clock))))
}

fn program(file: &Path) -> Result<Arc<[u8]>, CliError> {
    let bytes = read_bytes(file, FILE_BYTES_MAX)?;
    check_program(&bytes).map_err(|refused| {
        let why = one_line(&refused.to_string(), REASON_CHARS_MAX);
        CliError::Usage(format!("{}: {why}", file.display()))
    })?;
    Ok(Arc::from(bytes))
}

fn limits(given: &[Limit]) -> CallLimits {
    let mut limits = LIMITS;
    for Limit { name, number } in given {
        match *name {
            "inputTokens" => limits.usage.input_tokens = *number,
            "outputTokens" => limits.usage.output_tokens = *number,
            "fuel" => limits.usage.fuel = *number,
            _ => limits.result_bytes = *number,
        }
    }
    limits
}

fn prices(given: &[Price]) -> Prices {
    let mut prices = PRICES;
    for Price { name, amount } in given {
        match *name {
            "perCall" => prices.per_call = *amount,
            "promptPerM" => prices.prompt_per_m = *amount,
            "completionPerM" => prices.completion_per_m = *amount,
            _ => prices.fuel_per_g = *amount,
        }
    }
    prices
}

fn write_receipt(file: &Path, executed: &Executed) -> Outcome {
    let Some(work) = &executed.work else { return Ok(()) };
    let receipt = json!({ "work": work.as_json(), "times": {} });
    let text = format!("{}\n", canonical_json(&receipt));
    std::fs::write(file, text).map_err(|source| CliError::file(file.display(), source))
}

/// What one member would be paid, and what the agent's owner gets besides.
struct Bill {
    member: Amount,
    royalty: Amount,
}

impl Bill {
    fn new(executed: &Executed, prices: &Prices, metadata: &Metadata) -> Self {
        let worth =
            u64::try_from(prices.price(&executed.answer.usage)).map_or(Amount::MAX, Amount::new);
        match executed.answer.outcome {
            Ending::Success => Self { member: worth, royalty: metadata.royalty },
            // docs/market.md section 6.3.
            Ending::Failure => Self { member: prices.per_call, royalty: Amount::ZERO },
            Ending::Unable => Self { member: Amount::ZERO, royalty: Amount::ZERO },
        }
    }
}

fn as_json(executed: &Executed, answer: &Value, bill: &Bill) -> Value {
    let Usage { input_tokens, output_tokens, fuel } = executed.answer.usage;
    let is_done = executed.work.is_some();
    json!({
        "outcome": executed.answer.outcome.as_str(),
        "answer": answer,
        "result": is_done.then(|| const_hex::encode_prefixed(&executed.result)),
        "reason": executed.reason,
        "usage": { "inputTokens": input_tokens, "outputTokens": output_tokens, "fuel": fuel },
        "memberPaid": bill.member,
        "royalty": bill.royalty,
        "receiptHash": is_done.then_some(executed.answer.receipt_hash),
    })
}

fn tell(executed: &Executed, bill: &Bill, out: Out<'_>) -> Outcome {
    let Usage { input_tokens, output_tokens, fuel } = executed.answer.usage;
    let mut rows = facts([
        ("outcome", executed.answer.outcome.as_str().to_owned()),
        ("tokens", format!("{input_tokens} read, {output_tokens} written")),
        ("fuel", fuel.to_string()),
        ("a member is paid", ombra(bill.member)),
        ("the owner is paid", ombra(bill.royalty)),
    ]);
    if let Some(work) = &executed.work {
        rows.add_row(["receipt", &work.hash().to_string()]);
        let logs = work.as_json().get("steps").and_then(Value::as_array).into_iter().flatten();
        for line in logs.filter_map(|step| step.get("log").and_then(Value::as_str)) {
            rows.add_row(["log", &one_line(line, REASON_CHARS_MAX)]);
        }
    }
    writeln!(out, "{rows}")?;
    Ok(())
}

#[cfg(test)]
mod tests;
