//! `ombra call`: asks a committee of miners for an agent's answer, waits for it and shows it with the bill.

pub(in crate::client) mod agent;
pub(in crate::client) mod arguments;
pub(in crate::client) mod options;
mod sending;
pub(in crate::client) mod show;
mod terms;

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use types::abi::Method;
use types::call::{COMMITTEE_MAX, Consensus};
use types::tx::{HexBytes, OnResult};
use types::{Amount, Hash};
use wallet::calls::{Terms, amount_of};
use wallet::{Answer, Client};

use self::agent::Agent;
use self::options::{Conditional, Limit, Price};
use self::sending::send;
use self::terms::Holding;
use super::options::{NodeArgs, SignerArgs};
use super::output::{facts, ombra, ombra_of, one_line, printable, scalar};
use super::tx::{SECONDS_MAX, Sender};
use super::{CliError, Interrupts, Out, Outcome, input};

/// How long the node is asked to wait at once; what has happened is told in between.
const WAIT_MS: u64 = 5_000;
/// A node that is away longer is given up; shorter, it may be restarting.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// How soon it is asked again, unless it says when.
const PAUSE: Duration = Duration::from_millis(500);
const NAME_CHARS_MAX: usize = 80;
const PER_CALL: &str = "perCall";
/// How long to wait before the second try of a call that ended unassigned, and at most before later ones.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(4);
/// From this try on, perCall is higher than the node suggests.
const RAISED_FROM_TRY: u8 = 3;

/// A call of an agent's method.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                  ombra call review-judge judge \"Works well.\" --dev 0\n  \
                  ombra call AGENT@1.0.0 judge review=\"Works well.\" --committee 5 --appealable \
                  --dev 0\n  \
                  ombra call AGENT judgeAll \
                  '[{\"author\":\"dev:1\",\"text\":\"Good\",\"stars\":5}]' --dev 0\n  \
                  ombra call jury decide \"Is it done?\" --appealable --on success:dev:3:5ombra \
                  --dev 0\n\n\
                  Give the arguments by position, or all as NAME=VALUE; write arrays and tuples as \
                  JSON. Before it sends the call, the command shows how much the chain will hold \
                  for it; what the call does not use comes back (docs/market.md section 5).")]
pub struct CallArgs {
    /// The agent's id, or its name if no other agent has that name; append @VERSION to choose a
    /// version
    #[arg(value_name = "AGENT[@VERSION]")]
    agent: String,
    /// The method's name, or its canonical signature
    method: String,
    /// The arguments
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true)]
    arguments: Vec<String>,
    /// How many members answer: an odd number
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u8).range(1..=i64::from(COMMITTEE_MAX)))]
    committee: u8,
    /// Who decides: majority, or threshold:N [default: majority; for an agent whose answers cannot be
    /// compared, a threshold of more than half]
    #[arg(long, value_name = "WHO", value_parser = options::consensus)]
    consensus: Option<Consensus>,
    /// Allow appeals of the decision; this locks more of the members' bonds
    #[arg(long)]
    appealable: bool,
    /// A payment that the chain makes on a success, success:ADDRESS:AMOUNT, or on one result,
    /// result:HASH:ADDRESS:AMOUNT; needs --appealable; may be given several times
    #[arg(long = "on", value_name = "WHEN:ADDRESS:AMOUNT", value_parser = options::on_result,
        requires = "appealable")]
    on_result: Vec<Conditional>,
    /// How long members have to commit, in milliseconds: 10000 to 600000
    #[arg(long, value_name = "MS", default_value_t = 60_000,
        value_parser = clap::value_parser!(u64).range(10_000..=600_000))]
    timeout_ms: u64,
    /// The escrow [default: what the call can cost at most, up to 10 OMBRA besides payments of --on]
    #[arg(long, value_name = "AMOUNT", value_parser = input::amount)]
    max_fee: Option<Amount>,
    /// A price: perCall, promptPerM, completionPerM or fuelPerG; may be given several times
    /// [default: prices that enough miners accept]
    #[arg(long, value_name = "NAME=AMOUNT", value_parser = options::price)]
    price: Vec<Price>,
    /// A limit: inputTokens, outputTokens, fuel or resultBytes; may be given several times
    /// [default: an estimate from the agent's metadata]
    #[arg(long, value_name = "NAME=NUMBER", value_parser = options::limit)]
    limit: Vec<Limit>,
    /// The conversation that the call belongs to
    #[arg(long, value_name = "ID")]
    conversation: Option<Hash>,
    #[command(flatten)]
    sending: SendingArgs,
    #[command(flatten)]
    waiting: WaitingArgs,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    signer: SignerArgs,
}

