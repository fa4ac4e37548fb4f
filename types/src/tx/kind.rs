//! What each kind says of itself beside its declaration.

use super::declare::Declared;
use super::static_view::StaticView;
use crate::{Address, Hash, Rejection};

/// What a kind adds to its declaration.
pub(crate) trait Kind: Declared {
    /// Checks what the limits of single fields cannot express. Errors are INVALID_FIELD.
    fn check_together(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        let _ = view;
        Ok(())
    }
    /// What the transaction works on, if other transactions can interfere with it there.
    fn subject(&self) -> Option<Subject<'_>> {
        None
    }
    /// The account that the transaction pays, as far as its own fields say.
    fn payee(&self, sender: Address) -> Option<Address> {
        let _ = sender;
        None
    }
    /// Whether one of the kind's own fields is the tip for the block's proposer.
    fn has_own_tip(&self) -> bool {
        false
    }
}

/// What a transaction works on, and other transactions may have changed before it is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject<'a> {
    /// A run.
    Run(Hash),
    /// A blob.
    Blob(&'a str),
    /// The validator set.
    Validators,
    /// An agent.
    Agent(Hash),
    /// A call.
    Call(Hash),
}
