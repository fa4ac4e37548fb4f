//! The attacks, one small file each.

use anyhow::Context as _;
use serde_json::json;
use testkit::harness::{Town, User};
use testkit::http::Connection;
use testkit::net::{Member, Network};
use testkit::node::wait_until;
use testkit::suite::namespaces::Case;
use testkit::suite::needs::Need;
use testkit::workload::key;

mod amnesia;
mod amnesia_fork;
mod blob_race;
mod blobs;
mod closed_desk;
mod control_characters;
mod doubted_answers;
mod dropped_blobs;
mod expensive_blocks;
mod false_members;
mod filled_book;
mod filled_disk;
mod flooded_deadlines;
mod foreign_rebuild;
mod fork_votes;
mod full_pool;
mod greedy_agents;
mod griefed_miners;
mod height_claim;
mod hostile_schema;
mod idle_claims;
mod idle_watchers;
mod kept_events;
mod locked_out;
mod lying_offers;
mod market;
mod move_time;
mod nameless;
mod nobody;
mod one_prefix;
mod other_chain;
mod other_history;
mod paid;
mod peers;
mod pool_content;
mod poor_flood;
mod pumped_fee;
mod refused_miners;
mod replay_nothing;
mod resting_miner;
mod retired_keys;
mod sending;
mod simulate_chunk;
mod slow_pull;
mod slow_readers;
mod squatted_snapshots;
mod starved_settlement;
mod stolen_runs;
mod strangers_ahead;
mod taken_places;
mod unread_answers;
mod withheld_turn;

/// All attacks.
pub(crate) const CASES: &[Case<()>] = &[
    Case::apart("nobody", nobody::run)
        .about("nobody attacks: what the user of a quiet chain sees, to compare the others with"),
    Case::apart("height_claim", height_claim::run)
        .about("a restarted validator is told of a thousand million blocks and given none"),
    Case::apart("strangers_ahead", strangers_ahead::run)
        .about("five strangers tell running nodes that they are far behind"),
    Case::apart("poor_flood", poor_flood::run)
        .about("a peer floods a node with well-signed transfers of accounts that have nothing"),
    Case::quiet("closed_desk", closed_desk::run)
        .about("peers ask a node for blocks and read no answer"),
    Case::apart("slow_pull", slow_pull::run)
        .about("peers give a node one transaction of their pools each nine seconds"),
    Case::apart("filled_book", filled_book::run)
        .about("peers tell a node of hundreds of others that do not exist"),
    Case::apart("taken_places", taken_places::run)
        .about("three addresses take all places that a node has for peers"),
    Case::apart("nameless", nameless::run)
        .about("a stranger on the validators' network never says who it is, and votes and asks"),
    Case::quiet("unread_answers", unread_answers::run)
        .about("peers ask a node for large transactions and read no answer"),
    Case::apart("blob_race", blob_race::run).about(
        "blobs are dropped while others of their chunks wait and their last ones are asked about",
    ),
    Case::apart("simulate_chunk", simulate_chunk::run)
        .about("24 times a second: what would the last chunk of a blob of 16 MiB do?"),
    Case::quiet("dropped_blobs", dropped_blobs::run)
        .about("2,000 blobs of 2,600 chunks each are due together"),
    Case::apart("foreign_rebuild", foreign_rebuild::run).about(
        "two transactions for each nonce, one here and one there, beside a pool that is full",
    ),
    Case::quiet("other_chain", other_chain::run)
        .about("a node names another chain than it is of; a wallet signs for its own alone"),
    Case::quiet("control_characters", control_characters::run)
        .about("texts of strangers drive terminals; none of them reaches one, or a log"),
    Case::apart("resting_miner", resting_miner::run)
        .about("questions at which a model's server fails; other requesters do not wait"),
    Case::apart("hostile_schema", hostile_schema::run)
        .about("arguments that take seconds to check; other requesters do not wait"),
    Case::apart("replay_nothing", replay_nothing::run)
        .about("thousands of subscriptions replay the chain and match nothing"),
    Case::apart("idle_watchers", idle_watchers::run)
        .about("thousands of subscriptions hear nothing while others send transactions"),
    Case::apart("kept_events", kept_events::run)
        .about("the pool drops large transactions beside a subscriber that takes nothing"),
    Case::apart("pool_content", pool_content::run)
        .about("many accounts have something in the pool, and somebody asks what is in it"),
    Case::apart("slow_readers", slow_readers::run)
        .about("a dozen clients ask for the largest answers and take nothing of them"),
    Case::quiet("lying_offers", lying_offers::run)
        .about("a crowd offers snapshots that are none to a node that wants to begin with one"),
    Case::apart("one_prefix", one_prefix::run)
        .about("thousands of free registrations under one prefix of the state tree"),
    Case::quiet("fork_votes", fork_votes::run).about(
        "strangers and one validator vote for forks in masses; nothing is fixed, nothing grows",
    ),
    Case::quiet("stolen_runs", stolen_runs::run)
        .about("whoever claims first reports tokens that nobody saw, or ends a run without work"),
    Case::quiet("move_time", move_time::run)
        .about("a validator proposes blocks that are a minute ahead or behind; the time stays")
        .needs(Need::Clock),
    Case::apart("filled_disk", filled_disk::run)
        .about("accounts without money write into the chain, and others pay for each byte of it"),
    Case::apart("starved_settlement", starved_settlement::run).about(
        "pool and blocks are full of well-paid transactions while a miner has work to report",
    ),
    Case::apart("flooded_deadlines", flooded_deadlines::run)
        .about("thousands of runs and blobs are due in the same moment as an honest run"),
    Case::apart("expensive_blocks", expensive_blocks::run).about(
        "blobs of 16 MiB are completed at once, each by a byte, beside steps that pay no fee",
    ),
    Case::quiet("idle_claims", idle_claims::run)
        .about("claims of runs that the claimer never works on"),
    Case::quiet("refused_miners", refused_miners::run)
        .about("a requester has work done and refuses to pay, again and again"),
    Case::quiet("squatted_snapshots", squatted_snapshots::run)
        .about("the same crowd under one prefix where registrations cost something"),
    Case::quiet("false_members", false_members::run)
        .about("members of calls copy, guess, lie, stay away or withhold; others do the work"),
    Case::quiet("doubted_answers", doubted_answers::run).about(
        "liars decide a call and are appealed; others appeal what is right or cannot be computed",
    ),
    Case::apart("greedy_agents", greedy_agents::run)
        .about("agents that never end or are too much to remember want all of their members"),
    Case::quiet("griefed_miners", griefed_miners::run).about(
        "requesters ask what nobody can answer, take all places of miners, or find no miner",
    ),
    Case::quiet("withheld_turn", withheld_turn::run)
        .about("a validator does not propose a block that would draw others than its friend"),
    Case::quiet("retired_keys", retired_keys::run).about(
        "both peers of a node that begins have a history of keys of which one was voted out",
    ),
    Case::apart("full_pool", full_pool::run)
        .about("strangers with little money keep the pool full; whoever offers a tip gets through"),
    Case::apart("pumped_fee", pumped_fee::run).about(
        "full blocks raise the base fee above what one transaction pays; it waits for its turn",
    ),
    Case::apart("locked_out", locked_out::run).about(
        "an account takes runs and blobs in transactions that no block takes; others get them",
    ),
    Case::quiet("amnesia", amnesia::run).about(
        "a validator takes a block back under load; it follows, contradicts nothing, signs again",
    ),
    Case::quiet("amnesia_fork", amnesia_fork::run).about(
        "two of four validators take a block back that the third has and the fourth never saw",
    ),
    Case::quiet("other_history", other_history::run)
        .about("the first to answer a node that begins has another history under the same keys"),
];

