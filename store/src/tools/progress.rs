//! How a tool tells how far it is.

/// How far a tool is; called often, cheap to ignore.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);
