//! Deciding about a run, with everything that a decision depends on.

use std::sync::Arc;
use std::time::Duration;

use agent::backend::{BackendError, Health, tokens_about};
use agent::messages::ToolSpec;
use tokio::time::timeout;
use types::Address;

use super::declined::ToolsSeen;
use super::error::Halt;
use super::looks::Look;
use super::shared::Workers;
use super::step::question;
use super::{Inner, budget};
use crate::chain::{ChainError, RunView};
use crate::journal::entry::{Entry, Phase};
use crate::policy::{AskedWork, Circumstances, Decision, Policy, Refusals, decide};
use crate::ports::{AgentSession, Ask, Event};

/// How long it may take to read the prompt of one run: others wait meanwhile.
const READING_TIMEOUT: Duration = Duration::from_secs(30);

/// What was read of a run's prompt.
struct Prompt {
    /// The tools that it may use; none if it cannot be understood.
    tools: Option<ToolsSeen>,
}

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
        if let Some(code) = self.declined.lock().code(&run.id, &policy, &*self.parts.tools) {
            self.parts.counters.count(Event::Decided(code));
            return Ok(());
        }
        let run = policy.narrowed(run);
        let (decision, read) = match self.decide(&run, &policy).await? {
            Ok(decided) => decided,
            Err(error) => {
                tracing::warn!(run = %run.id, %error, "no decision: the node does not answer");
                return Ok(());
            }
        };
        self.tell(&run, &decision).await?;
        match (&decision, read) {
            (Decision::Claim { .. }, _) => {
                let id = run.id;
                self.parts.journal.put(&Entry::reserve(run, self.parts.clock.now_ms())).await?;
                self.spawn(id, workers);
            }
            (Decision::Skip(reason), Some(Prompt { tools })) => {
                let of = (run.id, run.submitter);
                self.declined.lock().remember(of, policy, reason.code(), tools);
            }
            (Decision::Skip(_) | Decision::Wait(_), _) => (),
        }
        Ok(())
    }

    /// The decision about a run now, and what was read for it. The miner asks
    /// the node and the back end only if it could claim the run by what it knows, and reads the prompt's blob last.
    async fn decide(
        &self,
        run: &RunView,
        policy: &Policy,
    ) -> Result<Result<(Decision, Option<Prompt>), ChainError>, Halt> {
        let mut standing = self.known(run, policy)?;
        let first = decide(policy, run, &standing);
        if !matches!(first, Decision::Claim { .. }) {
            return Ok(Ok((first, None)));
        }
        let look = match self.look().await? {
            Ok(look) => look,
            Err(error) => return Ok(Err(error)),
        };
        // Deadlines are those of the chain, and this machine's clock may be behind.
        standing.now_ms = standing.now_ms.max(look.block_ms);
        standing.balance_micro = look.balance_micro;
        standing.node_syncing = look.node_syncing;
        standing.backend_down = look.backend_down;
        if run.claim_bond_micro() > 0 {
            standing.bonded = Some(self.bonding.left(&look.stake));
            // The look may have found something.
            let now_ms = self.parts.clock.now_ms();
            standing.burned_today_micro = self.parts.journal.burned_micro(now_ms)?;
        }
        if run.refuse_ms() > 0 {
            match self.refusals(run.submitter).await {
                Ok(refusals) => standing.refusals = refusals,
                Err(error) => return Ok(Err(error)),
            }
        }
        let second = decide(policy, run, &standing);
        if !matches!(second, Decision::Claim { .. }) {
            return Ok(Ok((second, None)));
        }
        let reading = self.read(run, policy, look.step_tokens_max, &mut standing);
        let read = timeout(READING_TIMEOUT, reading).await.unwrap_or_else(|_| {
            standing.unreadable = Some(format!("it took more than {READING_TIMEOUT:?} to read it"));
            Ok(Prompt { tools: None })
        });
        Ok(read.map(|prompt| (decide(policy, run, &standing), Some(prompt))))
    }

    /// Reads the prompt of a run, for what a decision depends on.
    async fn read(
        &self,
        run: &RunView,
        policy: &Policy,
        chain_step_tokens_max: u64,
        standing: &mut Circumstances,
    ) -> Result<Prompt, ChainError> {
        let bytes_max = usize::try_from(policy.prompt_bytes_max).unwrap_or(usize::MAX);
        let (bytes, session) = self.session(run, bytes_max, &[]).await?;
        let session = match session {
            Ok(session) => session,
            Err(why) => {
                standing.prompt_bytes = bytes;
                standing.unreadable = Some(why);
                return Ok(Prompt { tools: None });
            }
        };
        standing.prompt_bytes = bytes.max(bytes_of(&session.ask()));
        let tools = ToolsSeen::of(session.grant(), &*self.parts.tools);
        let (offered, missing) = tools.names();
        standing.tools_offered.clone_from(offered);
        standing.tools_missing.clone_from(missing);
        // A prompt that is refused for its bytes is not counted in tokens.
        let is_short = standing.prompt_bytes <= policy.prompt_bytes_max;
        if is_short && missing.is_empty() {
            let paid = budget::output_tokens_max(run).unwrap_or(1);
            let expected = paid.min(policy.tokens_expected);
            let step_max = run.step_tokens_max(chain_step_tokens_max);
            let output_tokens_max = self.step_tokens(expected, step_max);
            match self.measured(run, &*session, output_tokens_max).await {
                Ok(asked) => standing.asked = Some(asked),
                Err(too_long) => standing.too_long = Some(too_long),
            }
        }
        Ok(Prompt { tools: Some(tools) })
    }

    /// The node and the back end as they are, or were a moment ago.
    async fn look(&self) -> Result<Result<Look, ChainError>, Halt> {
        if let Some(look) = self.looks.last() {
            return Ok(Ok(look));
        }
        let asked = tokio::try_join!(self.parts.ledger.funds(&self.me), self.parts.ledger.head());
        let (funds, head) = match asked {
            Ok(answers) => answers,
            Err(error) => return Ok(Err(error)),
        };
        let stake = match self.own_stake().await? {
            Ok(stake) => stake,
            Err(error) => return Ok(Err(error)),
        };
        let backend_down = match self.parts.backend.health().await {
            Health::Ready => None,
            Health::Degraded(why) | Health::Down(why) => Some(why),
        };
        let look = Look {
            balance_micro: funds.balance_micro,
            block_ms: head.block_ms,
            step_tokens_max: head.step_tokens_max,
            node_syncing: head.syncing,
            backend_down,
            stake,
        };
        self.looks.keep(look.clone());
        Ok(Ok(look))
    }

    /// What a requester did with rewards that were held.
    async fn refusals(&self, requester: Address) -> Result<Refusals, ChainError> {
        if let Some(refusals) = self.looks.refusals(&requester) {
            return Ok(refusals);
        }
        let refusals = Refusals::of(self.parts.ledger.stake(&requester).await?);
        self.looks.keep_refusals(requester, refusals);
        Ok(refusals)
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
