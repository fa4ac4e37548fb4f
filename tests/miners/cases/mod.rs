//! The cases, one small file each.

use testkit::suite::{Case, Outcome};

use crate::Extent;

mod committee;
mod kills;
mod llama;
mod served;
mod servers;

type Run = fn(Extent) -> anyhow::Result<Outcome>;

/// All of them.
pub(crate) const CASES: &[Case<Run>] = &[
    Case::new(
        "committee",
        "ten miners, one wrong, one killed, one copying, one absent; every answer is right",
        committee::run,
    ),
    Case::new(
        "kills",
        "three miners under load are killed at random, and once the node; the books are right",
        kills::run,
    ),
    Case::new(
        "llama",
        "llama.cpp's server answers, is killed in the middle, is away, and comes back",
        llama::run,
    ),
    Case::new(
        "served",
        "agents of the market on llama.cpp's server: answers are collected, and never compared",
        served::run,
    ),
    Case::new(
        "servers",
        "MCP servers from PyPI work in the sandbox and over HTTP, die, and leave nothing behind",
        servers::run,
    ),
];
