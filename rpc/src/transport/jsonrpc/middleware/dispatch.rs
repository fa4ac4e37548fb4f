//! The service that the server library calls.

use std::future::Future;

use jsonrpsee::MethodResponse;
use jsonrpsee::core::middleware::{Batch, Notification, RpcServiceT};
use jsonrpsee::types::Request;

use super::batch::answer_batch;
use super::checked::{Checked, Company};

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
            this.checks.connection.keep(&response, room);
            response
        }
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let this = self.clone();
        async move { answer_batch(&this, batch).await }
    }

    fn notification<'a>(
        &self,
        notification: Notification<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.checks.connection.settle_unanswered();
        // Nothing is done for a notification, and nobody waits for an answer.
        drop(self.checks.calls.take());
        self.inner.notification(notification)
    }
}
