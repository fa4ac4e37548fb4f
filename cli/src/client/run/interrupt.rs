//! ctrl-C while a run is followed: a pending run may be taken back, a claimed one goes on.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use types::tx::AgentCancel;
use types::{Body, Hash};
use wallet::Client;
use wallet::client::records::Run;

use crate::client::options::SignerArgs;
use crate::client::output::{ombra, time};
use crate::client::stdin::Keyboard;
use crate::client::tx::Sender;
use crate::client::{CliError, Interrupts, Out, Outcome, Signer};

/// The cancellation is included within this time or it is not known what became of it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(60);

/// The person before the terminal: ctrl-C, and what is typed.
#[derive(Debug)]
pub(in crate::client) struct Person {
    pub(in crate::client) interrupts: Interrupts,
    pub(in crate::client) keyboard: Keyboard,
}

impl Person {
    /// Listens from now on.
    pub(in crate::client) fn listen() -> Result<Self, CliError> {
        Ok(Self { interrupts: Interrupts::listen()?, keyboard: Keyboard::default() })
    }
}

/// Who could take the run back.
#[derive(Debug)]
pub(super) enum Payer {
    /// The key that asked for it.
    Key(Signer),
    /// The key that the options name, opened when it is needed: a password may be asked for.
    Named(SignerArgs),
}

/// When a pending run is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeBack {
    /// After a question, where there is a terminal.
    Ask,
    /// Without a question.
    Always,
}

/// What ctrl-C means for a run.
#[derive(Debug)]
pub(super) struct Interruption<'a> {
    pub(super) client: &'a Client,
    pub(super) id: Hash,
    pub(super) payer: &'a Payer,
    pub(super) take_back: TakeBack,
}

impl Interruption<'_> {
    /// Takes the run back if that is wished and possible; a second ctrl-C leaves at once.
    ///
    /// # Errors
    /// When the run goes on: why, and what will become of it.
    pub(super) async fn handle(&self, person: &mut Person, out: Out<'_>) -> Outcome {
        let Person { interrupts, keyboard } = person;
        tokio::select! {
            biased;
            () = interrupts.next() => {
                // The question stands without a line end.
                if std::io::stderr().is_terminal() {
                    writeln!(std::io::stderr())?;
                }
                Err(CliError::Failed("interrupted".into()))
            }
            handled = self.decide(keyboard, out) => handled,
        }
    }

    async fn decide(&self, keyboard: &mut Keyboard, out: Out<'_>) -> Outcome {
        let run = self.client.run(&self.id).await?;
        match run.status.as_str() {
            "pending" => self.offer(&run, keyboard, out).await,
            "claimed" | "running" => Err(goes_on(&run)),
            // It was settled just now.
            _ => Ok(()),
        }
    }

    async fn offer(&self, run: &Run, keyboard: &mut Keyboard, out: Out<'_>) -> Outcome {
        let key = match self.payer {
            Payer::Key(key) => Some(key.clone()),
            Payer::Named(signer) => {
                let signer = signer.clone();
                let opened = tokio::task::spawn_blocking(move || signer.signer_if_given()).await;
                opened.map_err(|error| CliError::Failed(error.to_string()))??
            }
        };
        let Some(signer) = key.filter(|key| key.address() == run.submitter) else {
            let text = format!("interrupted; only {} can take the run back", run.submitter);
            return Err(CliError::Failed(text));
        };
        if self.take_back == TakeBack::Ask && !wants_it_back(run, keyboard).await? {
            return Err(waits(run));
        }
        self.cancel(signer, run, out).await
    }

    async fn cancel(&self, signer: Signer, run: &Run, out: Out<'_>) -> Outcome {
        let sender = Sender::new(self.client.clone(), signer);
        let body = Body::AgentCancel(AgentCancel { agent_run_id: run.agent_run_id });
        match sender.include(&body, CANCEL_TIMEOUT).await {
            Ok(included) => {
                writeln!(out, "taken back   tx {}", included.hash)?;
                Ok(())
            }
            Err(error) if error.is_rejection("RUN_NOT_PENDING") => {
                let now = self.client.run(&self.id).await?;
                if now.is_settled() { Ok(()) } else { Err(goes_on(&now)) }
            }
            Err(error) => Err(error),
        }
    }
}

/// Asks the terminal; without one the answer is no.
async fn wants_it_back(run: &Run, keyboard: &mut Keyboard) -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(false);
    }
    let mut terminal = std::io::stderr();
    let escrow = ombra(run.max_fee);
    write!(
        terminal,
        "\nNo miner has taken the run. Cancel it and take {escrow} back? y/n, or ctrl-C to leave: "
    )?;
    terminal.flush()?;
    let typed = keyboard.line().await?.unwrap_or_default();
    Ok(matches!(typed.trim(), "y" | "Y" | "yes"))
}

/// A pending run that is left alone.
fn waits(run: &Run) -> CliError {
    let until = run.deadline_at.map(|at| format!(" until {}", time(at))).unwrap_or_default();
    let (id, escrow) = (run.agent_run_id, ombra(run.max_fee));
    CliError::Failed(format!(
        "interrupted; the run waits for a miner{until}, then {escrow} come back; to take it back \
         now: ombra tx cancel {id}"
    ))
}

/// A claimed run: only its miner, or time, ends it.
fn goes_on(run: &Run) -> CliError {
    let miner = run.miner_address.map(|address| address.to_string()).unwrap_or_default();
    let until = run.deadline_at.map(|at| {
        let at = time(at);
        format!(
            "; if the miner gives no other sign of life by {at}, the chain acts (docs/protocol.md \
             section 5.7)"
        )
    });
    let until = until.unwrap_or_default();
    CliError::Failed(format!(
        "interrupted; miner {miner} works on the run, so you can no longer cancel it{until}"
    ))
}
