//! Every method, as the server library dispatches it.

use jsonrpsee::Methods;

use super::accounts::AccountsRpcServer;
use super::admin::AdminRpcServer;
use super::agents::AgentsRpcServer;
use super::build;
use super::calls::CallsRpcServer;
use super::chain::ChainRpcServer;
use super::compute::ComputeRpcServer;
use super::discover::DiscoverRpcServer;
use super::events::EventsRpcServer;
use super::market::MarketRpcServer;
use super::network::NetworkRpcServer;
use super::offers::OffersRpcServer;
use super::pool::PoolRpcServer;
use super::runs::RunsRpcServer;
use super::submit::SubmitRpcServer;
use super::transactions::TransactionsRpcServer;
use crate::service::Context;

/// Every method of the network port.
pub(crate) fn public_methods(context: &Context) -> Methods {
    let groups: [Methods; 15] = [
        AccountsRpcServer::into_rpc(context.clone()).into(),
        AgentsRpcServer::into_rpc(context.clone()).into(),
        build::methods(context),
        CallsRpcServer::into_rpc(context.clone()).into(),
        ChainRpcServer::into_rpc(context.clone()).into(),
        ComputeRpcServer::into_rpc(context.clone()).into(),
        DiscoverRpcServer::into_rpc(context.clone()).into(),
        EventsRpcServer::into_rpc(context.clone()).into(),
        MarketRpcServer::into_rpc(context.clone()).into(),
        NetworkRpcServer::into_rpc(context.clone()).into(),
        OffersRpcServer::into_rpc(context.clone()).into(),
        PoolRpcServer::into_rpc(context.clone()).into(),
        RunsRpcServer::into_rpc(context.clone()).into(),
        SubmitRpcServer::into_rpc(context.clone()).into(),
        TransactionsRpcServer::into_rpc(context.clone()).into(),
    ];
    merge(groups)
}

/// Every method of the operator's socket.
pub(crate) fn admin_methods(context: &Context) -> Methods {
    merge([AdminRpcServer::into_rpc(context.clone()).into()])
}

fn merge<const N: usize>(groups: [Methods; N]) -> Methods {
    let mut methods = Methods::new();
    for group in groups {
        methods.merge(group).expect("no two groups name the same method");
    }
    methods
}