/// Whether the call is sent.
#[derive(Args, Debug)]
struct SendingArgs {
    /// Send the call even if too few miners can be drawn now: it may end unassigned, and then
    /// everything comes back
    #[arg(long)]
    anyway: bool,
    /// Show what would be held, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// How many times to try while the call ends unassigned, that is, while too few miners can be drawn
    /// and all but the inclusion fee comes back. From the third try on, perCall is a quarter higher,
    /// unless --price names it. A node that lies can make the call be sent this often
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u8).range(1..=20))]
    tries: u8,
}

/// What is waited for.
#[derive(Args, Debug)]
struct WaitingArgs {
    /// Return as soon as the request is in a block
    #[arg(long, conflicts_with_all = ["settled", "timeout"])]
    no_wait: bool,
    /// Wait until all money has moved, even if the decision can be appealed
    #[arg(long)]
    settled: bool,
    /// Seconds to wait before giving up; the call itself goes on [default: until it is decided]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=SECONDS_MAX))]
    timeout: Option<u64>,
}

/// A call that is ready to be sent.
struct Draft {
    agent: Agent,
    method: Method,
    payload: Vec<u8>,
    consensus: Consensus,
    estimate: Value,
    terms: Terms,
    max_fee: Amount,
}

/// Carries out `ombra call`. With `--json` the call's record, with what its answer says, is the only line.
///
/// # Errors
/// [`CliError`]; a call that ends otherwise than `success` is a failure.
pub async fn run(args: CallArgs, out: Out<'_>) -> Outcome {
    let mut payees = args.on_result.iter().map(|it| it.payee);
    payees.try_for_each(|payee| args.signer.pays(payee).map(drop))?;
    let client = args.node.client()?;
    let draft = draft(&args, &client, 1).await?;
    let is_json = args.node.json;
    let mut discarded = std::io::sink();
    let narration: Out<'_> = if is_json { &mut discarded } else { &mut *out };
    writeln!(narration, "{}", holds(&args, &draft)?)?;
    if args.sending.dry_run {
        if is_json {
            let payload = HexBytes(draft.payload).to_string();
            let (estimate, max_fee) = (draft.estimate, draft.max_fee);
            writeln!(
                out,
                "{}",
                json!({"payload": payload, "estimate": estimate, "maxFee": max_fee})
            )?;
        }
        return Ok(());
    }
    check_enough(&args, &draft)?;
    let sender = Sender::new(client.clone(), args.signer.signer()?);
    let mut interrupts = Interrupts::listen()?;
    if args.waiting.no_wait {
        let id = send(&args, &sender, &draft, &mut interrupts, narration).await?;
        if is_json {
            writeln!(out, "{}", json!({ "callId": id }))?;
        }
        return Ok(());
    }
    let sent = send_until_assigned(&args, &sender, draft, &mut interrupts, narration).await;
    let (draft, call) = sent?;
    if is_json {
        writeln!(out, "{}", show::as_json(&call, Some(&draft.agent)))?;
    } else {
        print(&call, &draft.method, out)?;
    }
    let is_agreed = call["agreeing"].as_u64().is_some_and(|agreeing| agreeing > 0);
    match call["status"].as_str().unwrap_or_default() {
        "success" if is_agreed => Ok(()),
        "success" => Err(CliError::Failed(
            "the node reports a success but names no member who agreed".to_owned(),
        )),
        status => Err(CliError::Failed(format!("the call ended as {}", printable(status)))),
    }
}

