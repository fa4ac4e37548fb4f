//! CHAT_TURN: one public turn of a conversation (docs/protocol.md section 5.1).
//!
//! Refused with RUN_NOT_FOUND, BLOB_NOT_FOUND, BLOB_NOT_FINAL, TURN_NOT_FOUND, in this order.

use types::params::CHAT_TURN_FEE;
use types::tx::ChatTurn;
use types::{Code, Event, Hash, Rejection, Transaction};

use super::{Cost, Kind, blobs};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::rules::Rules;
use crate::tables::{ConversationTurns, Runs, TurnPlace, Turns};
use crate::view::{self, Read};
use crate::{ledger, runs, work};

/// The turn to be recorded.
pub(crate) struct Plan {
    conversation_id: Hash,
    tx_hash: Hash,
    /// Rows that it names.
    references: u64,
}

impl Kind for ChatTurn {
    type Plan = Plan;

    fn cost(&self, _: &Transaction, _: &dyn Read, _: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "balance", total: Some(CHAT_TURN_FEE) })
    }

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        if let Some(id) = &self.agent_run_id
            && !view::contains::<Runs>(state, id)?
        {
            return Err(runs::not_found(id).into());
        }
        let content = self.content_blob_id.iter().map(|id| ("contentBlobId", id));
        let attachments = self.attachments.iter().flatten();
        let attached = attachments.map(|item| ("attachments.blobId", &item.blob_id));
        let named = content.chain(attached).collect::<Vec<_>>();
        blobs::require_final(state, &named)?;
        if let Some(parent) = &self.parent_turn_hash {
            check_parent(state, parent, &self.conversation_id)?;
        }
        let references = u64::try_from(named.len()).unwrap_or(u64::MAX);
        Ok(Plan { conversation_id: self.conversation_id, tx_hash: tx.hash(), references })
    }

    fn work(plan: &Plan) -> u64 {
        work::rows(plan.references.saturating_add(3))
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { conversation_id, tx_hash, references: _ } = plan;
        ledger::burn(draft, CHAT_TURN_FEE)?;
        let tx = ctx.location();
        draft.put::<Turns>(&tx_hash, &TurnPlace { conversation_id, tx });
        draft.put::<ConversationTurns>(&(conversation_id, tx.height, tx.position), &tx_hash);
        Ok(Event::TurnAdded { conversation_id })
    }
}

fn check_parent(state: &dyn Read, parent: &Hash, conversation_id: &Hash) -> Result<(), TxError> {
    let turn = view::get::<Turns>(state, parent)?;
    if turn.is_some_and(|turn| turn.conversation_id == *conversation_id) {
        return Ok(());
    }
    let expected = format_args!("a turn of the conversation {conversation_id}");
    Err(Rejection::new(Code::TurnNotFound, "parentTurnHash", parent, expected).into())
}
