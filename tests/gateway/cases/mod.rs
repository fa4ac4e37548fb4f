//! The cases, one small file each.

use testkit::suite::{Case, Outcome};

mod away;
mod budgets;
mod crowd;
mod examples;
mod faults;
mod frameworks;
mod hang_up;
mod idempotency;
mod kills;
mod market;
mod mcp;
mod miners;
mod money;
mod official;
mod proxies;
pub(crate) mod torture;

type Run = fn() -> anyhow::Result<Outcome>;

/// All of them.
pub(crate) const CASES: &[Case<Run>] = &[
    Case::new(
        "official",
        "the openai packages 2 and 3, unmodified: streams, tools, structured output, errors",
        official::run,
    ),
    Case::new(
        "frameworks",
        "LangChain's OpenAI chat model and litellm, unmodified",
        frameworks::run,
    ),
    Case::new(
        "mcp",
        "the official MCP client, unmodified: three versions of the protocol, HTTP and stdio",
        mcp::run,
    ),
    Case::new(
        "market",
        "calls of an agent, answered by a committee: paid once, and refused where they are wrong",
        market::run,
    ),
    Case::new(
        "faults",
        "what is no request, wrong keys, other hosts and pages: errors in the interface's shape",
        faults::run,
    ),
    Case::new(
        "budgets",
        "ten requests at once cannot use a budget twice; what is left comes back",
        budgets::run,
    ),
    Case::new(
        "miners",
        "no miner, one that claims and idles, one that gives up, one that fails",
        miners::run,
    ),
    Case::new(
        "hang-up",
        "clients that hang up in the middle; a retry follows the same run",
        hang_up::run,
    ),
    Case::new(
        "idempotency",
        "one Idempotency-Key: the same body, another body, after the end, and at once",
        idempotency::run,
    ),
    Case::new(
        "kills",
        "kill -9 of the gateway at every phase: nothing is paid twice, no escrow is forgotten",
        kills::run,
    ),
    Case::new("away", "the node is away before, while and after a request is made", away::run),
    Case::new("crowd", "two hundred streams at once, and what memory they take", crowd::run),
    Case::new(
        "money",
        "keys, fund, drain and check, while the gateway runs and while it does not",
        money::run,
    ),
    Case::new(
        "examples",
        "what docs/gateway.md tells to run, out of the document itself",
        examples::run,
    ),
    Case::new(
        "proxies",
        "Caddy and nginx with TLS before the gateway, as docs/gateway.md configures them",
        proxies::run,
    ),
    Case::new(
        "torture",
        "clients that hang up and persist, kills, a moody miner, a node that goes, in any order",
        torture::run,
    ),
];

/// What comes of a case whose books agree.
fn passed(told: &serde_json::Value, what: &str) -> Outcome {
    let (requests, spent) = (&told["requests"], &told["spentMicro"]);
    Outcome::Passed(format!("{what}; the books of {requests} requests and {spent} micro agree"))
}
