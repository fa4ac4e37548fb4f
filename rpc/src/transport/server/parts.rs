//! What answers, before it is bound to anything.

use std::sync::Arc;

use jsonrpsee::server::{ServerHandle, stop_channel};
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::{AnswerMemory, Client, READERS_MAX, Readers, Shares};
use crate::config::Limits;
use crate::ports::{ChainFacts, Ports};
use crate::service::Context;
use crate::service::events::Hub;
use crate::transport::body::BodyReader;
use crate::transport::jsonrpc::{Interface, Registry, Shared, api};
use crate::transport::metrics::Metrics;
use crate::transport::resources::Resources;
use crate::transport::rest::Rest;

/// What answers, before it is bound to anything.
pub(super) struct Parts {
    pub(super) public: Interface,
    pub(super) operator: Interface,
    pub(super) rest: Rest,
    pub(super) shares: Shares,
    pub(super) counts: Metrics,
    pub(super) hub: Arc<Hub>,
    pub(super) websockets: ServerHandle,
    pub(super) tasks: TaskTracker,
}

impl Parts {
    pub(super) fn assemble(
        facts: ChainFacts,
        ports: &Ports,
        limits: &Limits,
        registry: &mut MetricsRegistry,
        shutdown: &CancellationToken,
    ) -> Self {
        let counts = Metrics::register(registry);
        let (stop, websockets) = stop_channel();
        let readers = Readers::new();
        let context =
            Context::new(facts, ports.clone(), limits.clone(), readers.clone(), shutdown.clone());
        let hub = Arc::clone(&context.hub);
        let tasks = TaskTracker::new();
        let resources = |readers| {
            let memory = AnswerMemory::new(limits.response_memory_bytes_max);
            let shares = Shares::new(limits, memory, READERS_MAX);
            Resources {
                metrics: counts.clone(),
                bodies: BodyReader::new(limits),
                nobody: Client::nobody(&shares),
                shares,
                readers,
                tasks: tasks.clone(),
            }
        };
        let interface = |registry, methods, resources| {
            let shared = Shared {
                registry,
                metrics: counts.clone(),
                ports: ports.clone(),
                shutdown: shutdown.clone(),
                response_bytes_max: usize::try_from(limits.response_bytes_max)
                    .unwrap_or(usize::MAX),
            };
            Interface::new(shared, methods, limits, resources, stop.clone())
        };
        let shared = resources(readers);
        let shares = shared.shares.clone();
        let public = interface(Registry::public(), api::public_methods(&context), shared.clone());
        let operator =
            interface(Registry::admin(), api::admin_methods(&context), resources(Readers::new()));
        let rest = Rest::new(Arc::new(context), shared);
        Self { public, operator, rest, shares, counts, hub, websockets, tasks }
    }
}
