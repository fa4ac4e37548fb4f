//! The cases, one small file each.

use testkit::suite::Case;

use crate::Extent;

mod committee;
mod kills;
mod llama;
mod served;
mod servers;

type Run = fn(Extent) -> anyhow::Result<String>;

const fn case(name: &'static str, run: Run) -> Case<Run> {
    Case::new(name, run)
}

/// All of them.
pub(crate) const CASES: &[Case<Run>] = &[
    case("committee", committee::run)
        .about("ten miners, one wrong, one killed, one copying, one absent; every answer is right"),
    case("kills", kills::run).about(
        "three miners under load are killed at random, and once the node; the books are right",
    ),
    case("llama", llama::run)
        .about("llama.cpp's server answers, is killed in the middle, is away, and comes back"),
    case("served", served::run).about(
        "agents of the market on llama.cpp's server: answers are collected, and never compared",
    ),
    case("servers", servers::run).about(
        "MCP servers from PyPI work in the sandbox and over HTTP, die, and leave nothing behind",
    ),
];
