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
const fn case(
    name: &'static str,
    about: &'static str,
    run: fn(&mut Scene) -> anyhow::Result<()>,
) -> Case<Visit> {
    Case::new(name, about, Visit { chain: &[], run })
}

/// The same on a chain with the agent market.
const fn on_market(mut case: Case<Visit>) -> Case<Visit> {
    case.run.chain = &["--v8", "0"];
    case
}

pub(crate) const CASES: &[Case<Visit>] = &[
    case("pages", "every page shows what is on the chain", pages::show_what_is_there),
    on_market(case(
        "overview",
        "the overview leads with the latest runs and calls, as in the README's picture",
        overview::shows_the_latest_runs_and_calls,
    )),
    case("search", "anything that one has finds its page", pages::are_found_by_anything),
    case(
        "looks",
        "light, dark, on a phone; contrast; nothing wider than the phone",
        pages::look_right,
    ),
    case("missing", "what is not there is said to be not there", pages::say_what_is_missing),
    case(
        "large-block",
        "a block of a thousand transactions is shown a page at a time",
        pages::page_through,
    ),
    case("live-blocks", "blocks appear without a reload", live::blocks_appear),
    case("live-run", "a run unfolds without a reload", live::a_run_unfolds),
    case("live-chat", "a turn appears in the open conversation", live::a_turn_appears),
    case(
        "strangers",
        "nothing that strangers write becomes markup or a request",
        strangers::stay_text,
    ),
    case("policy", "the browser itself refuses what the page must not do", strangers::are_kept_out),
    case("wallet", "a key is made; it pays, talks, asks and takes back", wallet::does_everything),
    case("wallet-keys", "keys are opened, kept and forgotten", wallet::opens_keys),
    case(
        "outage",
        "a node that goes is missed, and is live when it is back",
        outages::are_survived,
    ),
    case(
        "polling",
        "where web sockets are refused, requests are enough",
        outages::polling_is_enough,
    ),
    case("syncing", "a node that catches up says so", network::catching_up_is_said),
    case(
        "network",
        "validators, votes and peers of a chain of five nodes",
        network::several_nodes_are_shown,
    ),
    case(
        "contradictions",
        "a validator that contradicts itself is shown as that",
        network::contradictions_are_shown,
    ),
    case(
        "blobs",
        "what is in a blob is shown where one meets it",
        blobs::are_shown_where_they_are_met,
    ),
    case(
        "hostile-blobs",
        "whatever is in a blob, it is text, pixels or a file",
        blobs::of_strangers_are_harmless,
    ),
    case("crowded", "the longest names, 64 tools and 200 steps fit, on a phone, too", crowded::fit),
    on_market(case(
        "market",
        "an agent is called from its form, and its answer unfolds",
        market::an_agent_is_called,
    )),
    on_market(case(
        "appeal",
        "an answer is doubted, and a larger committee overturns it",
        market::an_answer_is_doubted,
    )),
    case(
        "gateway",
        "a gateway's page shows what a key has spent, and leads to its runs",
        gateway::page_shows_what_a_key_has_spent,
    ),
    case("keyboard", "everything is reached without a mouse", keyboard::reaches_everything),
];
