//! What a place in a block costs (docs/protocol.md section 15): the inclusion fee of one transaction,
//! and how the base fee follows demand.

mod base_fee;
mod inclusion;
mod price;

pub use base_fee::{Used, next_base_fee};
pub use inclusion::{charged_bytes, check_base_fee, highest_base_fee, is_at_floor, is_vote};
pub use price::{Price, inclusion_fee};

#[cfg(test)]
mod tests;
