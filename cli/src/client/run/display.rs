//! What a person sees of a run: a line for everything that happened, and one that lives.

use types::Hash;
use wallet::client::records::{Run, Step};
use wallet::{Answer, Client, Page};

use super::bill;
use super::live::{Live, LiveStanding};
use super::texts::Texts;
use crate::client::output::{duration, indented, one_line, printable, time};
use crate::client::{CliError, Out, Outcome};

/// Beyond any run: 200 steps are one page.
const STEPS_PAGE: u32 = 500;
const NAME_CHARS_MAX: usize = 80;
const OUTPUT_CHARS_MAX: usize = 200;
/// The longest output or thought that is fetched.
const STEP_TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What is shown of thoughts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thoughts {
    /// Where they are.
    Named,
    /// The thoughts.
    Shown,
}

/// Tells more of a step.
type Say = dyn Fn(&Step) -> Vec<String> + Send + Sync;

/// Lines about a step from whoever knows more of it than the chain.
pub(crate) struct Details(Box<Say>);

impl Details {
    /// What this function says.
    pub(crate) fn of(say: impl Fn(&Step) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Box::new(say))
    }
}

impl std::fmt::Debug for Details {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Details").finish_non_exhaustive()
    }
}

/// What of a run was shown already.
#[derive(Debug)]
pub(crate) struct Display {
    id: Hash,
    live: Live,
    texts: Texts,
    thoughts: Thoughts,
    status: String,
    reopens: u64,
    next_step: u64,
    is_away: bool,
    details: Option<Details>,
}

