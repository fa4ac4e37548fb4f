//! The WebSocket of the public clients, at `/api/ws`.

mod messages;
mod session;
mod subscription;

pub(crate) use session::{PATH, open};
