//! The votes for later forks as the database keeps them: counted with each commit, in its write.
//!
//! A database that an older program made has no count, and one that began with a snapshot has not the
//! blocks with the votes. So the cell `forks` of `meta` says up to which block the votes are counted;
//! its highest value is "up to the tip, whatever that is". The count catches up from blocks that the caller
//! got elsewhere ([`crate::Store::count_earlier`]) and from those that are there ([`crate::Store::count_own`]). Only
//! then do commits count.

mod catch_up;
mod commit;
mod count;
mod deciders;
mod status;

pub(crate) use self::count::Forks;
pub use self::status::ForkCount;
