//! The tests that need several crates, or the whole repository. One module per suite.

#[cfg(test)]
mod tidy;
