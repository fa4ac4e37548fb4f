//! The work on one run: what is next, one action at a time.

use std::time::Duration;

use agent::text::cut;
use types::tx::AgentClaim;
use types::{Body, Hash, RunStatus};

use super::blobs::{BASE_FEE_MAX, Content};
use super::error::{Halt, Pauses};
use super::tx_outcome::{Verdict, refused, settle, unsigned};
use super::{Config, Inner, budget};
use crate::chain::RunView;
use crate::journal::entry::{Entry, Outcome, Phase, Purpose, StepRecord};
use crate::journal::resume::{Action, resume};
use crate::policy::jitter_ms;
use crate::ports::{Ending, Event};

/// An answer of at most so many bytes pays nothing for its place, however it is written: a character takes
/// up to six bytes, and [`types::params::RUN_BYTES`] are free.
const FREE_ANSWER_BYTES: usize = 200;

/// What the journal and the chain say about a run.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) entry: Entry,
    /// The record of the step that is next, if there is one.
    pub(super) step: Option<StepRecord>,
    pub(super) view: RunView,
    /// How far this machine's clock is behind the chain's, milliseconds.
    pub(super) behind_ms: u64,
}

impl Inner {
    /// Works on a run until it is over, the engine is stopped, or the journal fails.
    pub(super) async fn work_on(&self, id: Hash) -> Result<(), Halt> {
        let mut pauses = Pauses::new(self.parts.config.pause_ms);
        loop {
            if self.stop.is_cancelled() {
                return Err(Halt::Stopped);
            }
            let Some(entry) = self.parts.journal.entry(&id)? else { return Ok(()) };
            let step = self.parts.journal.step(&id, entry.steps)?;
            let view = self.view(&id).await?;
            let action = resume(&entry, step.as_ref(), view.as_ref(), &self.me);
            tracing::debug!(run = %id, ?action, "next");
            match action {
                Action::Rest => return Ok(()),
                Action::AwaitNode => pauses.pause(&self.stop).await?,
                Action::Close(outcome) => self.close(&entry, outcome).await?,
                Action::End(ending) => self.end(&entry, ending).await?,
                Action::Resend => self.resend(&id).await?,
                Action::Confirm => self.confirm(&entry, step.as_ref()).await?,
                Action::Claim
                | Action::WriteTurn
                | Action::Ask
                | Action::RunTools
                | Action::SignStep
                | Action::SignFinish(_) => {
                    // Those actions follow only from a run that the chain has.
                    let Some(view) = view else { continue };
                    let behind_ms = self.behind_ms().await?;
                    self.act(action, Scene { entry, step, view, behind_ms }).await?;
                }
            }
        }
    }

    /// How far this machine's clock is behind the time of the newest block: deadlines are those of the
    /// chain.
    async fn behind_ms(&self) -> Result<u64, Halt> {
        let head = self.patiently(|| self.parts.ledger.head()).await?;
        Ok(head.block_ms.saturating_sub(self.parts.clock.now_ms()))
    }

    async fn act(&self, action: Action, scene: Scene) -> Result<(), Halt> {
        match action {
            Action::Claim => self.claim(&scene).await,
            Action::WriteTurn => self.write_turn(&scene).await,
            Action::Ask => Box::pin(self.ask(&scene)).await,
            Action::RunTools => Box::pin(self.run_tools(scene)).await,
            Action::SignStep => self.sign_step(&scene).await,
            Action::SignFinish(ending) => self.sign_finish(&scene, ending).await,
            Action::Rest
            | Action::AwaitNode
            | Action::Close(_)
            | Action::End(_)
            | Action::Resend
            | Action::Confirm => Ok(()),
        }
    }

    /// Waits a little, looks for rivals, and claims.
    async fn claim(&self, scene: &Scene) -> Result<(), Halt> {
        let Scene { entry, .. } = scene;
        let id = entry.run.id;
        let jitter_max_ms = self.parts.policy.borrow().claim_jitter_ms;
        let wait_ms = jitter_ms(&self.me, &id, jitter_max_ms);
        Pauses::new(wait_ms).pause(&self.stop).await?;
        if let Some(rival) = self.rival(&id) {
            self.parts.counters.count(Event::LostRace);
            return self.close(entry, Outcome::LostTo(rival)).await;
        }
        if self.view(&id).await?.is_none_or(|view| view.status != RunStatus::Pending) {
            // What that means follows from the chain's record.
            return Ok(());
        }
        let needed_micro = entry.run.claim_bond_micro();
        let share = if needed_micro == 0 {
            None
        } else {
            let Some(share) = self.secure(entry, needed_micro).await? else { return Ok(()) };
            Some(share)
        };
        let claim = AgentClaim {
            agent_run_id: id,
            miner_address: self.me.into(),
            model_info: self.model_info(),
            hardware_tier: self.parts.config.hardware_tier.clone(),
        };
        let signed = entry.at(Phase::ClaimSigned);
        self.outbox.post(&signed, &Body::AgentClaim(claim), Purpose::Claim).await?;
        drop(share);
        Ok(())
    }

    /// What the claim says about the model, at most 256 bytes.
    fn model_info(&self) -> String {
        let manifest = self.parts.backend.manifest();
        let text = if manifest.name == manifest.model {
            manifest.model.clone()
        } else {
            format!("{} ({})", manifest.model, manifest.name)
        };
        cut(&text, 256).to_owned()
    }

