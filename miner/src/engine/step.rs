//! One step: the model's answer, the tools that it wants, and the transaction that reports both.

use std::time::Duration;

use agent::backend::BackendError;
use agent::messages::{End, Iteration, Output, ToolCall};
use agent::text::cut;
use agent::tools;
use tokio::time::timeout;
use types::params::AGENT_REWARD_PER_TOKEN;
use types::tx::{AgentStep, ChatTurn, ToolCall as CallReport};
use types::{Body, Hash, RunStatus};

use super::Inner;
use super::blobs::{BASE_FEE_MAX, Content};
use super::budget;
use super::error::{Halt, Pauses};
use super::worker::Scene;
use crate::chain::BlobFees;
use crate::journal::entry::{CallRecord, CallState, Entry, Phase, Purpose, StepRecord, Turn};
use crate::ports::{AgentSession, Ask, Ending, Event, Move, ToolResult};

/// A wait without a deadline; the chain has one for every run, so this is only a bound.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// So often a question is asked that is answered with status 500: it may be the question's own fault,
/// as where the model's template refuses its form.
const ASKED_MAX: u32 = 5;

/// A prompt may have fewer tokens than the one before it by what asked for the rest of a text.
const SHRINKING_TOKENS: u32 = 64;

/// What a requester is told whose run cannot be gone on with, because what follows from the outputs so
/// far would be something else now.
const CHANGED: &str = "the tools that the model was offered are not the same any more";

/// What a course asks, for an output of at most so many tokens, and of no more than it wants.
pub(super) fn question(session: &dyn AgentSession, output_tokens_max: u32) -> Iteration<'_> {
    let Ask { messages, tools, constraint, thinks, so_far, stops, output_tokens_left, unasked: _ } =
        session.ask();
    let wanted = output_tokens_left.unwrap_or(output_tokens_max).max(1);
    let output_tokens_max = output_tokens_max.min(wanted);
    Iteration { messages, tools, constraint, thinks, so_far, stops, output_tokens_max }
}

/// Whether the requester says how much the model may put out.
fn is_bounded_by_requester(session: &dyn AgentSession) -> bool {
    session.ask().output_tokens_left.is_some()
}

impl Inner {
    /// Asks the model, and writes down what it said and what follows.
    pub(super) async fn ask(&self, scene: &Scene) -> Result<(), Halt> {
        let Scene { entry, view, .. } = scene;
        let mut session = match self.replay(scene).await? {
            Ok(session) => session,
            Err(ending) => return self.end(entry, ending).await,
        };
        let early = |session: &dyn AgentSession, status, why: &str| Ending {
            status,
            answer: Some(session.reason(why)),
        };
        if entry.steps >= view.steps_max {
            let why = format!("no answer within the {} steps of maxSteps", view.steps_max);
            return self.end(entry, early(&*session, RunStatus::Failed, &why)).await;
        }
        let Some(paid) = budget::output_tokens_max(view) else {
            let why = "the escrow does not pay for another step";
            return self.end(entry, early(&*session, RunStatus::InsufficientFunds, why)).await;
        };
        let step_max = view.step_tokens_max(self.outbox.step_tokens_max().await?);
        let output_tokens_max = self.step_tokens(paid, step_max);
        let iteration = question(&*session, output_tokens_max);
        let offer = tools::offer_hash(iteration.tools);
        let output = match session.ask().unasked {
            Some(output) => output.clone(),
            None => match self.infer(scene, &iteration).await? {
                Ok(output) => output,
                Err((status, why)) => return self.end(entry, early(&*session, status, &why)).await,
            },
        };
        if let Some(why) = self.shrunk(entry, &output)? {
            return self.end(entry, early(&*session, RunStatus::Failed, &why)).await;
        }
        let spent = u64::from(output.output_tokens) >= paid;
        let why = format!("the escrow paid for {paid} more tokens, and the answer was cut there");
        let is_bounded = is_bounded_by_requester(&*session);
        let then = match output.end {
            End::CallCut if spent && !is_bounded => {
                Move::Finish(early(&*session, RunStatus::InsufficientFunds, &why))
            }
            End::Length | End::CallCut if spent => match session.take(&output) {
                // The requester wanted no more than this.
                Move::Finish(ending) if ending.status == RunStatus::Completed && is_bounded => {
                    Move::Finish(ending)
                }
                // What there is of the answer is part of what is told.
                Move::Finish(_) | Move::Again | Move::Tools(_) => {
                    Move::Finish(early(&*session, RunStatus::InsufficientFunds, &why))
                }
            },
            End::Length | End::CallCut | End::Stop | End::ToolCalls => session.take(&output),
        };
        let record = StepRecord::new(output, then).offered(offer);
        self.parts.journal.put_step(&view.id, entry.steps, &record).await?;
        Ok(())
    }

