//! The cases, one small file each.

use testkit::suite::Case;

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

type Run = fn() -> anyhow::Result<String>;

const fn case(name: &'static str, run: Run) -> Case<Run> {
    Case::new(name, run)
}

/// All of them.
pub(crate) const CASES: &[Case<Run>] = &[
    case("official", official::run).about(
        "the openai packages 2 and 3, unmodified: streams, tools, structured output, errors",
    ),
    case("frameworks", frameworks::run)
        .about("LangChain's OpenAI chat model and litellm, unmodified"),
    case("mcp", mcp::run).about(
        "the official MCP client, unmodified: three versions of the protocol, HTTP and stdio",
    ),
    case("market", market::run).about(
        "calls of an agent, answered by a committee: paid once, and refused where they are wrong",
    ),
    case("faults", faults::run).about(
        "what is no request, wrong keys, other hosts and pages: errors in the interface's shape",
    ),
    case("budgets", budgets::run)
        .about("ten requests at once cannot use a budget twice; what is left comes back"),
    case("miners", miners::run)
        .about("no miner, one that claims and idles, one that gives up, one that fails"),
    case("hang-up", hang_up::run)
        .about("clients that hang up in the middle; a retry follows the same run"),
    case("idempotency", idempotency::run)
        .about("one Idempotency-Key: the same body, another body, after the end, and at once"),
    case("kills", kills::run).about(
        "kill -9 of the gateway at every phase: nothing is paid twice, no escrow is forgotten",
    ),
    case("away", away::run).about("the node is away before, while and after a request is made"),
    case("crowd", crowd::run).about("two hundred streams at once, and what memory they take"),
    case("money", money::run)
        .about("keys, fund, drain and check, while the gateway runs and while it does not"),
    case("examples", examples::run)
        .about("what docs/gateway.md tells to run, out of the document itself"),
    case("proxies", proxies::run)
        .about("Caddy and nginx with TLS before the gateway, as docs/gateway.md configures them"),
    case("torture", torture::run).about(
        "clients that hang up and persist, kills, a moody miner, a node that goes, in any order",
    ),
];
