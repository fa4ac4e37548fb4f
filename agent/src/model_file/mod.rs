//! The file of the model inside the process: where it is kept, and how it comes there.
//!
//! ```text
//! index ──address──▶ download ──archive, its sha256──▶ unpack ──file, its sha256──▶ the place
//!                    resumed, tried again               beside the place, then renamed
//! ```
//!
//! What comes from the network is used only after its sha256 was compared with what this program
//! knows. Entry points: [`default_path`], [`fetch`].

mod client;
mod disk;
mod download;
mod error;
mod fetch;
mod index;
mod place;
mod progress;
#[cfg(test)]
mod tests;
mod unpack;

pub use error::FetchError;
pub use fetch::{Fetched, fetch};
pub use index::Index;
pub use place::{FILE_VARIABLE, NoPlace, default_path};
pub use progress::{Progress, Tell};
