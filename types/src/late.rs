//! Members that have a meaning only from a fork on. Before the fork, they are unknown members: the
//! chain keeps and hashes them and gives them no meaning.
//!
//! The parser of a transaction does not know the height of the block, so it keeps what such members
//! say as it was read, including faults. Execution asks for it once the fork is active.

use crate::Rejection;

/// The members that a fork adds, as a transaction has them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Late<T>(Result<T, Box<Rejection>>);

impl<T> Late<T> {
    /// Members that were read, or what is wrong with them.
    pub(crate) fn new(read: Result<T, Rejection>) -> Self {
        Self(read.map_err(Box::new))
    }

    /// The members.
    ///
    /// # Errors
    /// MALFORMED if one of them does not have its form.
    pub fn get(&self) -> Result<&T, Rejection> {
        self.0.as_ref().map_err(|fault| (**fault).clone())
    }

    /// The members, if all of them have their forms.
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
