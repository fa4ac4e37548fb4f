//! The store: keys, what they have spent, requests, and signed transactions, in one file.
//!
//! ```text
//! meta      | name                | JSON                | owner; opening of the books; next numbers
//! keys      | key                 | JSON of Key         |
//! hashes    | sha256 of a secret  | key                 | of keys that are not revoked
//! tallies   | key                 | JSON of Tally       |
//! days      | key, day            | JSON of Day         | days since 1970 (UTC)
//! requests  | request             | JSON of Record      |
//! open      | request             |                     | requests that are not over
//! names     | key, idempotency    | request             | of requests that others can repeat
//! bodies    | key, body, request  |                     | the same
//! runs      | run or call         | request             | that signed for it
//! outbox    | nonce               | JSON of Post        | signed, fate not known
//! loose     | nonce               | JSON of Loose       | included, of no request
//! ```
//!
//! A request and its reservation are one transaction, and so are its end and the release of what is
//! left: no interruption leaves money that is neither free nor reserved nor spent. Every change is
//! synced before its future is ready. A second process that opens the file is refused.

mod database;
mod earlier_requests;
mod keys;
mod outbox;
mod process;
mod requests;
mod tables;
#[cfg(test)]
mod tests;

pub use database::{FORMAT_VERSION, OpenError, Store};
pub use earlier_requests::TakenBack;
pub use keys::{KeyFault, KeyStanding};
pub use process::PROCESS_KEY;
pub use requests::{Admission, Attached, Identity, NewRequest};
pub use tables::{About, Loose, Opening, Owner};
