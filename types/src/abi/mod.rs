//! The types, methods and selectors of Solidity's application binary interface that agents can use
//! (docs/market.md section 4).
//!
//! A [`Type`] is always one that the chain accepts: arrays have at most four dimensions, and tuples
//! nest at most eight deep. Functions that walk through a type therefore have a bounded depth.

mod coding;
mod identifier;
mod method;
mod name;
mod parameter;

pub use coding::{VALUES_BYTES_MAX, ValueError, value_names};
pub use identifier::{is_identifier, is_reserved};
pub use method::{Method, Selector, keccak256};
pub use name::{Base, DIMENSIONS_MAX, Dimension, ELEMENTS_MAX, TypeName, TypeNameError};
pub use parameter::{Parameter, TUPLES_MAX, Type, TypeError};

#[cfg(test)]
mod tests;
