//! Taking requests in: those with the same body one after the other, so that whoever repeats one finds it.

use std::sync::Arc;

use miner::journal::JournalError;
use tokio::sync::{oneshot, watch};
use types::Hash;

use super::service::ARRIVALS_AT_ONCE;
use super::{Job, RequestService, Submitted};
use crate::openai::ApiFault;
use crate::record::{Delivery, RequestId};
use crate::store::{Admission, Attached, Identity, NewRequest};

impl RequestService {
    /// Takes a request in, or finds the one that it repeats; which one, and how it goes on.
    ///
    /// # Errors
    /// Why it is not taken in.
    pub(crate) async fn take(
        self: &Arc<Self>,
        new: NewRequest,
        job: Job,
    ) -> Result<Submitted, ApiFault> {
        let service = Arc::clone(self);
        let body = new.body;
        let entering = async move { service.take_now(new, job).await.map(Some) };
        self.in_turn(body, entering).await?.ok_or_else(ApiFault::internal)
    }

    /// Follows the request that this one repeats, if it repeats one; so it is not priced again.
    ///
    /// # Errors
    /// When its `Idempotency-Key` had another body, or the store cannot be used.
    pub(crate) async fn repeated(
        self: &Arc<Self>,
        identity: Identity,
    ) -> Result<Option<Submitted>, ApiFault> {
        let service = Arc::clone(self);
        let entering = async move {
            let known = service.store.repeated(identity).await.map_err(|error| internal(&error))?;
            known.map(|known| service.attach(known)).transpose()
        };
        self.in_turn(identity.body, entering).await
    }

    /// Has requests with the same body enter one after the other. A client that hangs up meanwhile must not
    /// leave a request behind that nobody works on, or that nobody is known to wait for.
    async fn in_turn(
        self: &Arc<Self>,
        body: Hash,
        entering: impl Future<Output = Result<Option<Submitted>, ApiFault>> + Send + 'static,
    ) -> Result<Option<Submitted>, ApiFault> {
        let service = Arc::clone(self);
        let (give, taken) = oneshot::channel();
        self.tasks.spawn(async move {
            let place = usize::from(body.as_bytes()[0]) % ARRIVALS_AT_ONCE;
            let _turn = match service.arrivals.get(place) {
                Some(arrival) => Some(arrival.lock().await),
                None => None,
            };
            let submitted = entering.await;
            let admitted = |(id, progress): Submitted| (Admitted::new(&service, id), progress);
            // Dropped unheard, it says so before anybody repeats the request.
            drop(give.send(submitted.map(|submitted| submitted.map(admitted))));
        });
        let taken = taken.await.unwrap_or_else(|_broken| Err(ApiFault::internal()))?;
        Ok(taken.map(|(admitted, progress)| (admitted.release(), progress)))
    }

    async fn take_now(self: &Arc<Self>, new: NewRequest, job: Job) -> Result<Submitted, ApiFault> {
        let admission = self.store.admit(new).await.map_err(|error| internal(&error))?;
        match admission {
            Admission::New(id) => Ok((id, self.spawn(id, Some(job)))),
            known @ (Admission::Known(_)
            | Admission::NameReused
            | Admission::Refused(_)
            | Admission::WalletEmpty { .. }) => self.attach(known),
        }
    }

    /// Follows what a request repeats, or says why it is not taken in.
    fn attach(self: &Arc<Self>, admission: Admission) -> Result<Submitted, ApiFault> {
        match admission {
            Admission::New(id) | Admission::Known(Attached(id)) => {
                let known = self.live.lock().get(&id).map(watch::Sender::subscribe);
                Ok((id, known.unwrap_or_else(|| self.spawn(id, None))))
            }
            Admission::NameReused => Err(ApiFault::name_reused()),
            Admission::Refused(refused) => Err(ApiFault::refused(&refused)),
            Admission::WalletEmpty { left_micro } => Err(ApiFault::quota(format!(
                "the gateway's wallet {} has {left_micro} micro-OMBRA left",
                self.wallet()
            ))),
        }
    }
}

/// A request between the service and the connection that waits for it. Dropped there, it is lost, and a
/// retry finds it.
#[derive(Debug)]
struct Admitted {
    service: Arc<RequestService>,
    id: RequestId,
    is_let_go: bool,
}

impl Admitted {
    fn new(service: &Arc<RequestService>, id: RequestId) -> Self {
        Self { service: Arc::clone(service), id, is_let_go: false }
    }

    /// The connection has it.
    fn release(mut self) -> RequestId {
        self.is_let_go = true;
        self.id
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if !self.is_let_go {
            self.service.deliver(self.id, Delivery::Lost);
        }
    }
}

/// What a client is told where the store cannot be used; the log is told more.
pub(super) fn internal(error: &JournalError) -> ApiFault {
    tracing::error!(%error, "the store cannot be used");
    ApiFault::internal()
}
