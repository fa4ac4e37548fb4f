//! Waiting for a run, and telling the client how far it is.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::request_service::{Ended, Progress};

/// What came of waiting.
#[derive(Debug)]
pub(super) enum Seen {
    /// It has ended.
    Ended(Arc<Ended>),
    /// It goes on.
    Running(Progress),
    /// The client waits no longer.
    Gone,
}

/// Who waits for a run.
pub(super) struct Watcher<'a> {
    context: &'a RequestContext<RoleServer>,
    /// The stage that was told last.
    stage: u64,
}

impl<'a> Watcher<'a> {
    pub(super) const fn new(context: &'a RequestContext<RoleServer>) -> Self {
        Self { context, stage: 0 }
    }

    /// Waits until a run has ended or its progress satisfies `is_enough`, and at most until then.
    pub(super) async fn until(
        &mut self,
        progress: &mut watch::Receiver<Progress>,
        deadline: Instant,
        is_enough: impl Fn(&Progress) -> bool,
    ) -> Seen {
        loop {
            let now = progress.borrow_and_update().clone();
            self.tell(&now).await;
            if let Some(ended) = now.ended {
                return Seen::Ended(ended);
            }
            if is_enough(&now) {
                return Seen::Running(now);
            }
            let changed = tokio::select! {
                biased;
                () = self.context.ct.cancelled() => return Seen::Gone,
                changed = timeout_at(deadline, progress.changed()) => changed,
            };
            if !matches!(changed, Ok(Ok(()))) {
                return Seen::Running(now);
            }
        }
    }

    /// Tells a client that wants to know it, if there is news.
    async fn tell(&mut self, progress: &Progress) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let (stage, message) = stage(progress);
        if stage <= self.stage {
            return;
        }
        self.stage = stage;
        // Exact up to 2^53 steps.
        #[expect(clippy::cast_precision_loss, reason = "a stage is a small number")]
        let param = ProgressNotificationParam::new(token, stage as f64).with_message(message);
        if let Err(error) = self.context.peer.notify_progress(param).await {
            tracing::debug!(%error, "cannot send progress to a client");
        }
    }
}

/// How far a run or a call is, as a number that only grows, and in words.
fn stage(progress: &Progress) -> (u64, String) {
    let (made, waits, works, counted) = match (progress.run, progress.call) {
        (Some(run), _) => (format!("run {run}"), "a miner", "is worked on", "steps"),
        (None, Some(call)) => {
            (format!("call {call}"), "its committee", "has its committee", "answers")
        }
        (None, None) => return (0, String::new()),
    };
    let Progress { steps, .. } = progress;
    match progress {
        Progress { ended: Some(_), .. } => (steps.saturating_add(4), format!("{made} has ended")),
        Progress { is_claimed: true, .. } => {
            (steps.saturating_add(3), format!("{made} {works}, {steps} {counted} so far"))
        }
        Progress { request_tx: Some(_), .. } => (2, format!("{made} waits for {waits}")),
        Progress { .. } => (1, format!("{made} is on its way into a block")),
    }
}

#[cfg(test)]
mod tests {
    //! What a client is told.

    use types::Hash;

    use super::stage;
    use crate::request_service::Progress;

    #[test]
    fn the_number_of_a_stage_only_grows() {
        let mut progress = Progress::default();
        let mut told = vec![stage(&progress).0];
        progress.run = Some(Hash::ZERO);
        told.push(stage(&progress).0);
        progress.request_tx = Some(Hash::ZERO);
        told.push(stage(&progress).0);
        progress.is_claimed = true;
        told.push(stage(&progress).0);
        progress.steps = 2;
        let (number, words) = stage(&progress);
        told.push(number);
        assert!(words.contains("2 steps"), "{words}");
        assert_eq!(vec![0, 1, 2, 3, 5], told);
        let call = Progress { run: None, call: Some(Hash::ZERO), ..progress };
        let (number, words) = stage(&call);
        assert!(number == 5 && words.ends_with("has its committee, 2 answers so far"), "{words}");
    }
}
