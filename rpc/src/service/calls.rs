//! Calls of agents.

mod view;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use types::Hash;

use super::events::WaitFor;
use super::transactions::wait_ms;
use super::{Context, paging};
use crate::admission::Share;
use crate::error::RpcError;
use crate::ports::Ports;
use crate::wire::{CallQuery, CallState, CallView, CallWaitOptions, Page, PageOf, WaitUntil};
use view::call_view;

/// The most calls on a page.
const CALLS_MAX: usize = 100;

/// A call with its members and the texts of its transactions.
pub(crate) fn call(ports: &Ports, call_id: Hash) -> Result<CallView, RpcError> {
    let entry = ports.calls.call(&call_id)?;
    call_view(ports, entry.ok_or_else(|| RpcError::not_found("call", call_id))?)
}

/// A call's record as it is now.
pub(crate) fn state(ports: &Ports, call_id: Hash) -> Result<CallState, RpcError> {
    let call = ports.calls.record(&call_id)?;
    let call = call.ok_or_else(|| RpcError::not_found("call", call_id))?;
    Ok(CallState::from(&call))
}

/// Returns calls, newest first, without members and texts.
pub(crate) fn calls(
    ports: &Ports,
    query: &CallQuery,
    page: &Page,
) -> Result<PageOf<CallState>, RpcError> {
    let filter = query.filter()?;
    let limit = page.limit().min(CALLS_MAX);
    let slice = ports.calls.list(&filter, page.position()?, limit)?;
    Ok(paging::page(slice, |call| CallState::from(&call)))
}

/// Returns a call as soon as it is decided or settled. If the time runs out, the answer shows
/// the call as it is.
pub(crate) async fn wait_for_call(
    context: &Context,
    share: &Arc<Share>,
    call_id: Hash,
    options: CallWaitOptions,
) -> Result<CallView, RpcError> {
    let CallWaitOptions { until, timeout_ms } = options;
    let end = Instant::now() + Duration::from_millis(wait_ms(timeout_ms)?);
    let wait_for = WaitFor { call_id, until: until.unwrap_or_default() };
    loop {
        // It is asked after this, so that nothing falls between.
        let waiter = context.hub.wait_for_call(wait_for, share)?;
        if is_reached(context, share, wait_for).await? {
            break;
        }
        tokio::select! {
            told = waiter.told() => told.ok_or(RpcError::ShuttingDown)?,
            () = tokio::time::sleep_until(end) => break,
            () = context.shutdown.cancelled() => return Err(RpcError::ShuttingDown),
        }
    }
    let ports = context.ports.clone();
    context.readers.read(share, move || call(&ports, call_id)).await
}

/// Whether what is waited for has come.
async fn is_reached(
    context: &Context,
    share: &Arc<Share>,
    wait_for: WaitFor,
) -> Result<bool, RpcError> {
    let WaitFor { call_id, until } = wait_for;
    let calls = Arc::clone(&context.ports.calls);
    let found = context.readers.read(share, move || Ok(calls.record(&call_id)?)).await?;
    let call = found.ok_or_else(|| RpcError::not_found("call", call_id))?;
    Ok(match until {
        WaitUntil::Decided => call.status.is_decided(),
        WaitUntil::Settled => call.is_settled(),
    })
}
