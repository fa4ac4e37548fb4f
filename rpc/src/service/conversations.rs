//! Conversations and their turns.

use types::{Body, Hash};

use super::Context;
use super::history::missing;
use super::paging::{self, Entry};
use crate::error::RpcError;
use crate::ports::{IncludedTx, Ports, RunFilter, Slice};
use crate::wire::{ConversationHit, Page, PageLimit, PageOf, TurnView};

/// Returns the turns of a conversation in the order of the chain.
pub(crate) fn conversation(
    context: &Context,
    conversation_id: &Hash,
    page: &Page,
) -> Result<PageOf<TurnView>, RpcError> {
    let Context { ports, .. } = context;
    let after = page.position()?;
    let Slice { items, next } = ports.transactions.turns(conversation_id, after, page.limit())?;
    let included = ports.transactions.at_within(&items, context.page_bytes_max())?;
    let next = paging::next_after(&items, included.len(), next);
    let entries = included.iter().map(|included| {
        Ok(Entry {
            item: turn_view(ports, included)?.ok_or(RpcError::Internal)?,
            bytes: included.tx.signed_bytes(),
            position: included.location,
        })
    });
    let entries = entries.collect::<Result<_, RpcError>>()?;
    Ok(paging::page_within(entries, next.as_ref(), context.page_bytes_max()))
}

/// A turn.
pub(crate) fn chat_turn(ports: &Ports, hash: Hash) -> Result<TurnView, RpcError> {
    let included = ports.transactions.by_hash(&hash)?;
    let view = included.map(|included| turn_view(ports, &included)).transpose()?.flatten();
    view.ok_or_else(|| missing(ports, "turn", hash))
}

/// A conversation with its first turn; none if nothing has this id.
pub(super) fn find(context: &Context, id: Hash) -> Result<Option<ConversationHit>, RpcError> {
    let one = Page { cursor: None, limit: Some(PageLimit::ONE) };
    let turns = conversation(context, &id, &one)?;
    let first_turn = turns.items.into_iter().next();
    let filter = RunFilter { conversation_id: Some(id), ..RunFilter::default() };
    let runs = &context.ports.runs;
    let has_runs = || runs.list(&filter, None, 1).map(|slice| !slice.items.is_empty());
    let is_known = first_turn.is_some() || has_runs()?;
    Ok(is_known.then_some(ConversationHit { conversation_id: id, first_turn }))
}

/// The view of a turn; `None` if the transaction is of another kind.
fn turn_view(ports: &Ports, included: &IncludedTx) -> Result<Option<TurnView>, RpcError> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only one kind is a turn")]
    let turn = match included.tx.body() {
        Body::ChatTurn(turn) => turn,
        _ => return Ok(None),
    };
    let run = turn.agent_run_id.map(|id| ports.runs.run(&id)).transpose()?.flatten();
    Ok(Some(TurnView::new(included, turn, run.as_ref())))
}
