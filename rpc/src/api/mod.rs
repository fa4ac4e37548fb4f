//! The methods: one trait per group of a namespace that only names them, and their
//! implementations, which ask the ports and shape the answers.

#![expect(
    clippy::missing_errors_doc,
    reason = "the registry lists for each method the errors that it answers with"
)]

pub mod accounts;
pub mod admin;
pub mod agents;
pub mod build;
pub mod calls;
pub mod chain;
pub mod compute;
pub mod discover;
pub mod events;
pub mod market;
pub mod network;
pub mod offers;
pub mod pool;
pub mod runs;
pub mod submit;
pub mod transactions;

mod paging;

use std::sync::Arc;

use jsonrpsee::Methods;
use tokio_util::sync::CancellationToken;

use crate::config::Limits;
use crate::events::Hub;
use crate::ports::{ChainFacts, Ports};
use crate::readers::Readers;

/// What the methods are implemented on.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "ports are opaque")]
pub struct Api {
    pub(crate) facts: Arc<ChainFacts>,
    pub(crate) ports: Ports,
    pub(crate) limits: Limits,
    pub(crate) hub: Arc<Hub>,
    pub(crate) readers: Readers,
    pub(crate) shutdown: CancellationToken,
}

impl Api {
    /// Every method of the network port.
    #[must_use]
    pub fn public_methods(&self) -> Methods {
        let groups: [Methods; 15] = [
            accounts::AccountsRpcServer::into_rpc(self.clone()).into(),
            agents::AgentsRpcServer::into_rpc(self.clone()).into(),
            build::methods(self),
            calls::CallsRpcServer::into_rpc(self.clone()).into(),
            chain::ChainRpcServer::into_rpc(self.clone()).into(),
            compute::ComputeRpcServer::into_rpc(self.clone()).into(),
            discover::DiscoverRpcServer::into_rpc(self.clone()).into(),
            events::EventsRpcServer::into_rpc(self.clone()).into(),
            market::MarketRpcServer::into_rpc(self.clone()).into(),
            network::NetworkRpcServer::into_rpc(self.clone()).into(),
            offers::OffersRpcServer::into_rpc(self.clone()).into(),
            pool::PoolRpcServer::into_rpc(self.clone()).into(),
            runs::RunsRpcServer::into_rpc(self.clone()).into(),
            submit::SubmitRpcServer::into_rpc(self.clone()).into(),
            transactions::TransactionsRpcServer::into_rpc(self.clone()).into(),
        ];
        merge(groups)
    }

    /// Every method of the operator's socket.
    #[must_use]
    pub fn admin_methods(&self) -> Methods {
        merge([admin::AdminRpcServer::into_rpc(self.clone()).into()])
    }
}

fn merge<const N: usize>(groups: [Methods; N]) -> Methods {
    let mut methods = Methods::new();
    for group in groups {
        methods.merge(group).expect("no two groups name the same method");
    }
    methods
}
