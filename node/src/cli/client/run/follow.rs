//! Following a run: events say that something happened, the run's record says what.
//!
//! So a lost or repeated event costs nothing, and a run that was already under way is shown whole.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use types::Hash;
use wallet::client::records::{Run, Step};
use wallet::{Answer, Client, ClientError, Events, Page};

use crate::cli::client::output::{one_line, printable};
use crate::cli::client::{CliError, Out, Outcome};

/// The record is read again after this time even when no event comes.
const REFRESH: Duration = Duration::from_secs(5);
/// A node that is away longer is given up; shorter, it may be restarting.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// Beyond any run: 200 steps are one page.
const STEPS_PAGE: u32 = 500;
const NAME_CHARS_MAX: usize = 80;

/// What of a run was shown already.
#[derive(Debug)]
pub(super) struct Progress {
    id: Hash,
    status: String,
    reopens: u64,
    next_step: u64,
}

impl Progress {
    /// Nothing shown yet.
    pub(super) fn of(id: Hash) -> Self {
        Self { id, status: String::new(), reopens: 0, next_step: 0 }
    }

    /// Reads the run and writes what is new.
    async fn refresh(&mut self, client: &Client, out: Out<'_>) -> Result<Answer<Run>, CliError> {
        let run = client.run(&self.id).await?;
        if run.reopens > self.reopens {
            self.reopens = run.reopens;
            self.status.clear();
            writeln!(out, "re-opened    the miner did not begin in time")?;
        }
        let has_miner = run.miner_address.is_some();
        if has_miner && matches!(self.status.as_str(), "" | "pending") {
            print_claim(&run, out)?;
        }
        if run.step_count > 0 {
            self.print_steps(client, out).await?;
        }
        if run.status != self.status {
            self.status.clone_from(&run.status);
            if run.status == "pending" {
                writeln!(
                    out,
                    "pending      waiting for a miner; to take it back: ombra tx cancel {}",
                    self.id
                )?;
            } else if run.is_settled() {
                writeln!(out, "{}", printable(&run.status))?;
            }
        }
        out.flush()?;
        Ok(run)
    }

    async fn print_steps(&mut self, client: &Client, out: Out<'_>) -> Outcome {
        let page = Page { cursor: None, limit: Some(STEPS_PAGE) };
        let steps = client.steps(&self.id, &page).await?;
        for step in steps.items.iter().filter(|step| step.step_index >= self.next_step) {
            print_step(step, out)?;
        }
        if let Some(last) = steps.items.last() {
            self.next_step = last.step_index.saturating_add(1);
        }
        Ok(())
    }
}

/// Shows a run until it is settled.
///
/// # Errors
/// When the node stays away, or the time is over; the run itself goes on then.
pub(super) async fn follow(
    client: &Client,
    mut events: Events,
    progress: &mut Progress,
    timeout: Option<Duration>,
    out: Out<'_>,
) -> Result<Answer<Run>, CliError> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut reached = Instant::now();
    loop {
        match progress.refresh(client, out).await {
            Ok(run) if run.is_settled() => return Ok(run),
            Ok(_) => reached = Instant::now(),
            Err(CliError::Client(error))
                if error.retry_after().is_some() && reached.elapsed() < AWAY_MAX => {}
            Err(error) => return Err(error),
        }
        tokio::select! {
            event = events.next() => tolerate(event)?,
            () = sleep(REFRESH) => {}
            () = until(deadline) => return Err(CliError::Failed("the time is over".into())),
        }
    }
}

/// An event only says that something happened; a stream that is away is left to the refresh.
fn tolerate(event: Result<Answer, ClientError>) -> Outcome {
    match event {
        Ok(_) => Ok(()),
        Err(error) if error.retry_after().is_some() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Ends at the deadline; never, without one.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn print_claim(run: &Run, out: Out<'_>) -> Outcome {
    let Some(miner) = run.miner_address else {
        return Ok(());
    };
    let said = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
    let text = |value| one_line(&said(value).unwrap_or_else(|| "not told".into()), NAME_CHARS_MAX);
    let (model, tier) = (text(&run.model_info), text(&run.hardware_tier));
    writeln!(out, "claimed      by {miner}, model {model}, {tier}")?;
    Ok(())
}

fn print_step(step: &Step, out: Out<'_>) -> Outcome {
    writeln!(
        out,
        "step {:<7} {} tokens, block {}, tx {}",
        step.step_index, step.output_tokens, step.block_index, step.tx
    )?;
    for call in &step.tool_calls {
        let name = one_line(&call.name, NAME_CHARS_MAX);
        let outcome = if call.ok { "ok" } else { "failed" };
        writeln!(out, "             tool {name}: {outcome} in {} ms", call.duration_ms)?;
    }
    Ok(())
}