/// Sends the call and waits for its answer; while it ends unassigned, sends it again. Answers the last one.
async fn send_until_assigned(
    args: &CallArgs,
    sender: &Sender,
    mut draft: Draft,
    interrupts: &mut Interrupts,
    out: Out<'_>,
) -> Result<(Draft, Value), CliError> {
    let mut tried = 1;
    loop {
        let call = send_and_wait(args, sender, &draft, interrupts, out).await?;
        if call["status"] != json!("unassigned") {
            return Ok((draft, call));
        }
        match draft_again(args, sender, &mut tried, interrupts, out).await? {
            Some(again) => draft = again,
            None => return Ok((draft, call)),
        }
        writeln!(out, "\n{}", holds(args, &draft)?)?;
    }
}

/// Waits until enough miners can be drawn for another try, and prepares it; none if no try is left, or
/// after ctrl-C.
async fn draft_again(
    args: &CallArgs,
    sender: &Sender,
    tried: &mut u8,
    interrupts: &mut Interrupts,
    out: Out<'_>,
) -> Result<Option<Draft>, CliError> {
    let tries = args.sending.tries;
    while *tried < tries {
        let pause = RETRY_PAUSE.saturating_mul(u32::from(*tried)).min(RETRY_PAUSE_MAX);
        *tried = tried.saturating_add(1);
        writeln!(
            out,
            "\nunassigned: too few miners could be drawn, and all but the inclusion fee comes back. \
             Try {tried} of {tries} follows in {} s",
            pause.as_secs()
        )?;
        out.flush()?;
        let drafted = async {
            sleep(pause).await;
            draft(args, &sender.client, *tried).await
        };
        let again = match interrupts.unless(drafted).await {
            Some(Ok(again)) => again,
            Some(Err(error)) => {
                writeln!(out, "not tried again: {error}")?;
                return Ok(None);
            }
            None => return Ok(None),
        };
        match check_enough(args, &again) {
            Ok(()) => return Ok(Some(again)),
            Err(error) => writeln!(out, "{error}")?,
        }
    }
    Ok(None)
}

/// Sends the call, and waits until it is decided or settled.
async fn send_and_wait(
    args: &CallArgs,
    sender: &Sender,
    draft: &Draft,
    interrupts: &mut Interrupts,
    out: Out<'_>,
) -> Result<Value, CliError> {
    let id = send(args, sender, draft, interrupts, out).await?;
    let goes_on = || format!("the call goes on: ombra query call {id}");
    let waited = interrupts.unless(wait(args, &sender.client, &id, out)).await;
    let call = waited.unwrap_or_else(|| Err(CliError::Failed("interrupted".to_owned())));
    call.map_err(|error| error.noted(goes_on()))
}

/// The agent, the payload, and what the call would cost at this try, counted from 1.
async fn draft(args: &CallArgs, client: &Client, tried: u8) -> Result<Draft, CliError> {
    if args.committee.is_multiple_of(2) {
        let text = format!("--committee {}, expected an odd number", args.committee);
        return Err(CliError::Usage(text));
    }
    let agent = Agent::find_active(client, &args.agent).await?;
    let method = agent.method(&args.method)?.clone();
    let payload = arguments::payload(&method, &args.arguments)?;
    let consensus = options::decider(args.consensus, args.committee, agent.is_deterministic)
        .map_err(CliError::Usage)?;
    let estimate = estimate(args, client, &agent, (&payload, consensus, tried)).await?;
    let terms = Terms::suggested(&estimate)?;
    let conditional =
        args.on_result.iter().try_fold(Amount::ZERO, |sum, it| sum.checked_add(it.payment.amount));
    let holding = Holding {
        wanted: args.max_fee,
        floor: amount_of(&estimate, "floor")?,
        suggested: amount_of(&estimate, "maxFee")?,
        conditional: conditional.unwrap_or(Amount::MAX),
    };
    let max_fee = holding.max_fee()?;
    Ok(Draft { agent, method, payload, consensus, estimate, terms, max_fee })
}

