//! Conversations and their turns.

use state::error::StorageError;
use state::table::Key;
use state::tables::{ConversationTurns, Turns};
use state::view::{self, Range};
use types::{CheckedTx, Hash, TxLocation};

use crate::snapshot::Snapshot;

/// A turn of a conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnDetail {
    /// Where it is.
    pub location: TxLocation,
    /// The CHAT_TURN.
    pub tx: CheckedTx,
}

impl Snapshot<'_> {
    /// Where the turns of a conversation are, in chain order: those after `after`, at most `limit`.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn conversation_places(
        &self,
        conversation_id: &Hash,
        after: Option<TxLocation>,
        limit: usize,
    ) -> Result<Vec<TxLocation>, StorageError> {
        let TxLocation { height, position } =
            after.unwrap_or(TxLocation { height: 0, position: 0 });
        let mut from = (*conversation_id, height, position).to_bytes();
        if after.is_some() {
            from.push(0); // the first key behind the mark
        }
        let to = [conversation_id.as_bytes().as_slice(), &[0xff; 13]].concat();
        let range = Range { from: &from, to: Some(&to), limit };
        let rows = view::scan::<ConversationTurns>(self, range)?;
        let place = |((_, height, position), _)| TxLocation { height, position };
        Ok(rows.into_iter().map(place).collect())
    }

    /// [`Snapshot::conversation_places`] with the turns.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn conversation(
        &self,
        conversation_id: &Hash,
        after: Option<TxLocation>,
        limit: usize,
    ) -> Result<Vec<TurnDetail>, StorageError> {
        let places = self.conversation_places(conversation_id, after, limit)?;
        let txs = self.bodies_at(&places)?;
        Ok(places.into_iter().zip(txs).map(|(location, tx)| TurnDetail { location, tx }).collect())
    }

    /// A turn by its transaction's hash.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn turn(&self, hash: &Hash) -> Result<Option<TurnDetail>, StorageError> {
        let Some(place) = self.get::<Turns>(hash)? else { return Ok(None) };
        let tx = self.bodies_at(&[place.tx])?.pop();
        Ok(tx.map(|tx| TurnDetail { location: place.tx, tx }))
    }
}
