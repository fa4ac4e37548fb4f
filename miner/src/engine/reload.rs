//! Reading the policy again when its file changes.

use std::sync::Arc;
use std::time::Duration;

use agent::clock::Clock;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::policy::{Policy, PolicyError, PolicyFile};

/// What became of the policy's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyNews {
    /// When the policy in force was read, milliseconds since 1970.
    pub read_ms: u64,
    /// Why the newest version of the file is not in force; none if it is.
    pub refused: Option<String>,
}

/// What else is read again: puts a new text of the whole file in force, or says why it cannot be.
pub type Reread = Box<dyn Fn(&str) -> Result<(), PolicyError> + Send + Sync>;

/// Looks at the policy's file again and again, and hands on what it says when it changed; `also` gets the
/// whole text. A file with faults is told about once and changes nothing. Ends when `stop` is cancelled.
pub async fn follow_policy(
    mut file: PolicyFile,
    (policy, also): (watch::Sender<Arc<Policy>>, Reread),
    told: (Arc<Mutex<PolicyNews>>, Arc<dyn Clock>),
    every: Duration,
    stop: CancellationToken,
) {
    let (news, clock) = told;
    news.lock().read_ms = clock.now_ms();
    let mut was_away = false;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = sleep(every) => (),
        }
        let changed = match file.changed() {
            Ok(Some(changed)) => also(file.text()).map(|()| Some(changed)),
            unchanged => unchanged,
        };
        match changed {
            Ok(None) if was_away && !file.is_changing() => {
                was_away = false;
                news.lock().refused = None;
            }
            Ok(None) => (),
            Ok(Some(changed)) => {
                was_away = false;
                tracing::info!("the policy changed");
                *news.lock() = PolicyNews { read_ms: clock.now_ms(), refused: None };
                policy.send_replace(Arc::new(changed));
            }
            Err(error) => {
                was_away = matches!(error, PolicyError::Unreadable { .. });
                let refused = Some(error.to_string());
                let mut news = news.lock();
                if news.refused != refused {
                    tracing::error!(%error, "the policy stays as it was");
                    news.refused = refused;
                }
            }
        }
    }
}