/// What the node says that the call costs; prices that are named stand above those that miners accept.
async fn estimate(
    args: &CallArgs,
    client: &Client,
    agent: &Agent,
    (payload, consensus, tried): (&[u8], Consensus, u8),
) -> Result<Value, CliError> {
    let mut question = json!({
        "agentId": agent.id,
        "version": agent.version,
        "committeeSize": args.committee,
        "appealable": args.appealable,
        "payload": HexBytes(payload.to_vec()).to_string(),
    });
    if let Consensus::Threshold(needed) = consensus {
        question["threshold"] = json!(needed);
    }
    if !args.limit.is_empty() {
        let limits = args.limit.iter().map(|it| (it.name.to_owned(), json!(it.number)));
        question["limits"] = Value::Object(Map::from_iter(limits));
    }
    let told: Answer = client.call("ombra_estimateCall", [&question]).await?;
    let is_raised = tried >= RAISED_FROM_TRY && !args.price.iter().any(|it| it.name == PER_CALL);
    if args.price.is_empty() && !is_raised {
        return Ok(told.into_value());
    }
    let mut prices = told["prices"].clone();
    if is_raised {
        prices[PER_CALL] = json!(a_quarter_more(amount_of(&prices, PER_CALL)?));
    }
    for Price { name, amount } in &args.price {
        prices[*name] = json!(amount);
    }
    question["prices"] = prices;
    let told: Answer = client.call("ombra_estimateCall", [&question]).await?;
    Ok(told.into_value())
}

/// Rounded up to whole micro-OMBRA.
fn a_quarter_more(amount: Amount) -> Amount {
    let more = amount.get().div_ceil(4);
    Amount::new(amount.get().saturating_add(more))
}

/// What will be held, and for what.
fn holds(args: &CallArgs, draft: &Draft) -> Result<String, CliError> {
    let Draft { agent, method, estimate, max_fee, consensus, .. } = draft;
    let name = one_line(&agent.name, NAME_CHARS_MAX);
    let [eligible, needed] = ["eligible", "needed"].map(|key| scalar(&estimate[key]));
    let decides = match consensus {
        Consensus::Majority => format!("the majority of {}", args.committee),
        Consensus::Threshold(needed) => format!("{needed} of {}", args.committee),
    };
    let appealable = if args.appealable { ", can be appealed" } else { "" };
    let mut rows = facts([
        ("agent", format!("{name} {} ({})", agent.version, agent.id)),
        ("method", method.signature()),
        ("decides", format!("{decides}{appealable}")),
        ("miners", format!("{eligible} can be drawn at these prices, {needed} are needed")),
        ("held", ombra(*max_fee)),
        ("  a member", format!("{} at most", ombra(draft.terms.budget))),
        ("  royalty", format!("{} on success", ombra_of(&estimate["royalty"]))),
    ]);
    for OnResult { when, to, amount } in args.on_result.iter().map(|it| &it.payment) {
        rows.add_row([
            "  on the answer".to_owned(),
            format!("{} to {} on {when}", ombra(*amount), to.address),
        ]);
    }
    rows.add_row(["", "what is not used comes back when the call is settled"]);
    if let Some(typical) = typical(&estimate["typical"]) {
        rows.add_row(["recent calls".to_owned(), typical]);
    }
    if let Consensus::Threshold(_) = consensus {
        rows.add_row(["note", "with a threshold an empty answer is paid like an honest one"]);
    }
    Ok(rows.to_string())
}

/// What recent calls of the agent took, if there are any.
fn typical(typical: &Value) -> Option<String> {
    let [calls, read, written, fuel] =
        ["calls", "inputTokens", "outputTokens", "fuel"].map(|key| scalar(&typical[key]));
    let seconds = Duration::from_millis(typical["latencyMs"].as_u64()?).as_secs_f64();
    Some(format!(
        "{read} tokens read, {written} written, {fuel} units of fuel; decided after {seconds:.1} s \
         (medians of {calls})"
    ))
}