/// Waits until a node says that it is ready, so that what a user sees afterwards is the attack's doing.
fn is_ready(node: &Member) -> anyhow::Result<()> {
    wait_until("a node to be ready", || Ok(Connection::open(node.rpc)?.get("/readyz").is_ok()))
}

/// The setting with the peers of a node for transactions and blocks.
const PEERS: &str = "OMBRA__P2P__GOSSIP__PEERS";

/// The setting of a node that names these as its peers.
fn peers(town: &Town, nodes: &[usize]) -> anyhow::Result<(&'static str, String)> {
    let address = |at: &usize| Ok(town.node(*at)?.p2p_address(Network::Gossip));
    let addresses = nodes.iter().map(address).collect::<anyhow::Result<Vec<_>>>()?;
    Ok((PEERS, json!(addresses).to_string()))
}

/// Gives the data of a node that has stopped to another one, which starts with it among nobody. It is no peer
/// of the engines either: with certificates of the present keys it would hold them up.
fn give_history(town: &mut Town, from: usize, to: usize) -> anyhow::Result<()> {
    let (own, other) = (town.node(from)?.home().join("data"), town.node(to)?.home().join("data"));
    std::fs::remove_dir_all(&other)?;
    std::fs::rename(own, other)?;
    let nobody = peers(town, &[])?;
    town.node_mut(to)?.start_with(&[
        nobody,
        ("OMBRA__P2P__PEERS", "[]".to_owned()),
        ("OMBRA__P2P__LISTEN", "/ip4/127.0.0.1/tcp/0".to_owned()),
    ])
}

/// A chain of a validator that makes a snapshot of every so many blocks, and of a node that will begin with
/// one. A user works at the validator.
fn begin_snapshots(town: &mut Town, interval: u64) -> anyhow::Result<User> {
    let [validator, newcomer] = [0, 1];
    town.node(validator)?.configure("snapshots.interval_blocks", &interval.to_string())?;
    town.node(newcomer)?.configure("snapshots.fetch", "true")?;
    town.node_mut(validator)?.start()?;
    is_ready(town.node(validator)?)?;
    Ok(User::start(town.node(validator)?.rpc, key(0)?))
}

/// The first block that a node has.
fn earliest(node: &Member) -> anyhow::Result<u64> {
    let info = node.call("ombra_chainInfo", &json!([]))?;
    info["earliestBlock"].as_u64().context("earliestBlock")
}
