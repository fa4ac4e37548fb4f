//! Deciding about a run, with everything that a decision depends on.

use std::sync::Arc;

use agent::backend::{BackendError, Health, tokens_about};
use agent::messages::ToolSpec;

use super::error::Halt;
use super::shared::Workers;
use super::step::question;
use super::{Inner, budget};
use crate::chain::{ChainError, RunView};
use crate::journal::entry::{Entry, Phase};
use crate::policy::{AskedWork, Circumstances, Decision, Policy, Refusals, decide};
use crate::ports::{AgentSession, Ask, Event};

impl Inner {
    /// Decides about a run; if it is to be claimed, its slot is reserved and a worker begins.
    pub(super) async fn consider(
        self: &Arc<Self>,
        run: RunView,
        workers: &mut Workers,
    ) -> Result<(), Halt> {
        if self.busy.lock().contains(&run.id) {
            return Ok(());
        }
        let policy = Arc::clone(&self.parts.policy.borrow());
        let run = policy.narrowed(run);
        let decision = match self.decide(&run, &policy).await? {
            Ok(decision) => decision,
            Err(error) => {
                tracing::warn!(run = %run.id, %error, "no decision: the node does not answer");
                return Ok(());
            }
        };
        self.tell(&run, &decision).await?;
        if matches!(decision, Decision::Claim { .. }) {
            let id = run.id;
            self.parts.journal.put(&Entry::reserve(run, self.parts.clock.now_ms())).await?;
            self.spawn(id, workers);
        }
        Ok(())
    }

    /// The decision about a run now. The node and the back end are asked only if nothing that is known
    /// stands against it, and the prompt's blob is read last.
    async fn decide(
        &self,
        run: &RunView,
        policy: &Policy,
    ) -> Result<Result<Decision, ChainError>, Halt> {
        let mut standing = self.known(run, policy)?;
        let first = decide(policy, run, &standing);
        if !matches!(first, Decision::Claim { .. }) {
            return Ok(Ok(first));
        }
        let asked = tokio::try_join!(self.parts.ledger.funds(&self.me), self.parts.ledger.head());
        let (funds, head) = match asked {
            Ok(answers) => answers,
            Err(error) => return Ok(Err(error)),
        };
        // Deadlines are those of the chain, and this machine's clock may be behind.
        standing.now_ms = standing.now_ms.max(head.block_ms);
        standing.balance_micro = funds.balance_micro;
        standing.node_syncing = head.syncing;
        standing.backend_down = match self.parts.backend.health().await {
            Health::Ready => None,
            Health::Degraded(why) | Health::Down(why) => Some(why),
        };
        if let Err(error) = self.ask_stakes(run, &mut standing).await? {
            return Ok(Err(error));
        }
        let second = decide(policy, run, &standing);
        if !matches!(second, Decision::Claim { .. }) {
            return Ok(Ok(second));
        }
        let bytes_max = usize::try_from(policy.prompt_bytes_max).unwrap_or(usize::MAX);
        match self.session(run, bytes_max, &[]).await {
            Err(error) => return Ok(Err(error)),
            Ok((bytes, Err(why))) => {
                standing.prompt_bytes = bytes;
                standing.unreadable = Some(why);
            }
            Ok((bytes, Ok(session))) => {
                standing.prompt_bytes = bytes.max(bytes_of(&session.ask()));
                let grant = session.grant();
                standing.tools_offered = self.parts.tools.offered(&grant);
                standing.tools_missing = self.parts.tools.missing(&grant);
                // A prompt that is refused for its bytes is not counted in tokens.
                let is_short = standing.prompt_bytes <= policy.prompt_bytes_max;
                if is_short && standing.tools_missing.is_empty() {
                    let paid = budget::output_tokens_max(run).unwrap_or(1);
                    let expected = paid.min(policy.tokens_expected);
                    let step_max = run.step_tokens_max(head.step_tokens_max);
                    let output_tokens_max = self.step_tokens(expected, step_max);
                    match self.measured(run, &*session, output_tokens_max).await {
                        Ok(asked) => standing.asked = Some(asked),
                        Err(too_long) => standing.too_long = Some(too_long),
                    }
                }
            }
        }
        Ok(Ok(decide(policy, run, &standing)))
    }