    /// The most tokens of a step that may have so many, where chain and run take `chain_max` of any.
    pub(super) fn step_tokens(&self, tokens_max: u64, chain_max: u64) -> u32 {
        let most = u32::try_from(tokens_max.min(chain_max)).unwrap_or(u32::MAX);
        most.min(self.parts.config.output_tokens_max).max(1)
    }

    /// The conversation as far as the steps on the chain go. The inner error ends the run.
    async fn replay(&self, scene: &Scene) -> Result<Result<Box<dyn AgentSession>, Ending>, Halt> {
        let Scene { entry, .. } = scene;
        let records = self.parts.journal.steps(&entry.run.id)?;
        let mut session = match self.begin(scene, &records).await? {
            Ok(session) => session,
            Err(ending) => return Ok(Err(ending)),
        };
        let before = usize::try_from(entry.steps).unwrap_or(usize::MAX);
        for record in records.iter().take(before) {
            // What followed was written down when it happened.
            drop(session.take(&record.output));
            if !record.calls.is_empty() {
                drop(session.results(&record.results()));
            }
        }
        Ok(Ok(session))
    }

    /// The beginning of the conversation, with the tools that the model was offered before: what
    /// follows from its outputs depends on them. Only a run without a first question in this journal
    /// waits for tools that nothing is known of.
    async fn begin(
        &self,
        scene: &Scene,
        records: &[StepRecord],
    ) -> Result<Result<Box<dyn AgentSession>, Ending>, Halt> {
        let bytes_max = self.parts.policy.borrow().prompt_bytes_max;
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let mut pauses = Pauses::new(self.parts.config.pause_ms);
        let run = &scene.entry.run;
        let before = self.parts.journal.offer(&run.id)?;
        loop {
            let known = before.as_deref().unwrap_or_default();
            let (_, begun) = self.patiently(|| self.session(run, bytes_max, known)).await?;
            let session = match begun {
                Ok(session) => session,
                Err(why) => return Ok(Err(Ending::without_answer(RunStatus::Failed, why))),
            };
            let offered = session.ask().tools;
            let offer = tools::offer_hash(offered);
            let is_same = records.iter().all(|it| it.tools.is_none_or(|then| then == offer));
            let mut missing = self.parts.tools.missing(&session.grant());
            // What is offered although its server is away fails when it is called, and the model is
            // told. Only what nothing is known of is waited for.
            missing.retain(|name| !offered.iter().any(|tool| tool.name == *name));
            if before.is_some() || is_same && records.iter().any(|it| it.tools.is_some()) {
                missing.clear();
            }
            let why = match (missing.is_empty(), is_same) {
                (true, true) => {
                    if known != offered {
                        self.parts.journal.put_offer(&run.id, offered).await?;
                    }
                    return Ok(Ok(session));
                }
                (true, false) => CHANGED.to_owned(),
                (false, _) if self.time_left(scene).is_none() => {
                    format!("tools of this miner are away: {}", missing.join(", "))
                }
                (false, _) => {
                    tracing::warn!(run = %run.id, ?missing, "waiting for tools");
                    pauses.pause(&self.stop).await?;
                    continue;
                }
            };
            let answer = Some(session.reason(&why));
            return Ok(Err(Ending { status: RunStatus::Failed, answer }));
        }
    }

