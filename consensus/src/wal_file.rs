//! The names of the engine's logs.

/// Name of the log of an engine that signs, in its directory.
pub(crate) const LOG_NAME: &str = "consensus.wal";

/// Name of the log of an engine that only follows. At each height the engine throws away what is in it
/// and writes that height into its head. In [`LOG_NAME`] such a head would say that the validator
/// remembers the height.
pub(crate) const FOLLOW_LOG_NAME: &str = "consensus.follow.wal";
