//! `ombra run`: asks for an agent run and shows its life until it is settled.

mod agent;
mod answer;
mod bill;
mod display;
mod follow;
mod interrupt;
mod live;
mod method;
mod request;
mod resume;
mod texts;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use types::{Amount, Hash};
use wallet::client::records::Run;
use wallet::{Answer, Client};

use super::options::{NodeArgs, SignerArgs};
use super::output::printable;
use super::tx::{SECONDS_MAX, Sender, TermsArgs};
use super::{CliError, Out, Outcome, input};
use answer::Reading;
use bill::Bill;
use interrupt::{Interruption, Payer, TakeBack};
use request::{Requested, Sending};
use texts::Texts;

pub use self::agent::AgentArgs;
pub(crate) use display::{Details, Display, Thoughts};
pub(crate) use follow::follow;
pub(in crate::client) use interrupt::Person;
pub use method::MethodArgs;
pub(in crate::client) use request::Question;
pub use resume::ResumeArgs;

/// More than any prompt or envelope, also one in a blob.
const PROMPT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Beyond any run: 200 steps are one page.
const STEPS_PAGE: u32 = 500;

/// A run to ask for, or to watch.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  ombra run \"What is my balance?\" --tools chain_get_balance --max-fee 0.1ombra --dev 0\n  \
                  ombra run \"Is this good?\" --method inferString --allowed yes --allowed no --dev 0\n  \
                  ombra run \"Works well.\" --agent review-judge --dev 0\n  \
                  ombra run \"Works well.\" --agent review-judge --call judge --dev 0\n  \
                  ombra run --method inferMessages --args request.json --dev 0\n  \
                  ombra run --resume RUN --result call_0=done --dev 0\n  \
                  ombra run --follow RUN\n\n\
                  ctrl-C offers to take a pending run back; a claimed one goes on without you."
)]
pub struct RunArgs {
    /// The prompt
    #[arg(required_unless_present_any =
        ["prompt_file", "follow", "resume", "message", "messages", "args", "call"],
        allow_negative_numbers = true)]
    prompt: Vec<String>,
    /// File with the prompt ('-': standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    /// Only watch this run; request nothing
    #[arg(long, value_name = "RUN",
        conflicts_with_all = ["prompt", "prompt_file", "method", "resume"])]
    follow: Option<Hash>,
    #[command(flatten)]
    terms: TermsArgs,
    #[arg(
        long,
        conflicts_with = "tools",
        help = "Ask without tools; if you give neither this nor --tools, free text may use \
                date_diff, date_parse and math_eval"
    )]
    no_tools: bool,
    #[command(flatten)]
    method: MethodArgs,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    resume: ResumeArgs,
    #[command(flatten)]
    watching: WatchArgs,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    signer: SignerArgs,
}

/// How a run is watched.
#[derive(Args, Debug, Default)]
pub struct WatchArgs {
    /// Seconds to watch before giving up; the run itself goes on [default: until it is settled]
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(..=SECONDS_MAX))]
    timeout: Option<u64>,
    /// Show the model's thoughts, if the miner stored them
    #[arg(long)]
    thoughts: bool,
    /// At ctrl-C, cancel a pending run without asking, even if there is no terminal
    #[arg(long)]
    cancel_on_interrupt: bool,
}

/// A run that is on the chain, and who can take it back.
struct Asked {
    id: Hash,
    payer: Payer,
    blob_fees: Amount,
}

/// Carries out `ombra run`. With `--json` the settled record, with its steps, the answer and the
/// bill, is the only line.
///
/// # Errors
/// [`CliError`]; a run that ends otherwise than `completed` is a failure.
pub async fn run(args: RunArgs, out: Out<'_>) -> Outcome {
    let client = args.node.client()?;
    let mut discarded = std::io::sink();
    let is_json = args.node.json;
    let narration: Out<'_> = if is_json { &mut discarded } else { &mut *out };
    let (asked, mut person) = ask(&args, &client, narration).await?;
    let narration: Out<'_> = if is_json { &mut discarded } else { &mut *out };
    let watched = watch(&args.watching, &client, &asked, &mut person, narration).await;
    let id = asked.id;
    let goes_on = || format!("the run goes on: ombra run --follow {id}");
    let settled = watched.map_err(|error| error.noted(goes_on()))?;
    let end = End::of(&client, settled, asked.blob_fees).await?;
    if is_json {
        writeln!(out, "{}", end.json(&client).await?)?;
    } else {
        end.print(out)?;
    }
    match end.run.status.as_str() {
        "completed" => Ok(()),
        status => Err(CliError::Failed(format!("the run ended as {}", printable(status)))),
    }
}

/// The run to watch: asked for now, or named. ctrl-C has its meaning only after the question for a
/// password, which it ends.
async fn ask(args: &RunArgs, client: &Client, out: Out<'_>) -> Result<(Asked, Person), CliError> {
    if let Some(id) = args.follow {
        let payer = Payer::Named(args.signer.clone());
        return Ok((Asked { id, payer, blob_fees: Amount::default() }, Person::listen()?));
    }
    let (question, terms) = question(args, client).await?;
    let signer = args.signer.signer()?;
    let mut person = Person::listen()?;
    let sender = Sender::new(client.clone(), signer);
    let asked = request_run(&sender, question, terms, &mut person, out).await?;
    Ok((asked, person))
}

/// Sends a request, until ctrl-C.
async fn request_run(
    sender: &Sender,
    question: Question,
    terms: TermsArgs,
    person: &mut Person,
    out: Out<'_>,
) -> Result<Asked, CliError> {
    let mut sending = Sending::Nothing;
    let sent = tokio::select! {
        biased;
        () = person.interrupts.next() => None,
        sent = request::send(sender, question, terms, &mut sending, out) => Some(sent?),
    };
    let Requested { id, blob_fees } = sent.ok_or_else(|| interrupted(&sending))?;
    Ok(Asked { id, payer: Payer::Key(sender.signer().clone()), blob_fees })
}

