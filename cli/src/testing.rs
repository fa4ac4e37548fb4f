//! What tests of several modules share.

use clap::{Args, Parser};

#[derive(Parser)]
struct Command<T: Args> {
    #[command(flatten)]
    args: T,
}

/// The arguments of a command line.
pub(crate) fn parsed<T: Args>(words: &[&str]) -> T {
    let all = ["ombra"].iter().chain(words);
    Command::<T>::try_parse_from(all).unwrap_or_else(|error| panic!("{error}")).args
}