    /// Asks until there is an output, the run's time is over, or asking again makes no sense.
    async fn infer(
        &self,
        scene: &Scene,
        iteration: &Iteration<'_>,
    ) -> Result<Result<Output, (RunStatus, String)>, Halt> {
        let mut pauses = Pauses::new(self.parts.config.pause_ms);
        let mut failed = 0_u32;
        loop {
            let too_late = || {
                let why = "no answer of the model before the deadline of the chain";
                Ok(Err((RunStatus::Timeout, why.into())))
            };
            let Some(left) = self.time_left(scene) else { return too_late() };
            let stop = self.stop.child_token();
            let asked = timeout(left, self.parts.backend.infer(iteration, &stop)).await;
            stop.cancel();
            let error = match asked {
                Err(_) => return too_late(),
                Ok(Ok(output)) => return Ok(Ok(output)),
                Ok(Err(error)) => error,
            };
            if self.stop.is_cancelled() {
                return Err(Halt::Stopped);
            }
            tracing::warn!(run = %scene.view.id, %error, "the model gave no output");
            self.parts.counters.count(Event::BackendFailed);
            if let BackendError::Failed { status: 500, .. } = error {
                failed = failed.saturating_add(1);
            }
            if !error.is_passing() || failed >= ASKED_MAX {
                return Ok(Err((RunStatus::Failed, public(&error).into())));
            }
            pauses.pause(&self.stop).await?;
        }
    }

    /// A conversation only grows, but for the words that ask for the rest of a text. A prompt that was
    /// counted as fewer tokens than the one before it was cut by the server.
    fn shrunk(&self, entry: &Entry, output: &Output) -> Result<Option<String>, Halt> {
        let Some(before) = entry.steps.checked_sub(1) else { return Ok(None) };
        let Some(before) = self.parts.journal.step(&entry.run.id, before)? else {
            return Ok(None);
        };
        let (now, then) = (output.prompt_tokens, before.output.prompt_tokens);
        let why = format!("the model's server cut the conversation: {then} tokens became {now}");
        Ok((now.saturating_add(SHRINKING_TOKENS) < then).then_some(why))
    }

    /// The time until work on the run must stop; none if that is now.
    pub(super) fn time_left(&self, scene: &Scene) -> Option<Duration> {
        let margin_ms = self.parts.config.deadline_margin_ms;
        let now_ms = self.parts.clock.now_ms().saturating_add(scene.behind_ms);
        let left = budget::time_left_ms(&scene.view, now_ms, margin_ms);
        match left {
            Some(0) => None,
            Some(left_ms) => Some(Duration::from_millis(left_ms).min(LONGEST)),
            None => Some(LONGEST),
        }
    }

    /// Runs the tools that the step still wants, each written down before and after.
    pub(super) async fn run_tools(&self, scene: Scene) -> Result<(), Halt> {
        let mut session = match self.replay(&scene).await? {
            Ok(session) => session,
            Err(ending) => return self.end(&scene.entry, ending).await,
        };
        let Scene { entry, step: Some(record), .. } = &scene else { return Ok(()) };
        let (entry, mut record) = (entry.clone(), record.clone());
        drop(session.take(&record.output));
        let paid = budget::output_tokens_max(&scene.view).unwrap_or(0);
        let tokens_max = scene.view.step_tokens_max(self.outbox.step_tokens_max().await?).min(paid);
        for place in 0..record.calls.len() {
            let Some(CallRecord { call, state }) = record.calls.get(place).cloned() else { break };
            let is_idempotent = || self.parts.tools.is_idempotent(&session.grant(), &call.name);
            let begun = match &state {
                CallState::Done(_) => continue,
                CallState::Wanted => Some(CallState::Begun),
                CallState::Begun => is_idempotent().then_some(CallState::Repeated),
                CallState::Repeated => None,
            };
            let result = if let Some(begun) = begun {
                self.note_call(&entry, &mut record, place, begun).await?;
                let Some(left) = self.time_left(&scene) else {
                    return self.tools_too_late(&entry, &*session).await;
                };
                let stop = self.stop.child_token();
                let grant = session.grant();
                let called = timeout(left, self.parts.tools.call(&grant, &call, &stop)).await;
                stop.cancel();
                if self.stop.is_cancelled() {
                    if is_idempotent() {
                        // A stop is no crash.
                        self.note_call(&entry, &mut record, place, state).await?;
                    }
                    return Err(Halt::Stopped);
                }
                match called {
                    Ok(result) => {
                        // No more than the escrow pays for, and the chain takes in a step.
                        let tokens = result.tokens.min(tokens_max.saturating_sub(record.tokens()));
                        ToolResult { call_id: call.id.clone(), tokens, ..result }
                    }
                    Err(_) => return self.tools_too_late(&entry, &*session).await,
                }
            } else {
                lost_result(&call.id)
            };
            tracing::info!(run = %entry.run.id, tool = call.name, ok = result.ok, "tool");
            let (name, ok, duration_ms) = (call.name.clone(), result.ok, result.duration_ms);
            self.parts.counters.count(Event::ToolCall { name, ok, duration_ms });
            if let Some(call) = record.calls.get_mut(place) {
                call.state = CallState::Done(result);
            }
            if record.is_complete() {
                record.ending = match session.results(&record.results()) {
                    Move::Finish(ending) => Some(ending),
                    Move::Again | Move::Tools(_) => None,
                };
            }
            self.parts.journal.put_step(&entry.run.id, entry.steps, &record).await?;
        }
        Ok(())
    }

