//! Waiting for what was asked: a while, and then the client asks again by its id.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::answer::{self, Told};
use super::arguments::WAIT_SECONDS_MAX;
use super::watch::{Seen, Watcher};
use crate::http::connection::Connection;
use crate::openai::ApiFault;
use crate::operate::Asking;
use crate::record::RequestId;
use crate::request_service::{Progress, RequestService};

/// How long what is asked may wait for the node before it is taken in.
pub(super) const NODE_WAIT_MAX: Duration = Duration::from_secs(30);

/// Who waits, as the client is told of progress and as it is counted.
pub(super) type Waiting<'a, 'c> = (&'a mut Watcher<'c>, &'a Asking);

/// Waits until the deadline for what was asked at a moment, and tells how it ended or how far it is.
pub(super) async fn wait(
    service: &Arc<RequestService>,
    (id, mut progress): (RequestId, watch::Receiver<Progress>),
    (began, deadline): (Instant, Instant),
    (watcher, asking): Waiting<'_, '_>,
) -> Result<Told, ApiFault> {
    let mut connection = Connection::new(Arc::clone(service), id, asking.clone());
    let has_id = |it: &Progress| it.run.is_some() || it.call.is_some();
    // Without the id a client could not ask for it again.
    let seen = match watcher.until(&mut progress, deadline, |_| false).await {
        Seen::Running(now) if !has_id(&now) => {
            let most = began + Duration::from_secs(WAIT_SECONDS_MAX);
            watcher.until(&mut progress, most, has_id).await
        }
        seen @ (Seen::Ended(_) | Seen::Running(_) | Seen::Gone) => seen,
    };
    match seen {
        Seen::Ended(ended) => {
            asking.ended(&ended);
            connection.done();
            let told = answer::ended(&progress.borrow(), &ended);
            Ok(Told { value: told, is_error: ended.is_err() })
        }
        Seen::Running(now) => {
            asking.running();
            connection.done();
            Ok(Told::well(answer::running(&now)))
        }
        Seen::Gone => Err(ApiFault::still_running()),
    }
}
