//! Members that mean something only from a fork on. Before it they are members that no kind knows:
//! kept, hashed, and looked at by nobody.
//!
//! A transaction is read without knowing the height of its block, so what such members say is kept
//! as it was read, faults included. Execution asks for it once the fork is active.

use crate::Rejection;

/// What a transaction says in members that a fork adds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Late<T>(Result<T, Box<Rejection>>);

impl<T> Late<T> {
    /// Members that were read, or what is wrong with them.
    pub(crate) fn new(read: Result<T, Rejection>) -> Self {
        Self(read.map_err(Box::new))
    }

    /// What the members say.
    ///
    /// # Errors
    /// MALFORMED if one of them is not of its form.
    pub fn get(&self) -> Result<&T, Rejection> {
        self.0.as_ref().map_err(|fault| (**fault).clone())
    }

    /// What the members say, if they are in order.
    #[must_use]
    pub fn ok(&self) -> Option<&T> {
        self.0.as_ref().ok()
    }
}

impl<T> From<T> for Late<T> {
    fn from(members: T) -> Self {
        Self(Ok(members))
    }
}

impl<T: Default> Default for Late<T> {
    fn default() -> Self {
        Self(Ok(T::default()))
    }
}
