//! What the next block could take if it had nothing of other senders that waits.

use std::sync::Arc;

use types::CheckedTx;

use super::state::PendingState;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::execute::{check, execute};

impl PendingState {
    /// Whether the next block could take a transaction, if it took nothing before it but these of its sender: of
    /// money, what the pool sets aside for each of them must be there.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn stands_alone(&self, tx: &CheckedTx, before: &[CheckedTx]) -> Result<bool, StorageError> {
        let ctx = self.context();
        let mut draft = Draft::for_checks(Arc::clone(self.base.source()));
        for earlier in before {
            if !is_valid(execute(earlier, &mut draft, &ctx))? {
                return Ok(false);
            }
        }
        is_valid(check(tx, &draft, &ctx))
    }
}

fn is_valid<T>(answer: Result<T, TxError>) -> Result<bool, StorageError> {
    match answer {
        Ok(_) => Ok(true),
        Err(TxError::Rejected(_)) => Ok(false),
        Err(TxError::Storage(fault)) => Err(fault),
    }
}
