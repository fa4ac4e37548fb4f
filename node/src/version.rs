//! Which program this is.

/// The commit that this library was built from, or `unknown` outside a checkout.
pub const COMMIT: &str = env!("OMBRA_COMMIT");
