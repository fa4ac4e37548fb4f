//! The plainest client of the gateway, as other suites have it.

pub(crate) use testkit::chat::{Answer, Client, Headers, RETRY, chat, parsed, read, stream};
