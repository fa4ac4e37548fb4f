//! Subscriptions.

use std::sync::Arc;

use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;
use jsonrpsee::server::SubscriptionCloseResponse;
use jsonrpsee::{Extensions, PendingSubscriptionSink};

use super::pool_subscriptions::PoolSubscriptions;
use super::subscription::{self, Subscriber};
use crate::admission::Client;
use crate::error::RpcError;
use crate::service::Context;
use crate::service::events::Filter;
use crate::transport::flow_control::FlowControl;
use crate::wire::{EventFilter, EventKind};

/// Subscriptions, on a WebSocket.
#[rpc(server, namespace = "ombra")]
pub trait EventsRpc {
    /// Begins a subscription to one kind of event, which lasts until `ombra_unsubscribe`.
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
impl EventsRpcServer for Context {
    async fn subscribe(
        &self,
        subscription_sink: PendingSubscriptionSink,
        extensions: &Extensions,
        kind: EventKind,
        filter: Option<EventFilter>,
    ) -> SubscriptionCloseResponse {
        match Filter::new(kind, filter.unwrap_or_default()) {
            Ok(filter) => {
                match subscriber(extensions) {
                    Some(who) => subscription::serve(self, subscription_sink, filter, who).await,
                    // Subscriptions are refused elsewhere than on a WebSocket, which has all of it.
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

fn subscriber(extensions: &Extensions) -> Option<Subscriber> {
    Some(Subscriber {
        flow_control: extensions.get::<Arc<FlowControl>>()?.clone(),
        client: extensions.get::<Client>()?.clone(),
        pool: extensions.get::<Arc<PoolSubscriptions>>()?.clone(),
    })
}