    async fn note_call(
        &self,
        entry: &Entry,
        record: &mut StepRecord,
        place: usize,
        state: CallState,
    ) -> Result<(), Halt> {
        if let Some(call) = record.calls.get_mut(place) {
            call.state = state;
        }
        self.parts.journal.put_step(&entry.run.id, entry.steps, record).await?;
        Ok(())
    }

    async fn tools_too_late(&self, entry: &Entry, session: &dyn AgentSession) -> Result<(), Halt> {
        let why = "the tools did not end before the deadline of the chain";
        let ending = Ending { status: RunStatus::Timeout, answer: Some(session.reason(why)) };
        self.end(entry, ending).await
    }

    /// Signs the step, with its long texts in blobs.
    pub(super) async fn sign_step(&self, scene: &Scene) -> Result<(), Halt> {
        let Scene { entry, step: Some(record), view, .. } = scene else { return Ok(()) };
        let mut ids = [None, None];
        for (id, text) in ids.iter_mut().zip(self.blobs(scene, record).await?) {
            let Some(text) = text else { continue };
            match self.keep(entry, &text).await? {
                Ok(kept) => *id = Some(kept),
                Err(code) => {
                    tracing::warn!(run = %view.id, code, "a step goes without its blobs");
                    let record = StepRecord { blobs_refused: true, ..record.clone() };
                    self.parts.journal.put_step(&view.id, entry.steps, &record).await?;
                    return Ok(());
                }
            }
        }
        let [thought_blob_id, output_blob_id] = ids;
        let tokens = record.tokens();
        let calls: Vec<CallReport> = record.calls.iter().filter_map(report).collect();
        let body = AgentStep {
            agent_run_id: view.id,
            step_index: entry.steps,
            output_tokens: tokens,
            output_hash: Hash::digest(record.output.text.as_bytes()),
            thought_blob_id,
            tool_calls: (!calls.is_empty()).then_some(calls),
            output_blob_id,
        };
        let mut signed = entry.at(Phase::StepSigned);
        signed.turns = if self.parts.config.turns { turns(record) } else { Vec::new() };
        self.outbox.post(&signed, &Body::AgentStep(body), Purpose::Step { tokens }).await?;
        Ok(())
    }

    /// The blobs of a step: its thoughts and its output, where they are to be kept. A run can do without
    /// them, so they must not hold it up, and thoughts must not cost more than half of what the step earns.
    async fn blobs(
        &self,
        scene: &Scene,
        record: &StepRecord,
    ) -> Result<[Option<Content>; 2], Halt> {
        let (run, step) = (scene.view.id, scene.entry.steps);
        let [thoughts, output] = self.texts(&scene.entry, record);
        if thoughts.is_none() && output.is_none() {
            return Ok([None, None]);
        }
        let fees = self.patiently(|| self.parts.ledger.blob_fees()).await?;
        if let Some(why) = self.would_hold_up(scene, &fees) {
            tracing::info!(%run, step, why, "a step goes without its blobs");
            return Ok([None, None]);
        }
        let earned_micro = record.tokens().saturating_mul(AGENT_REWARD_PER_TOKEN);
        let thoughts = thoughts.filter(|thoughts| {
            let cost_micro = thoughts.cost_micro(&fees);
            let is_paid = fees.base_fee.is_none() || cost_micro <= earned_micro / 2;
            if !is_paid {
                let why = "a blob for the thoughts costs more than half of what the step earns";
                tracing::info!(%run, step, cost_micro, earned_micro, why, "no blob");
            }
            is_paid
        });
        Ok([thoughts, output])
    }

