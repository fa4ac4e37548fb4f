//! Subscriptions.

use jsonrpsee::PendingSubscriptionSink;
use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;
use jsonrpsee::server::SubscriptionCloseResponse;

use super::Api;
use crate::events::{self, Filter};
use crate::wire::{EventFilter, EventKind};

/// Subscriptions, on a WebSocket.
#[rpc(server, namespace = "ombra")]
pub trait EventsRpc {
    /// Notifications of one kind of event, until `ombra_unsubscribe`.
    #[subscription(
        name = "subscribe" => "subscription",
        unsubscribe = "unsubscribe",
        item = serde_json::Value
    )]
    async fn subscribe(
        &self,
        kind: EventKind,
        filter: Option<EventFilter>,
    ) -> SubscriptionCloseResponse;
}

#[async_trait]
impl EventsRpcServer for Api {
    async fn subscribe(
        &self,
        subscription_sink: PendingSubscriptionSink,
        kind: EventKind,
        filter: Option<EventFilter>,
    ) -> SubscriptionCloseResponse {
        match Filter::new(kind, filter.unwrap_or_default()) {
            Ok(filter) => events::serve(self, subscription_sink, filter).await,
            Err(error) => {
                subscription_sink.reject(error).await;
                SubscriptionCloseResponse::None
            }
        }
    }
}
