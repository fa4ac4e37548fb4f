//! What every call passes before and after its method: is it in the right place, are its
//! parameters right, how long did it take. Submissions do not go further than this: those of one
//! batch are joined.

mod batch;
mod submit;

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use jsonrpsee::MethodResponse;
use jsonrpsee::core::middleware::{Batch, Notification, RpcServiceT};
use jsonrpsee::types::{ErrorObjectOwned, Id, Request};
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tower::Layer;

use crate::error::RpcError;
use crate::gate::Gate;
use crate::memory::Room;
use crate::metrics::{Metrics, UNKNOWN_METHOD};
use crate::ports::Submit;
use crate::rate::Calls;
use crate::readers::{self, Readers};
use crate::registry::{Kind, Method, Registry, bind};
use crate::share::Share;
use submit::submit_alone;

/// Parameters of a call that submits nothing need not be larger.
const PLAIN_PARAMS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) metrics: Metrics,
    pub(crate) submit: Arc<dyn Submit>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) response_bytes_max: usize,
}

/// What kind of connection calls come from.
#[derive(Clone)]
pub(crate) enum Place {
    /// One request, one answer, and the room that the answer takes.
    Http(Arc<Mutex<Room>>),
    /// Many calls at the same time, as many as the gate admits.
    WebSocket(Arc<Gate>),
}

impl Place {
    /// A message of the client gets no answer.
    fn settle_unanswered(&self) {
        match self {
            Self::Http(_) => {}
            Self::WebSocket(gate) => gate.settle(1),
        }
    }

    /// Room for an answer or a part of one.
    fn hold(&self, bytes: usize, share: &Arc<Share>) -> Result<Room, RpcError> {
        match self {
            Self::Http(_) => share.hold(bytes),
            Self::WebSocket(gate) => gate.hold(bytes, share),
        }
    }

    /// Keeps the room of an answer until it is sent.
    fn keep(&self, message: &MethodResponse, room: Room) {
        match self {
            Self::Http(kept) => kept.lock().add(room),
            Self::WebSocket(gate) => gate.keep(message.as_json().get().len(), room),
        }
    }
}

/// Wraps the service of one connection.
#[derive(Clone)]
pub(crate) struct Checks {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
    /// The calls so far, for the rate limit.
    pub(crate) calls: Calls,
    /// Places for calls that read: each may hold an answer that is not counted yet.
    pub(crate) readers: Readers,
}

impl<S> Layer<S> for Checks {
    type Service = Checked<S>;

    fn layer(&self, inner: S) -> Checked<S> {
        Checked { inner, checks: self.clone() }
    }
}

/// A service whose calls are checked.
#[derive(Clone)]
pub(crate) struct Checked<S> {
    inner: S,
    checks: Checks,
}

/// An answer, and the place that it was read in.
type Answer = (MethodResponse, Option<readers::Place>);

/// Whether a call came alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Company {
    Alone,
    InBatch,
}

impl<S> RpcServiceT for Checked<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            NotificationResponse = MethodResponse,
            BatchResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let this = self.clone();
        async move {
            let id = request.id.clone();
            let (response, room) = this.answer_with_room(id, request, Company::Alone).await;
            this.checks.place.keep(&response, room);
            response
        }
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let this = self.clone();
        async move { this.answer_batch(batch).await }
    }

    fn notification<'a>(
        &self,
        notification: Notification<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.checks.place.settle_unanswered();
        // Nothing is done for a notification, and nobody waits for an answer.
        drop(self.checks.calls.take());
        self.inner.notification(notification)
    }
}