/// A failure if the call would be unassigned.
fn check_enough(args: &CallArgs, draft: &Draft) -> Outcome {
    let estimate = &draft.estimate;
    if args.sending.anyway || estimate["enough"] == json!(true) {
        return Ok(());
    }
    let [eligible, needed, full, offering] =
        ["eligible", "needed", "full", "offering"].map(|key| scalar(&estimate[key]));
    Err(CliError::Failed(format!(
        "nothing was sent: {needed} miners are needed, but only {eligible} can be drawn at these \
         prices ({full} are busy or have too little free bond; {offering} offer at any price). Try \
         again later, raise --price, or add --anyway"
    )))
}

/// The call, once it is decided, or settled; tells meanwhile where it is.
async fn wait(
    args: &CallArgs,
    client: &Client,
    id: &Hash,
    out: Out<'_>,
) -> Result<Value, CliError> {
    let deadline =
        args.waiting.timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let until = if args.waiting.settled { "settled" } else { "decided" };
    let options = json!({ "until": until, "timeoutMs": WAIT_MS });
    let (mut told, mut reached) = (String::new(), Instant::now());
    loop {
        let began = Instant::now();
        let asked = client.call("ombra_waitForCall", (id, &options)).await;
        let call: Answer = match asked {
            Ok(call) => call,
            Err(error) => {
                let again = error.retry_after().filter(|_| reached.elapsed() < AWAY_MAX);
                let Some(pause) = again else { return Err(error.into()) };
                sleep(pause.max(PAUSE)).await;
                continue;
            }
        };
        reached = Instant::now();
        let now = progress(&call);
        if now != told {
            writeln!(out, "{now}")?;
            out.flush()?;
            told = now;
        }
        if is_there(&call, args.waiting.settled) {
            return Ok(call.into_value());
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(CliError::Failed("--timeout has passed".to_owned()));
        }
        // A node that answers at once, whatever it is asked, is not asked as often as it can.
        sleep(PAUSE.saturating_sub(began.elapsed())).await;
    }
}

fn is_there(call: &Value, is_settlement_wanted: bool) -> bool {
    let status = call["status"].as_str().unwrap_or_default();
    let is_decided = matches!(status, "success" | "failed" | "timedOut" | "unassigned");
    if is_settlement_wanted { call["settled"] == json!(true) } else { is_decided }
}

/// `committing   3 members, 2 committed, 0 revealed`.
fn progress(call: &Value) -> String {
    let status = scalar(&call["status"]);
    let rounds = call["rounds"].as_array().and_then(|rounds| rounds.last());
    match rounds {
        None => format!("{status:<12} waits for the block that draws its members"),
        Some(round) => {
            let [elected, committed, revealed] =
                ["elected", "committed", "revealed"].map(|key| scalar(&round[key]));
            format!("{status:<12} {elected} members, {committed} committed, {revealed} revealed")
        }
    }
}

/// The answer, who gave it, and the bill.
fn print(call: &Value, method: &Method, out: Out<'_>) -> Outcome {
    let agreeing = call["agreeing"].as_u64().map_or_else(
        || "no answer stands".to_owned(),
        |agreeing| format!("{agreeing} of {} agree", scalar(&call["committeeSize"])),
    );
    writeln!(out, "\n{}: {agreeing}", scalar(&call["status"]))?;
    if let Some(answer) = show::answer(call, Some(method)) {
        writeln!(out, "\n{answer}")?;
    }
    if let Some(work) = show::work(call) {
        writeln!(out, "\n{work}")?;
    }
    if let Some(members) = show::members(call) {
        writeln!(out, "\n{members}")?;
    }
    match show::bill(call) {
        Some(bill) => writeln!(out, "\n{bill}")?,
        None => {
            let (until, id) =
                (super::output::time_of(&call["deadlineAt"]), scalar(&call["callId"]));
            writeln!(out, "\nnot settled: it can be appealed until {until}: ombra tx appeal {id}")?;
        }
    }
    Ok(())
}