    /// What this miner and the requester have at stake, as far as the run's protection makes it matter.
    async fn ask_stakes(
        &self,
        run: &RunView,
        standing: &mut Circumstances,
    ) -> Result<Result<(), ChainError>, Halt> {
        if run.claim_bond_micro() > 0 {
            match self.own_stake().await? {
                Ok(stake) => standing.bonded = Some(self.bonding.left(&stake)),
                Err(error) => return Ok(Err(error)),
            }
            standing.burned_today_micro =
                self.parts.journal.burned_micro(self.parts.clock.now_ms())?;
        }
        if run.refuse_ms() > 0 {
            match self.parts.ledger.stake(&run.submitter).await {
                Ok(stake) => standing.refusals = Refusals::of(stake),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }

    /// What is asked of the model; of a prompt that leaves no room for an output of so many tokens, its
    /// own tokens and the most that it could have. Where an agent is executed and no model is asked, what
    /// the agent's model reads counts as the prompt: what its author wrote, and the payload.
    async fn measured(
        &self,
        run: &RunView,
        session: &dyn AgentSession,
        output_tokens_max: u32,
    ) -> Result<AskedWork, (u64, u64)> {
        let ask = session.ask();
        if let Some(output) = ask.unasked {
            let texts = output.tool_calls.iter().flat_map(|call| call.arguments.values());
            let hex = texts.map(|text| text.as_str().map_or(0, str::len)).sum::<usize>();
            let before = ask.messages.iter().map(|message| message.text.len()).sum::<usize>();
            let bytes = hex.div_ceil(2).saturating_add(before);
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            return Ok(AskedWork::of(&ask, tokens_about(bytes)));
        }
        let iteration = question(session, output_tokens_max);
        match self.parts.backend.fits(&iteration).await {
            Ok(tokens) => Ok(AskedWork::of(&session.ask(), tokens)),
            Err(BackendError::TooLong { tokens_min, output_tokens, context_tokens_max }) => {
                Err((tokens_min, context_tokens_max.saturating_sub(output_tokens).into()))
            }
            Err(error) => {
                tracing::debug!(run = %run.id, %error, "the prompt was not counted");
                Ok(AskedWork::of(&session.ask(), 0))
            }
        }
    }

    /// What is known without asking anybody; the rest is taken to be well.
    fn known(&self, run: &RunView, policy: &Policy) -> Result<Circumstances, Halt> {
        let now_ms = self.parts.clock.now_ms();
        let day = self.parts.journal.day(now_ms)?;
        let entry = self.parts.journal.entry(&run.id)?;
        let journal =
            entry.filter(Entry::stands_against_claim).map(|entry| entry.phase.to_string());
        let busy = u64::try_from(self.busy.lock().len()).unwrap_or(u64::MAX);
        Ok(Circumstances {
            now_ms,
            miner: self.me,
            balance_micro: u64::MAX,
            runs_busy: busy,
            claims_today: day.claims.saturating_add(self.claims_under_way(policy, day.claims)?),
            spent_today_micro: day.spent_micro,
            burned_today_micro: self.parts.journal.burned_micro(now_ms)?,
            model: self.parts.backend.manifest().model.clone(),
            node_syncing: false,
            backend_down: None,
            asked: None,
            too_long: None,
            tools_offered: Vec::new(),
            tools_missing: Vec::new(),
            journal,
            rival: self.rival(&run.id),
            prompt_bytes: u64::try_from(run.prompt.len()).unwrap_or(u64::MAX),
            unreadable: None,
            bonded: None,
            refusals: Refusals::default(),
        })
    }

    /// Claims that are to be signed or whose fate is not known, where they may reach the limit of a
    /// day.
    fn claims_under_way(&self, policy: &Policy, included: u64) -> Result<u64, Halt> {
        let busy = u64::try_from(self.busy.lock().len()).unwrap_or(u64::MAX);
        if included.saturating_add(busy) < policy.claims_per_day_max {
            return Ok(0);
        }
        let is_claim = |entry: &Entry| matches!(entry.phase, Phase::Reserved | Phase::ClaimSigned);
        let open = self.parts.journal.open_entries()?;
        Ok(u64::try_from(open.iter().filter(|entry| is_claim(entry)).count()).unwrap_or(u64::MAX))
    }

    /// The conversation that a run asks for, whose model was offered some tools `before`, and the
    /// bytes of its prompt with its blob.
    pub(super) async fn session(
        &self,
        run: &RunView,
        bytes_max: usize,
        before: &[ToolSpec],
    ) -> Result<(u64, Result<Box<dyn AgentSession>, String>), ChainError> {
        let blob = match &run.prompt_blob_id {
            None => None,
            Some(id) => match self.parts.runs.blob_text(id, bytes_max).await? {
                Some(text) => Some(text),
                None => return Ok((0, Err(format!("the prompt's blob {id} cannot be read")))),
            },
        };
        self.parts.tools.fetch(run).await?;
        let bytes = run.prompt.len().saturating_add(blob.as_ref().map_or(0, String::len));
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        Ok((bytes, self.parts.courses.begin(run, blob.as_deref(), before)))
    }

    /// One count and one note for a decision, and one line if the last one about the run was another:
    /// a pending run is looked at as often as the node is.
    pub(super) async fn tell(&self, run: &RunView, decision: &Decision) -> Result<(), Halt> {
        let code = decision.code();
        let (run_id, max_fee_micro) = (run.id, run.max_fee_micro);
        let before = self.parts.journal.why(&run.id)?.decisions;
        let is_other = before.last().is_none_or(|noted| noted.decision.code() != code);
        match decision {
            Decision::Claim { after_ms } => {
                tracing::info!(run = %run_id, max_fee_micro, after_ms, "claim");
            }
            Decision::Skip(reason) if is_other => {
                tracing::info!(run = %run_id, code, %reason, "skip");
            }
            Decision::Wait(reason) if is_other => {
                tracing::info!(run = %run_id, code, %reason, "wait");
            }
            Decision::Skip(reason) | Decision::Wait(reason) => {
                tracing::debug!(run = %run_id, code, %reason, "as before");
            }
        }
        self.parts.journal.note(&run.id, decision, self.parts.clock.now_ms()).await?;
        self.parts.counters.count(Event::Decided(code));
        Ok(())
    }
}

/// The bytes of what a model reads: the texts of the messages, and the tools as they are described.
fn bytes_of(ask: &Ask<'_>) -> u64 {
    let texts = ask.messages.iter().map(|message| message.text.len());
    let tools = ask.tools.iter().map(|tool| {
        let parameters = tool.parameters.to_string().len();
        parameters.saturating_add(tool.name.len()).saturating_add(tool.description.len())
    });
    let bytes = texts.chain(tools).fold(0, usize::saturating_add);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
