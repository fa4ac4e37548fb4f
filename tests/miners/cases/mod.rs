//! The cases, one small file each.

use crate::{Extent, Outcome};

mod committee;
mod kills;
mod llama;
mod served;
mod servers;

/// A case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(Extent) -> anyhow::Result<Outcome>,
}

/// All of them.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "committee",
        about: "ten miners, one wrong, one killed, one copying, one absent; every answer is right",
        run: committee::run,
    },
    Case {
        name: "kills",
        about: "three miners under load are killed at random, and once the node; the books are right",
        run: kills::run,
    },
    Case {
        name: "llama",
        about: "llama.cpp's server answers, is killed in the middle, is away, and comes back",
        run: llama::run,
    },
    Case {
        name: "served",
        about: "agents of the market on llama.cpp's server: answers are collected, and never compared",
        run: served::run,
    },
    Case {
        name: "servers",
        about: "MCP servers from PyPI work in the sandbox and over HTTP, die, and leave nothing behind",
        run: servers::run,
    },
];
