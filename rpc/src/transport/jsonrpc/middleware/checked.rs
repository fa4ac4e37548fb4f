//! What every call passes before and after its method: is it in the right place, are its
//! parameters right, how long did it take.

use std::sync::Arc;
use std::time::Instant;

use jsonrpsee::MethodResponse;
use jsonrpsee::core::middleware::RpcServiceT;
use jsonrpsee::types::{ErrorObjectOwned, Id, Request};
use tokio::sync::OwnedSemaphorePermit;
use tower::Layer;

use super::connection::Connection;
use super::shared::Shared;
use crate::admission::{Calls, ReaderPlace, Readers, Room};
use crate::error::RpcError;
use crate::transport::jsonrpc::registry::{Kind, Method, bind, bind_text};
use crate::transport::metrics::UNKNOWN_METHOD;

/// Parameters of a call that submits nothing need not be larger.
const PLAIN_PARAMS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Wraps the service of one connection.
#[derive(Clone)]
pub(crate) struct Checks {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connection: Connection,
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
    pub(super) inner: S,
    pub(super) checks: Checks,
}

/// An answer, and the place that it was read in.
type Answer = (MethodResponse, Option<ReaderPlace>);

/// Whether a call came alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    Alone,
    InBatch,
}

impl<S> Checked<S>
where
    S: RpcServiceT<MethodResponse = MethodResponse> + Sync,
{
    /// An answer and the room that it takes; an error if there is none.
    pub(super) async fn answer_with_room(
        &self,
        id: Id<'_>,
        request: Request<'_>,
        company: Company,
    ) -> (MethodResponse, Room) {
        let Checks { connection, calls, .. } = &self.checks;
        let share = calls.client().share();
        // Whoever reads has its place until the answer is counted.
        let (response, _reading) = self.answer(request, company).await;
        match connection.hold(response.as_json().get().len(), share) {
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
        let Checks { calls, readers, .. } = &self.checks;
        let id = request.id.clone();
        // What may not be made takes nobody's place.
        let permit = match self.admit(method, &request, company) {
            Ok(permit) => permit,
            Err(error) => return (MethodResponse::error(id, ErrorObjectOwned::from(error)), None),
        };
        let bound = match method.kind {
            Kind::Submit => bind_text(method, request.params.take()),
            Kind::Plain | Kind::Wait | Kind::Subscription => bind(method, request.params.take()),
        };
        request.params = match bound {
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
        response.extensions_mut().remove::<Option<ReaderPlace>>();
        drop(permit);
        (response, reading)
    }

    /// Whether the call may be made here and now.
    pub(super) fn admit(
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
        match &self.checks.connection {
            Connection::Http(_) => Ok(None),
            Connection::WebSocket(flow_control) => flow_control.admit().map(Some),
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
        if method.kind == Kind::Subscription
            && matches!(self.checks.connection, Connection::Http(_))
        {
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