/// Asks for a run in a conversation and follows it; answers it with all that belongs to it.
///
/// # Errors
/// As for [`run`], but the run may have ended in any way.
pub(super) async fn converse(
    sender: &Sender,
    question: Question,
    terms: TermsArgs,
    person: &mut Person,
    out: Out<'_>,
) -> Result<End, CliError> {
    let asked = request_run(sender, question, terms, person, out).await?;
    let watching = WatchArgs::default();
    let settled = watch(&watching, &sender.client, &asked, person, out).await?;
    End::of(&sender.client, settled, asked.blob_fees).await
}

/// What the command line asks for, checked as a miner would.
async fn question(args: &RunArgs, client: &Client) -> Result<(Question, TermsArgs), CliError> {
    let terms = args.terms.clone();
    if let Some(id) = args.resume.resume {
        let resumed = args.resume.request(id, client).await?;
        let mut terms = request::terms_after(terms, &resumed.run);
        if args.no_tools {
            terms.tools.clear();
        }
        let request = method::check(resumed.request, &terms.tools)?;
        return Ok((Question::Method(request), terms));
    }
    let (terms, asked) = args.agent.apply(client, terms, &args.prompt).await?;
    if let Some(question) = asked {
        return Ok((question, terms));
    }
    let prompt = match args.prompt.as_slice() {
        [] => None,
        [prompt] => Some(prompt.clone()),
        [_, second, ..] => {
            let text = format!("unexpected argument {second:?}; put the PROMPT in quotes");
            return Err(CliError::Usage(text));
        }
    };
    let file = args.prompt_file.as_deref();
    let prompt = input::text_or_file(prompt, file, PROMPT_BYTES_MAX)?;
    if let Some(request) = args.method.request(prompt.clone(), &terms.tools)? {
        return Ok((Question::Method(request), terms));
    }
    let prompt = prompt.unwrap_or_default();
    // An agent has the tools that its author gave it.
    let has_defaults = !args.no_tools && terms.agent.is_none() && method::is_free_text(&prompt);
    let terms = if has_defaults { terms.for_free_text() } else { terms };
    Ok((Question::of_text(prompt, &terms)?, terms))
}

/// ctrl-C before it was known that the request is on the chain.
fn interrupted(sending: &Sending) -> CliError {
    let text = match sending {
        Sending::Nothing => "interrupted before the request was sent".to_owned(),
        Sending::Blob(id) => format!(
            "interrupted while storing the prompt as blob {id}; if you repeat the command, it does \
             not pay again for what is stored"
        ),
        Sending::Request(id) => format!(
            "interrupted while sending the request; it may be on the chain: ombra query run {id}"
        ),
    };
    CliError::Failed(text)
}

/// Shows a run until it is settled. ctrl-C may take it back; then it is settled as well.
async fn watch(
    args: &WatchArgs,
    client: &Client,
    asked: &Asked,
    person: &mut Person,
    out: Out<'_>,
) -> Result<Answer<Run>, CliError> {
    let deadline = args.timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let thoughts = if args.thoughts { Thoughts::Shown } else { Thoughts::Named };
    let mut display = Display::of(client, asked.id, thoughts)?;
    let take_back = if args.cancel_on_interrupt { TakeBack::Always } else { TakeBack::Ask };
    loop {
        tokio::select! {
            biased;
            () = person.interrupts.next() => {}
            followed = follow(client, asked.id, &mut display, deadline, out) => return followed,
        }
        display.end();
        let interruption = Interruption { client, id: asked.id, payer: &asked.payer, take_back };
        interruption.handle(person, out).await?;
    }
}

/// A settled run with all that belongs to it.
#[derive(Debug)]
pub(crate) struct End {
    /// The record.
    pub(crate) run: Answer<Run>,
    reading: Reading,
    bill: Bill,
}

impl End {
    /// Gets the answer of a settled run. `blob_fees` is what was paid for its prompt's blob.
    ///
    /// # Errors
    /// When no HTTP client can be made; an answer that cannot be had is told instead.
    pub(crate) async fn of(
        client: &Client,
        run: Answer<Run>,
        blob_fees: Amount,
    ) -> Result<Self, CliError> {
        let reading = Reading::of(&run, client, &Texts::of(client)?).await;
        let bill = Bill::of(&run, blob_fees);
        Ok(Self { run, reading, bill })
    }

    /// What was answered, if the run is completed: the response of a method, or the text.
    pub(crate) fn response(&self) -> Option<&str> {
        (self.run.status == "completed").then(|| self.reading.response()).flatten()
    }

    /// The answer and the bill for people.
    pub(crate) fn print(&self, out: Out<'_>) -> Outcome {
        self.reading.print(&self.run, out)?;
        self.bill.print(out)
    }

    /// The record as the node told it, with the members `steps`, `answer` and `bill` behind.
    ///
    /// # Errors
    /// When the node does not tell the steps.
    pub(crate) async fn json(&self, client: &Client) -> Result<Value, CliError> {
        let mut members: Map<String, Value> =
            serde_json::from_str(self.run.text()).unwrap_or_default();
        let page = json!({ "limit": STEPS_PAGE });
        let steps: Answer =
            client.call("ombra_getAgentSteps", (self.run.agent_run_id, page)).await?;
        members.insert("steps".to_owned(), steps["items"].clone());
        members.insert("answer".to_owned(), self.reading.json());
        members.insert("bill".to_owned(), self.bill.json());
        Ok(Value::Object(members))
    }
}
