//! The attacks, one small file each.

use anyhow::{Context as _, ensure};
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
mod lying_offers;
mod market;
mod move_time;
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
    Case::apart(
        "nobody",
        "nobody attacks: what the user of a quiet chain sees, to compare the others with",
        nobody::run,
    ),
    Case::apart(
        "height_claim",
        "a restarted validator is told of a thousand million blocks and given none",
        height_claim::run,
    ),
    Case::apart(
        "strangers_ahead",
        "five strangers tell running nodes that they are far behind",
        strangers_ahead::run,
    ),
    Case::apart(
        "poor_flood",
        "a peer floods a node with well-signed transfers of accounts that have nothing",
        poor_flood::run,
    ),
    Case::quiet("closed_desk", "peers ask a node for blocks and read no answer", closed_desk::run),
    Case::apart(
        "slow_pull",
        "peers give a node one transaction of their pools each nine seconds",
        slow_pull::run,
    ),
    Case::apart(
        "filled_book",
        "peers tell a node of hundreds of others that do not exist",
        filled_book::run,
    ),
    Case::apart(
        "taken_places",
        "three addresses take all places that a node has for peers",
        taken_places::run,
    ),
    Case::quiet(
        "unread_answers",
        "peers ask a node for large transactions and read no answer",
        unread_answers::run,
    ),
    Case::apart(
        "blob_race",
        "blobs are dropped while others of their chunks wait and their last ones are asked about",
        blob_race::run,
    ),
    Case::apart(
        "simulate_chunk",
        "24 times a second: what would the last chunk of a blob of 16 MiB do?",
        simulate_chunk::run,
    ),
    Case::quiet(
        "dropped_blobs",
        "2,000 blobs of 2,600 chunks each are due together",
        dropped_blobs::run,
    ),
    Case::apart(
        "foreign_rebuild",
        "two transactions for each nonce, one here and one there, beside a pool that is full",
        foreign_rebuild::run,
    ),
    Case::quiet(
        "other_chain",
        "a node names another chain than it is of; a wallet signs for its own alone",
        other_chain::run,
    ),
    Case::quiet(
        "control_characters",
        "texts of strangers drive terminals; none of them reaches one, or a log",
        control_characters::run,
    ),
    Case::apart(
        "resting_miner",
        "questions at which a model's server fails; other requesters do not wait",
        resting_miner::run,
    ),
    Case::apart(
        "hostile_schema",
        "arguments that take seconds to check; other requesters do not wait",
        hostile_schema::run,
    ),
    Case::apart(
        "replay_nothing",
        "thousands of subscriptions replay the chain and match nothing",
        replay_nothing::run,
    ),
    Case::apart(
        "pool_content",
        "many accounts have something in the pool, and somebody asks what is in it",
        pool_content::run,
    ),
    Case::apart(
        "slow_readers",
        "a dozen clients ask for the largest answers and take nothing of them",
        slow_readers::run,
    ),
    Case::quiet(
        "lying_offers",
        "a crowd offers snapshots that are none to a node that wants to begin with one",
        lying_offers::run,
    ),
    Case::apart(
        "one_prefix",
        "thousands of free registrations under one prefix of the state tree",
        one_prefix::run,
    ),
    Case::quiet(
        "fork_votes",
        "strangers and one validator vote for forks in masses; nothing is fixed, nothing grows",
        fork_votes::run,
    ),
    Case::quiet(
        "stolen_runs",
        "whoever claims first reports tokens that nobody saw, or ends a run without work",
        stolen_runs::run,
    ),
    Case::quiet(
        "move_time",
        "a validator proposes blocks that are a minute ahead or behind; the time stays",
        move_time::run,
    )
    .needs(Need::Clock),
    Case::apart(
        "filled_disk",
        "accounts without money write into the chain, and others pay for each byte of it",
        filled_disk::run,
    ),
    Case::apart(
        "starved_settlement",
        "pool and blocks are full of well-paid transactions while a miner has work to report",
        starved_settlement::run,
    ),
    Case::apart(
        "flooded_deadlines",
        "thousands of runs and blobs are due in the same moment as an honest run",
        flooded_deadlines::run,
    ),
    Case::apart(
        "expensive_blocks",
        "blobs of 16 MiB are completed at once, each by a byte, beside steps that pay no fee",
        expensive_blocks::run,
    ),
    Case::quiet("idle_claims", "claims of runs that the claimer never works on", idle_claims::run),
    Case::quiet(
        "refused_miners",
        "a requester has work done and refuses to pay, again and again",
        refused_miners::run,
    ),
    Case::quiet(
        "squatted_snapshots",
        "the same crowd under one prefix where registrations cost something",
        squatted_snapshots::run,
    ),
    Case::quiet(
        "false_members",
        "members of calls copy, guess, lie, stay away or withhold; others do the work",
        false_members::run,
    ),
    Case::quiet(
        "doubted_answers",
        "liars decide a call and are appealed; others appeal what is right or cannot be computed",
        doubted_answers::run,
    ),
    Case::apart(
        "greedy_agents",
        "agents that never end, and agents that are too much to remember, want all of their \
         members",
        greedy_agents::run,
    ),
    Case::quiet(
        "griefed_miners",
        "requesters ask what nobody can answer, take all places of miners, or find no miner",
        griefed_miners::run,
    ),
    Case::quiet(
        "withheld_turn",
        "a validator knows whom its block would draw, and does not propose it if that is not \
         its friend",
        withheld_turn::run,
    ),
    Case::quiet(
        "retired_keys",
        "both peers of a node that begins have a history of keys of which one was voted out",
        retired_keys::run,
    ),
    Case::apart(
        "full_pool",
        "strangers with little money keep the pool full; whoever offers a tip gets through",
        full_pool::run,
    ),
    Case::apart(
        "pumped_fee",
        "full blocks raise the base fee above what one transaction pays; it waits for its turn",
        pumped_fee::run,
    ),
    Case::quiet(
        "amnesia",
        "a validator takes a block back under load; it follows, contradicts nothing, signs again",
        amnesia::run,
    ),
    Case::quiet(
        "amnesia_fork",
        "two of four validators take a block back that the third has and the fourth never saw",
        amnesia_fork::run,
    ),
    Case::quiet(
        "other_history",
        "the first to answer a node that begins has another history under the same keys",
        other_history::run,
    ),
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
    let interval = format!("interval_blocks = {interval}");
    edit(town.node(validator)?, "interval_blocks = 1000", &interval)?;
    edit(town.node(newcomer)?, "fetch = false", "fetch = true")?;
    town.node_mut(validator)?.start()?;
    is_ready(town.node(validator)?)?;
    Ok(User::start(town.node(validator)?.rpc, key(0)?))
}

/// The first block that a node has.
fn earliest(node: &Member) -> anyhow::Result<u64> {
    let info = node.call("ombra_chainInfo", &json!([]))?;
    info["earliestBlock"].as_u64().context("earliestBlock")
}

/// Changes a text in the settings of a node that does not run.
fn edit(member: &Member, from: &str, to: &str) -> anyhow::Result<()> {
    let path = member.home().join("config.toml");
    let text = std::fs::read_to_string(&path)?;
    ensure!(text.contains(from), "{} has no {from}", path.display());
    Ok(std::fs::write(&path, text.replacen(from, to, 1))?)
}