impl<S> Checked<S>
where
    S: RpcServiceT<MethodResponse = MethodResponse> + Sync,
{
    /// An answer and the room that it takes; an error if there is none.
    async fn answer_with_room(
        &self,
        id: Id<'_>,
        request: Request<'_>,
        company: Company,
    ) -> (MethodResponse, Room) {
        let Checks { place, calls, .. } = &self.checks;
        let share = calls.client().share();
        // Whoever reads has its place until the answer is counted.
        let (response, _reading) = self.answer(request, company).await;
        match place.hold(response.as_json().get().len(), share) {
            Ok(room) => (response, room),
            Err(error) => {
                (MethodResponse::error(id, ErrorObjectOwned::from(error)), Room::default())
            }
        }
    }

    async fn answer(&self, request: Request<'_>, company: Company) -> Answer {
        let Shared { registry, metrics, .. } = &*self.checks.shared;
        let Some(method) = registry.method(&request.method) else {
            let response = match self.checks.calls.take() {
                Ok(()) => self.inner.call(request).await,
                Err(error) => MethodResponse::error(request.id, ErrorObjectOwned::from(error)),
            };
            metrics.count(UNKNOWN_METHOD, response.as_error_code().unwrap_or_default(), 1);
            return (response, None);
        };
        let started = Instant::now();
        let answer = self.answer_known(method, request, company).await;
        metrics.observe(method.name, started.elapsed());
        metrics.count(method.name, answer.0.as_error_code().unwrap_or_default(), 1);
        answer
    }

    async fn answer_known(
        &self,
        method: &Method,
        mut request: Request<'_>,
        company: Company,
    ) -> Answer {
        let Checks { shared, calls, readers, .. } = &self.checks;
        let id = request.id.clone();
        // What may not be made takes nobody's place.
        let permit = match self.admit(method, &request, company) {
            Ok(permit) => permit,
            Err(error) => return (MethodResponse::error(id, ErrorObjectOwned::from(error)), None),
        };
        if method.kind == Kind::Submit {
            let response = submit_alone(shared, method, request).await;
            drop(permit);
            return (response, None);
        }
        request.params = match bind(method, request.params.take()) {
            Ok(params) => params,
            Err(error) => return (MethodResponse::error(id, ErrorObjectOwned::from(error)), None),
        };
        request.extensions_mut().insert(calls.client().clone());
        let reading = match method.kind {
            // The method has the place, too: a client that goes away does not stop its work.
            Kind::Plain => {
                let reading = readers.place(calls.client().share()).await.ok();
                request.extensions_mut().insert(reading.clone());
                reading
            }
            Kind::Submit | Kind::Wait | Kind::Subscription => None,
        };
        let mut response = self.inner.call(request).await;
        response.extensions_mut().remove::<Option<readers::Place>>();
        drop(permit);
        (response, reading)
    }

    /// Whether the call may be made here and now.
    fn admit(
        &self,
        method: &Method,
        request: &Request<'_>,
        company: Company,
    ) -> Result<Option<OwnedSemaphorePermit>, RpcError> {
        if self.checks.shared.shutdown.is_cancelled() {
            return Err(RpcError::ShuttingDown);
        }
        self.checks.calls.take()?;
        self.placed_right(method, company)?;
        let bytes = request.params.as_ref().map_or(0, |params| params.get().len());
        if bytes > PLAIN_PARAMS_BYTES_MAX && !takes_transactions(method) {
            let message = format!("parameters of {bytes} bytes, at most {PLAIN_PARAMS_BYTES_MAX}");
            return Err(RpcError::too_large("TOO_LARGE", message));
        }
        match &self.checks.place {
            Place::Http(_) => Ok(None),
            Place::WebSocket(gate) => gate.admit().map(Some),
        }
    }

    fn placed_right(&self, method: &Method, company: Company) -> Result<(), RpcError> {
        let name = method.name;
        let waits = match method.kind {
            Kind::Plain | Kind::Submit => false,
            Kind::Wait | Kind::Subscription => true,
        };
        if waits && company == Company::InBatch {
            let message = format!("{name} cannot be called inside a batch: call it alone");
            return Err(RpcError::Misplaced { code: "NOT_IN_BATCH", message });
        }
        if method.kind == Kind::Subscription && matches!(self.checks.place, Place::Http(_)) {
            let message = format!("{name} needs a WebSocket: open one on the same address");
            return Err(RpcError::Misplaced { code: "WEBSOCKET_ONLY", message });
        }
        Ok(())
    }
}

/// Whether transactions are among the parameters, which may be large.
fn takes_transactions(method: &Method) -> bool {
    method.kind == Kind::Submit || method.name == "ombra_sendTransactions"
}
