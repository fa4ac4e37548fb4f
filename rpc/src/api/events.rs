//! Subscriptions.

use std::sync::Arc;

use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;
use jsonrpsee::server::SubscriptionCloseResponse;
use jsonrpsee::{Extensions, PendingSubscriptionSink};

use super::Api;
use crate::error::RpcError;
use crate::events::{self, Filter};
use crate::gate::Gate;
use crate::rate::Client;
use crate::wire::{EventFilter, EventKind};

/// Subscriptions, on a WebSocket.
#[rpc(server, namespace = "ombra")]
pub trait EventsRpc {
    /// Notifications of one kind of event, until `ombra_unsubscribe`.
    #[subscription(
        name = "subscribe" => "subscription",
        unsubscribe = "unsubscribe",
        item = serde_json::Value,
        with_extensions
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
        extensions: &Extensions,
        kind: EventKind,
        filter: Option<EventFilter>,
    ) -> SubscriptionCloseResponse {
        match Filter::new(kind, filter.unwrap_or_default()) {
            Ok(filter) => {
                let gate = extensions.get::<Arc<Gate>>().cloned();
                let client = extensions.get::<Client>().cloned();
                match gate.zip(client) {
                    Some(flow) => events::serve(self, subscription_sink, filter, flow).await,
                    // Subscriptions are refused elsewhere than on a WebSocket, which has both.
                    None => {
                        subscription_sink.reject(RpcError::Internal).await;
                        SubscriptionCloseResponse::None
                    }
                }
            }
            Err(error) => {
                subscription_sink.reject(error).await;
                SubscriptionCloseResponse::None
            }
        }
    }
}
