//! The cases, each with a chain and a browser of its own.

mod blobs;
mod crowded;
mod gateway;
mod keyboard;
mod live;
mod market;
pub(crate) mod measure;
mod network;
mod outages;
mod overview;
mod pages;
mod strangers;
mod wallet;

use testkit::suite::Case;

use crate::scene::Scene;

/// How a case is run.
#[derive(Debug)]
pub(crate) struct Visit {
    /// Further arguments of `ombra dev`.
    pub(crate) chain: &'static [&'static str],
    pub(crate) run: fn(&mut Scene) -> anyhow::Result<()>,
}

/// A thing that people do with the page.
const fn case(name: &'static str, run: fn(&mut Scene) -> anyhow::Result<()>) -> Case<Visit> {
    Case::new(name, Visit { chain: &[], run })
}

/// The same on a chain with the agent market.
const fn on_market(mut case: Case<Visit>) -> Case<Visit> {
    case.run.chain = &["--v8", "0"];
    case
}

pub(crate) const CASES: &[Case<Visit>] = &[
    case("pages", pages::show_what_is_there).about("every page shows what is on the chain"),
    on_market(
        case("overview", overview::shows_the_latest_runs_and_calls)
            .about("the overview leads with the latest runs and calls, as in the README's picture"),
    ),
    case("search", pages::are_found_by_anything).about("anything that one has finds its page"),
    case("looks", pages::look_right)
        .about("light, dark, on a phone; contrast; nothing wider than the phone"),
    case("missing", pages::say_what_is_missing).about("what is not there is said to be not there"),
    case("large-block", pages::page_through)
        .about("a block of a thousand transactions is shown a page at a time"),
    case("live-blocks", live::blocks_appear).about("blocks appear without a reload"),
    case("live-run", live::a_run_unfolds).about("a run unfolds without a reload"),
    case("live-chat", live::a_turn_appears).about("a turn appears in the open conversation"),
    case("strangers", strangers::stay_text)
        .about("nothing that strangers write becomes markup or a request"),
    case("policy", strangers::are_kept_out)
        .about("the browser itself refuses what the page must not do"),
    case("wallet", wallet::does_everything)
        .about("a key is made; it pays, talks, asks and takes back"),
    case("wallet-keys", wallet::opens_keys).about("keys are opened, kept and forgotten"),
    case("outage", outages::are_survived)
        .about("a node that goes is missed, and is live when it is back"),
    case("polling", outages::polling_is_enough)
        .about("where web sockets are refused, requests are enough"),
    case("syncing", network::catching_up_is_said).about("a node that catches up says so"),
    case("network", network::several_nodes_are_shown)
        .about("validators, votes and peers of a chain of five nodes"),
    case("contradictions", network::contradictions_are_shown)
        .about("a validator that contradicts itself is shown as that"),
    case("blobs", blobs::are_shown_where_they_are_met)
        .about("what is in a blob is shown where one meets it"),
    case("hostile-blobs", blobs::of_strangers_are_harmless)
        .about("whatever is in a blob, it is text, pixels or a file"),
    case("crowded", crowded::fit)
        .about("the longest names, 64 tools and 200 steps fit, on a phone, too"),
    on_market(
        case("market", market::an_agent_is_called)
            .about("an agent is called from its form, and its answer unfolds"),
    ),
    on_market(
        case("appeal", market::an_answer_is_doubted)
            .about("an answer is doubted, and a larger committee overturns it"),
    ),
    case("gateway", gateway::page_shows_what_a_key_has_spent)
        .about("a gateway's page shows what a key has spent, and leads to its runs"),
    case("keyboard", keyboard::reaches_everything).about("everything is reached without a mouse"),
];
