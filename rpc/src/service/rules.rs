//! The rules that are in force and those that votes decide on, and what places in blocks cost by them.

use super::{Context, paging};
use crate::error::RpcError;
use crate::ports::Ports;
use crate::wire::{
    FeeEstimate, FeeSchedule, ForksView, InclusionEstimate, Page, PageOf, ParamsView,
    PunishedKeyView,
};

/// The size of the transaction that an estimate is for if the caller does not say, in bytes.
const SIZE_DEFAULT: u64 = 512;
/// More than any block has.
const SIZE_MAX: u64 = 1 << 32;

/// What sets prices and limits.
pub(crate) fn fee_schedule(ports: &Ports) -> Result<FeeSchedule, RpcError> {
    Ok(FeeSchedule::from(&ports.rules.next_rules()?))
}

/// What a place in the next block costs, and what others tip.
pub(crate) fn inclusion_estimate(
    context: &Context,
    size: Option<u64>,
) -> Result<InclusionEstimate, RpcError> {
    let size = size.unwrap_or(SIZE_DEFAULT);
    if !(1..=SIZE_MAX).contains(&size) {
        let expected = format!("1 to {SIZE_MAX} bytes");
        return Err(RpcError::invalid("size", size.to_string(), expected));
    }
    let Context { ports, hub, .. } = context;
    let (rules, tips) = (ports.rules.next_rules()?, hub.tips()?);
    let price = |bytes, base_fee| ports.rules.inclusion_fee(bytes, base_fee);
    Ok(InclusionEstimate::new(&rules, size, tips, price))
}

/// What transfers paid lately.
pub(crate) fn transfer_fees(context: &Context) -> Result<FeeEstimate, RpcError> {
    context.transfer_fees.estimate(&context.ports)
}

/// The keys of validators that lost their power for good, in their order.
pub(crate) fn punished_keys(
    ports: &Ports,
    page: &Page,
) -> Result<PageOf<PunishedKeyView>, RpcError> {
    let slice = ports.keys.punished(page.position()?, page.limit())?;
    Ok(paging::page(slice, PunishedKeyView::from))
}

/// The forks that are to come: votes, and what is fixed.
pub(crate) fn forks(context: &Context) -> Result<ForksView, RpcError> {
    let votes = context.ports.forks.forks()?;
    Ok(ForksView::new(votes, context.facts.params.fork_delay_blocks))
}

/// The parameters that votes can change: values, bounds, votes, and what is decided.
pub(crate) fn params(ports: &Ports) -> Result<ParamsView, RpcError> {
    let (votes, rules) = (ports.rules.params()?, ports.rules.next_rules()?);
    Ok(ParamsView::new(votes, &rules))
}