impl Display {
    /// Nothing shown yet.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub(crate) fn of(client: &Client, id: Hash, thoughts: Thoughts) -> Result<Self, CliError> {
        Ok(Self {
            id,
            live: Live::show(),
            texts: Texts::of(client)?,
            thoughts,
            status: String::new(),
            reopens: 0,
            next_step: 0,
            is_away: false,
            details: None,
        })
    }

    /// The same with details of steps.
    pub(crate) fn with(self, details: Details) -> Self {
        Self { details: Some(details), ..self }
    }

    /// Takes the live line away.
    pub(super) fn end(&self) {
        self.live.end();
    }

    /// Says once that the node does not answer.
    pub(super) fn away(&mut self, error: &CliError, out: Out<'_>) -> Outcome {
        if std::mem::replace(&mut self.is_away, true) {
            return Ok(());
        }
        self.live.say("the node does not answer; asking again");
        let why = one_line(&error.to_string(), OUTPUT_CHARS_MAX);
        self.line(out, &format!("node away    {why}; asking again, the run is not affected"))
    }

    /// Reads the run and writes what is new.
    pub(super) async fn refresh(
        &mut self,
        client: &Client,
        out: Out<'_>,
    ) -> Result<Answer<Run>, CliError> {
        let run = client.run(&self.id).await?;
        if std::mem::take(&mut self.is_away) {
            self.line(out, "node back    it answers again")?;
        }
        if run.reopens > self.reopens {
            self.reopens = run.reopens;
            self.status.clear();
            self.line(
                out,
                "re-opened    the miner gave it back or did not begin in time, and may not take it \
                 again; nothing was paid",
            )?;
        }
        if run.miner_address.is_some() && matches!(self.status.as_str(), "" | "pending") {
            self.line(out, &claim(&run))?;
        }
        if run.step_count > 0 {
            self.show_steps(client, out).await?;
        }
        if run.status != self.status {
            self.status.clone_from(&run.status);
            self.show_status(&run, out)?;
        }
        self.tell(client, &run).await?;
        Ok(run)
    }

    fn show_status(&self, run: &Run, out: Out<'_>) -> Outcome {
        if run.status == "pending" {
            let until = run.deadline_at.map(|at| format!(" until {}", time(at)));
            let until = until.unwrap_or_default();
            let id = self.id;
            let how = format!("to take it back: ombra tx cancel {id}");
            self.line(out, &format!("pending      waiting for a miner{until}; {how}"))?;
        } else if run.is_settled() {
            self.live.end();
            self.line(out, &bill::ending(run))?;
        }
        Ok(())
    }

    /// Renews the live line.
    async fn tell(&self, client: &Client, run: &Run) -> Outcome {
        if run.is_settled() {
            return Ok(());
        }
        let back = match run.step_count {
            0 => run.max_fee,
            _ => client.settlement(&self.id).await.map_or(run.max_fee, |now| now.user_refund),
        };
        let status = match run.status.as_str() {
            "pending" => "waiting for a miner",
            "claimed" => "claimed, the miner works",
            _ => "running",
        };
        self.live.tell(&LiveStanding {
            status: status.to_owned(),
            steps: run.step_count,
            steps_max: run.max_steps,
            tokens: run.total_tokens_out,
            cost: run.max_fee.checked_sub(back).unwrap_or_default(),
            escrow: run.max_fee,
        });
        Ok(())
    }

    async fn show_steps(&mut self, client: &Client, out: Out<'_>) -> Outcome {
        let page = Page { cursor: None, limit: Some(STEPS_PAGE) };
        let steps = client.steps(&self.id, &page).await?;
        for step in steps.items.iter().filter(|step| step.step_index >= self.next_step) {
            for line in lines_of(step) {
                self.line(out, &line)?;
            }
            let details = self.details.as_ref().map(|Details(say)| say(step));
            for line in details.unwrap_or_default() {
                self.line(out, &line)?;
            }
            for line in self.texts_of(step).await {
                self.line(out, &line)?;
            }
        }
        if let Some(last) = steps.items.last() {
            self.next_step = last.step_index.saturating_add(1);
        }
        Ok(())
    }

    /// What is kept of a step's texts. One that cannot be had does not end the watching.
    async fn texts_of(&self, step: &Step) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(id) = &step.output_blob_id {
            lines.push(match self.texts.read(id, STEP_TEXT_BYTES_MAX).await {
                Ok(text) if Hash::digest(text.as_bytes()) == step.output_hash => {
                    format!("             said {:?}", one_line(&text, OUTPUT_CHARS_MAX))
                }
                Ok(_) => format!(
                    "             output blob {} is not the text that the step reports",
                    printable(id)
                ),
                Err(error) => format!("             output not shown: {}", plain(&error)),
            });
        }
        if let Some(id) = &step.thought_blob_id {
            lines.push(match self.thoughts {
                Thoughts::Named => {
                    let id = one_line(id, NAME_CHARS_MAX);
                    format!("             thoughts in blob {id}; --thoughts shows them")
                }
                Thoughts::Shown => match self.texts.read(id, STEP_TEXT_BYTES_MAX).await {
                    Ok(text) => format!("             thought: {}", indented(&text)),
                    Err(error) => format!("             thoughts not shown: {}", plain(&error)),
                },
            });
        }
        lines
    }

    /// A line above the live one.
    fn line(&self, out: Out<'_>, line: &str) -> Outcome {
        self.live.aside(|| {
            writeln!(out, "{line}")?;
            Ok(out.flush()?)
        })
    }
}

/// A failure on one line.
fn plain(error: &CliError) -> String {
    one_line(&error.to_string(), OUTPUT_CHARS_MAX)
}

fn claim(run: &Run) -> String {
    let miner = run.miner_address.map(|address| address.to_string()).unwrap_or_default();
    let said = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
    let text = |value| one_line(&said(value).unwrap_or_else(|| "not given".into()), NAME_CHARS_MAX);
    let (model, tier) = (text(&run.model_info), text(&run.hardware_tier));
    format!("claimed      by {miner}, model {model}, {tier}")
}

fn lines_of(step: &Step) -> Vec<String> {
    let Step { step_index, output_tokens, block_index, tx, .. } = step;
    let mut lines =
        vec![format!("step {step_index:<7} {output_tokens} tokens, block {block_index}, tx {tx}")];
    lines.extend(step.tool_calls.iter().map(|call| {
        let name = one_line(&call.name, NAME_CHARS_MAX);
        let outcome = if call.ok { "ok" } else { "failed" };
        format!("             tool {name}: {outcome} in {}", duration(call.duration_ms))
    }));
    lines
}