    /// Sends what was signed; if it is not in the outbox any more, goes back to before the signature.
    async fn resend(&self, id: &Hash) -> Result<(), Halt> {
        self.outbox.resend(id).await?;
        let Some(entry) = self.parts.journal.entry(id)? else { return Ok(()) };
        let is_settled = unsigned(&entry.phase) == entry.phase;
        if !is_settled {
            let view = self.view(id).await?;
            if view.is_some_and(|view| !view.status.is_terminal()) {
                let again = refused(&entry, unsigned(&entry.phase), "NOT_INCLUDED");
                self.parts.journal.put(&again).await?;
            }
        }
        Ok(())
    }

    /// Writes down that the chain has what was signed.
    async fn confirm(&self, entry: &Entry, step: Option<&StepRecord>) -> Result<(), Halt> {
        self.outbox.resend(&entry.run.id).await?;
        if self.parts.journal.entry(&entry.run.id)?.is_none_or(|now| now.phase != entry.phase) {
            return Ok(());
        }
        let purpose = match (&entry.phase, step) {
            (Phase::ClaimSigned, _) => Purpose::Claim,
            (Phase::StepSigned, Some(step)) => Purpose::Step { tokens: step.tokens() },
            (
                Phase::Reserved
                | Phase::Working
                | Phase::StepSigned
                | Phase::Ending(_)
                | Phase::FinishSigned(_)
                | Phase::Over(_),
                _,
            ) => return Ok(()),
        };
        let (after, _) = settle(entry, step, &purpose, &Verdict::Included { inclusion_micro: 0 });
        self.parts.journal.put(&after).await?;
        Ok(())
    }

    /// Writes down how a run is to end.
    pub(super) async fn end(&self, entry: &Entry, ending: Ending) -> Result<(), Halt> {
        let reason = ending.answer.as_deref().unwrap_or_default();
        let reason = cut(reason, 200);
        tracing::info!(run = %entry.run.id, status = ending.status.as_str(), reason, "ending");
        let ending = Phase::Ending(ending);
        self.parts.journal.put(&Entry { rejections: 0, ..entry.at(ending) }).await?;
        Ok(())
    }

    /// Signs the settlement, with a long answer in a blob.
    async fn sign_finish(&self, scene: &Scene, ending: Ending) -> Result<(), Halt> {
        let Scene { entry, view, .. } = scene;
        if (view.steps, view.tokens) != (entry.steps, entry.tokens) {
            let (chain, journal) = ((view.steps, view.tokens), (entry.steps, entry.tokens));
            tracing::error!(run = %view.id, ?chain, ?journal, "steps and tokens differ");
        }
        let ending = budget::honest(view, ending);
        let mut body = budget::finish(view, &ending);
        let inline_max = types::params::INLINE_TEXT_BYTES_MAX;
        if let Some(answer) = &body.final_answer_inline
            && !self.has_place_for(scene, answer, answer.len() > inline_max).await?
        {
            return Ok(());
        }
        if let Some(answer) = body.final_answer_inline.take_if(|text| text.len() > inline_max) {
            let blob = Content::of_text("answer".into(), answer);
            match self.keep(entry, &blob).await? {
                Ok(id) => body.final_answer_blob_id = Some(id),
                Err(code) => {
                    let bytes = blob.bytes.len();
                    let reason =
                        format!("the answer has {bytes} bytes and its blob was refused: {code}");
                    let ending = Ending::without_answer(RunStatus::Failed, reason);
                    return self.end(entry, ending).await;
                }
            }
        }
        let signed = entry.at(Phase::FinishSigned(ending));
        self.outbox.post(&signed, &Body::AgentFinish(body), Purpose::Finish).await?;
        Ok(())
    }

    /// Whether a long answer, which pays for its place in a block, can be sent now. While that would have
    /// to wait for a lower base fee, this waits; when the time for it is over, the run is to end without
    /// the answer, because a run that lapses costs the bond that its claim has locked.
    async fn has_place_for(
        &self,
        scene: &Scene,
        answer: &str,
        is_blob: bool,
    ) -> Result<bool, Halt> {
        if answer.len() <= FREE_ANSWER_BYTES {
            return Ok(true);
        }
        let fees = self.patiently(|| self.parts.ledger.blob_fees()).await?;
        let is_dear = fees.base_fee.is_some_and(|base_fee| base_fee > BASE_FEE_MAX);
        if !is_dear && !is_blob {
            return Ok(true);
        }
        let Config { deadline_margin_ms, poll_ms, .. } = self.parts.config;
        let needed_ms = if is_dear { deadline_margin_ms } else { 0 };
        let left = self.time_left(scene).unwrap_or_default();
        if left <= Duration::from_millis(needed_ms) {
            let bytes = answer.len();
            let reason =
                format!("the answer has {bytes} bytes, and would come into a block too late");
            self.end(&scene.entry, Ending::without_answer(RunStatus::Failed, reason)).await?;
            return Ok(false);
        }
        if is_dear {
            tracing::info!(run = %scene.view.id, base_fee = ?fees.base_fee, "an answer waits");
            Pauses::new(poll_ms).pause(&self.stop).await?;
        }
        Ok(!is_dear)
    }

    /// Writes down that the work on a run is over.
    pub(super) async fn close(&self, entry: &Entry, outcome: Outcome) -> Result<(), Halt> {
        let run = entry.run.id;
        tracing::info!(%run, %outcome, steps = entry.steps, tokens = entry.tokens, "over");
        if let Outcome::Ended { status, reward_micro } = outcome {
            let duration_ms = self.parts.clock.now_ms().saturating_sub(entry.reserved_ms);
            self.parts.counters.count(Event::Finished { status, reward_micro, duration_ms });
        }
        self.parts.journal.put(&entry.at(Phase::Over(outcome))).await?;
        Ok(())
    }
}
