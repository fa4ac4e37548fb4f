//! Which chunks of a blob are there: one bit each.

mod bitmap;
mod lookup;

pub use bitmap::Pieces;
pub use lookup::of_blob;
