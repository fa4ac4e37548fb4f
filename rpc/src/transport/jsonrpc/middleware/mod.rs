//! What every call passes before and after its method: is it in the right place, are its
//! parameters right, how long did it take.

mod batch;
mod checked;
mod connection;
mod dispatch;
mod shared;

pub(crate) use checked::Checks;
pub(crate) use connection::Connection;
pub(crate) use shared::Shared;