    /// Why a transaction that a run can do without might keep the run's own transactions, whose nonces
    /// come after it, from the chain until a deadline has passed; none if it will not.
    fn would_hold_up(&self, scene: &Scene, fees: &BlobFees) -> Option<String> {
        if let Some(base_fee) = fees.base_fee.filter(|base_fee| *base_fee > BASE_FEE_MAX) {
            return Some(format!("the base fee is {base_fee}; expected at most {BASE_FEE_MAX}"));
        }
        let margin = Duration::from_millis(self.parts.config.deadline_margin_ms);
        let left = self.time_left(scene).unwrap_or_default();
        (left < margin).then(|| {
            let left_ms = left.as_millis();
            let margin_ms = margin.as_millis();
            format!("{left_ms} ms are left for the run; expected at least {margin_ms}")
        })
    }

    /// What of a step is kept in blobs by the settings: its thoughts and its output.
    fn texts(&self, entry: &Entry, record: &StepRecord) -> [Option<Content>; 2] {
        if record.blobs_refused {
            return [None, None];
        }
        let name = |what: &str| format!("{what}{}", entry.steps);
        let config = &self.parts.config;
        let thoughts = record.output.thoughts.as_ref().filter(|text| !text.is_empty());
        let thoughts = thoughts.filter(|_| config.thought_blobs);
        let text = &record.output.text;
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        [
            thoughts.map(|text| Content::of_text(name("thoughts"), text.clone())),
            (bytes >= config.output_blob_bytes_min)
                .then(|| Content::of_text(name("output"), text.clone())),
        ]
    }

    /// Writes the next turn of the conversation.
    pub(super) async fn write_turn(&self, scene: &Scene) -> Result<(), Halt> {
        let Scene { entry, view, .. } = scene;
        let Some(Turn { role, content }) = entry.turns.first().cloned() else { return Ok(()) };
        let fees = self.patiently(|| self.parts.ledger.blob_fees()).await?;
        if let Some(why) = self.would_hold_up(scene, &fees) {
            tracing::info!(run = %view.id, step = entry.steps, why, "a step goes without its turns");
            self.parts.journal.put(&Entry { turns: Vec::new(), ..entry.clone() }).await?;
            return Ok(());
        }
        let turn = ChatTurn {
            conversation_id: view.conversation_id,
            role,
            content,
            content_blob_id: None,
            parent_turn_hash: None,
            agent_run_id: Some(view.id),
            attachments: None,
        };
        self.outbox.post(entry, &Body::ChatTurn(turn), Purpose::Turn).await?;
        Ok(())
    }
}

/// The result of a call that was under way when the process died, and that may not be made twice.
fn lost_result(call_id: &str) -> ToolResult {
    ToolResult {
        call_id: call_id.to_owned(),
        ok: false,
        text:
            "the result of this call was lost when the miner restarted; it may have had its effect"
                .into(),
        duration_ms: 0,
        tokens: 0,
    }
}

fn report(record: &CallRecord) -> Option<CallReport> {
    let CallState::Done(result) = &record.state else { return None };
    let ToolCall { name, arguments, .. } = &record.call;
    Some(tools::record(name, arguments, &result.text, result.duration_ms, result.ok))
}

/// The turns that a step adds to the conversation.
fn turns(record: &StepRecord) -> Vec<Turn> {
    let turn = |role: &str, text: &str| Turn {
        role: role.to_owned(),
        content: cut(text, types::params::INLINE_TEXT_BYTES_MAX).to_owned(),
    };
    let said = std::iter::once(turn("assistant", &record.output.text));
    let results = record.results();
    let results = results.iter().map(|result| turn("tool", &result.text));
    said.chain(results).filter(|turn| !turn.content.is_empty()).collect()
}

/// What a requester is told about a failure; addresses and answers of the back end stay in the log.
const fn public(error: &BackendError) -> &'static str {
    match error {
        BackendError::TooLong { .. } => "the conversation does not fit the model's context",
        BackendError::Truncated { .. } => "the model's server cut the prompt",
        BackendError::NoUsage { .. } | BackendError::WrongUsage { .. } => {
            "the model's server does not count its tokens"
        }
        BackendError::Refused { .. } => "the model's server refuses the request",
        BackendError::Unreachable { .. }
        | BackendError::Busy { .. }
        | BackendError::Failed { .. }
        | BackendError::Stalled { .. }
        | BackendError::Broken { .. }
        | BackendError::Cancelled
        | BackendError::Open { .. }
        | BackendError::Model(_) => "the model could not be asked",
    }
}
