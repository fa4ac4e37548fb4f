//! The cases, one small file each.

use crate::Outcome;

mod away;
mod budgets;
mod crowd;
mod faults;
mod frameworks;
mod hang_up;
mod idempotency;
mod kills;
mod mcp;
mod miners;
mod money;
mod official;

/// A case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn() -> anyhow::Result<Outcome>,
}

/// All of them.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "official",
        about: "the openai packages 2 and 3, unmodified: streams, tools, structured output, errors",
        run: official::run,
    },
    Case {
        name: "frameworks",
        about: "LangChain's OpenAI chat model and litellm, unmodified",
        run: frameworks::run,
    },
    Case {
        name: "mcp",
        about: "the official MCP client, unmodified: three versions of the protocol, HTTP and stdio",
        run: mcp::run,
    },
    Case {
        name: "faults",
        about: "what is no request, wrong keys, other hosts and pages: errors in the interface's shape",
        run: faults::run,
    },
    Case {
        name: "budgets",
        about: "ten requests at once cannot use a budget twice; what is left comes back",
        run: budgets::run,
    },
    Case {
        name: "miners",
        about: "no miner, one that claims and idles, one that gives up, one that fails",
        run: miners::run,
    },
    Case {
        name: "hang-up",
        about: "clients that hang up in the middle; a retry follows the same run",
        run: hang_up::run,
    },
    Case {
        name: "idempotency",
        about: "one Idempotency-Key: the same body, another body, after the end, and at once",
        run: idempotency::run,
    },
    Case {
        name: "kills",
        about: "kill -9 of the gateway at every phase: nothing is paid twice, no escrow is forgotten",
        run: kills::run,
    },
    Case {
        name: "away",
        about: "the node is away before, while and after a request is made",
        run: away::run,
    },
    Case {
        name: "crowd",
        about: "two hundred streams at once, and what memory they take",
        run: crowd::run,
    },
    Case {
        name: "money",
        about: "keys, fund, drain and check, while the gateway runs and while it does not",
        run: money::run,
    },
];

/// What comes of a case whose books agree.
fn passed(told: &serde_json::Value, what: &str) -> Outcome {
    let (requests, spent) = (&told["requests"], &told["spentMicro"]);
    Outcome::Passed(format!("{what}; the books of {requests} requests and {spent} micro agree"))
}
