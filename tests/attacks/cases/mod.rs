//! The attacks, one small file each.

use anyhow::ensure;
use tests::harness::needs::Need;
use tests::harness::suite::Case;
use tests::http::Connection;
use tests::net::Member;
use tests::node::wait_for;

mod amnesia;
mod amnesia_fork;
mod blob_race;
mod blobs;
mod closed_desk;
mod control_characters;
mod desk;
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
mod peers;
mod pool_content;
mod poor_flood;
mod pumped_fee;
mod refused_miners;
mod replay_nothing;
mod resting_miner;
mod retired_keys;
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
    Case {
        name: "nobody",
        about: "nobody attacks: what the user of a quiet chain sees, to compare the others with",
        needs: Need::Loopback,
        run: nobody::run,
    },
    Case {
        name: "height_claim",
        about: "a restarted validator is told of a thousand million blocks and given none",
        needs: Need::Loopback,
        run: height_claim::run,
    },
    Case {
        name: "strangers_ahead",
        about: "five strangers tell running nodes that they are far behind",
        needs: Need::Loopback,
        run: strangers_ahead::run,
    },
    Case {
        name: "poor_flood",
        about: "a peer floods a node with well-signed transfers of accounts that have nothing",
        needs: Need::Loopback,
        run: poor_flood::run,
    },
    Case {
        name: "closed_desk",
        about: "peers ask a node for blocks and read no answer",
        needs: Need::Loopback,
        run: closed_desk::run,
    },
    Case {
        name: "slow_pull",
        about: "peers give a node one transaction of their pools each nine seconds",
        needs: Need::Loopback,
        run: slow_pull::run,
    },
    Case {
        name: "filled_book",
        about: "peers tell a node of hundreds of others that do not exist",
        needs: Need::Loopback,
        run: filled_book::run,
    },
    Case {
        name: "taken_places",
        about: "three addresses take all places that a node has for peers",
        needs: Need::Loopback,
        run: taken_places::run,
    },
    Case {
        name: "unread_answers",
        about: "peers ask a node for large transactions and read no answer",
        needs: Need::Loopback,
        run: unread_answers::run,
    },
    Case {
        name: "blob_race",
        about: "blobs are dropped while others of their chunks wait and their last ones are asked about",
        needs: Need::Loopback,
        run: blob_race::run,
    },
    Case {
        name: "simulate_chunk",
        about: "24 times a second: what would the last chunk of a blob of 16 MiB do?",
        needs: Need::Loopback,
        run: simulate_chunk::run,
    },
    Case {
        name: "dropped_blobs",
        about: "2,000 blobs of 2,600 chunks each are due together",
        needs: Need::Loopback,
        run: dropped_blobs::run,
    },
    Case {
        name: "foreign_rebuild",
        about: "two transactions for each nonce, one here and one there, beside a pool that is full",
        needs: Need::Loopback,
        run: foreign_rebuild::run,
    },
    Case {
        name: "other_chain",
        about: "a node names another chain than it is of; a wallet signs for its own alone",
        needs: Need::Loopback,
        run: other_chain::run,
    },
    Case {
        name: "control_characters",
        about: "texts of strangers drive terminals; none of them reaches one, or a log",
        needs: Need::Loopback,
        run: control_characters::run,
    },
    Case {
        name: "resting_miner",
        about: "questions at which a model's server fails; other requesters do not wait",
        needs: Need::Loopback,
        run: resting_miner::run,
    },
    Case {
        name: "hostile_schema",
        about: "arguments that take seconds to check; other requesters do not wait",
        needs: Need::Loopback,
        run: hostile_schema::run,
    },
    Case {
        name: "replay_nothing",
        about: "thousands of subscriptions replay the chain and match nothing",
        needs: Need::Loopback,
        run: replay_nothing::run,
    },
    Case {
        name: "pool_content",
        about: "many accounts have something in the pool, and somebody asks what is in it",
        needs: Need::Loopback,
        run: pool_content::run,
    },
    Case {
        name: "slow_readers",
        about: "a dozen clients ask for the largest answers and take nothing of them",
        needs: Need::Loopback,
        run: slow_readers::run,
    },
    Case {
        name: "lying_offers",
        about: "a crowd offers snapshots that are none to a node that wants to begin with one",
        needs: Need::Loopback,
        run: lying_offers::run,
    },
    Case {
        name: "one_prefix",
        about: "thousands of free registrations under one prefix of the state tree",
        needs: Need::Loopback,
        run: one_prefix::run,
    },
    Case {
        name: "fork_votes",
        about: "strangers and one validator vote for forks in masses; nothing is fixed, nothing grows",
        needs: Need::Loopback,
        run: fork_votes::run,
    },
    Case {
        name: "stolen_runs",
        about: "whoever claims first reports tokens that nobody saw, or ends a run without work",
        needs: Need::Loopback,
        run: stolen_runs::run,
    },
    Case {
        name: "move_time",
        about: "a validator proposes blocks that are a minute ahead or behind; the time stays",
        needs: Need::Clock,
        run: move_time::run,
    },
    Case {
        name: "filled_disk",
        about: "accounts without money write into the chain, and others pay for each byte of it",
        needs: Need::Loopback,
        run: filled_disk::run,
    },
    Case {
        name: "starved_settlement",
        about: "pool and blocks are full of well-paid transactions while a miner has work to report",
        needs: Need::Loopback,
        run: starved_settlement::run,
    },
    Case {
        name: "flooded_deadlines",
        about: "thousands of runs and blobs are due in the same moment as an honest run",
        needs: Need::Loopback,
        run: flooded_deadlines::run,
    },
    Case {
        name: "expensive_blocks",
        about: "blobs of 16 MiB are completed at once, each by a byte, beside steps that pay no fee",
        needs: Need::Loopback,
        run: expensive_blocks::run,
    },
    Case {
        name: "idle_claims",
        about: "claims of runs that the claimer never works on",
        needs: Need::Loopback,
        run: idle_claims::run,
    },
    Case {
        name: "refused_miners",
        about: "a requester has work done and refuses to pay, again and again",
        needs: Need::Loopback,
        run: refused_miners::run,
    },
    Case {
        name: "squatted_snapshots",
        about: "the same crowd under one prefix where registrations cost something",
        needs: Need::Loopback,
        run: squatted_snapshots::run,
    },
    Case {
        name: "false_members",
        about: "members of calls copy, guess, lie, stay away or withhold; others do the work",
        needs: Need::Loopback,
        run: false_members::run,
    },
    Case {
        name: "doubted_answers",
        about: "liars decide a call and are appealed; others appeal what is right or cannot be computed",
        needs: Need::Loopback,
        run: doubted_answers::run,
    },
    Case {
        name: "greedy_agents",
        about: "agents that never end, and agents that are too much to remember, want all of their members",
        needs: Need::Loopback,
        run: greedy_agents::run,
    },
    Case {
        name: "griefed_miners",
        about: "requesters ask what nobody can answer, take all places of miners, or find no miner",
        needs: Need::Loopback,
        run: griefed_miners::run,
    },
    Case {
        name: "withheld_turn",
        about: "a validator knows whom its block would draw, and does not propose it if that is not its friend",
        needs: Need::Loopback,
        run: withheld_turn::run,
    },
    Case {
        name: "retired_keys",
        about: "both peers of a node that begins have a history of keys of which one was voted out",
        needs: Need::Loopback,
        run: retired_keys::run,
    },
    Case {
        name: "full_pool",
        about: "strangers with little money keep the pool full; whoever offers a tip gets through",
        needs: Need::Loopback,
        run: full_pool::run,
    },
    Case {
        name: "pumped_fee",
        about: "full blocks raise the base fee above what one transaction pays; it waits for its turn",
        needs: Need::Loopback,
        run: pumped_fee::run,
    },
    Case {
        name: "amnesia",
        about: "a validator takes a block back under load; it follows, contradicts nothing, signs again",
        needs: Need::Loopback,
        run: amnesia::run,
    },
    Case {
        name: "amnesia_fork",
        about: "two of four validators take a block back that the third has and the fourth never saw",
        needs: Need::Loopback,
        run: amnesia_fork::run,
    },
    Case {
        name: "other_history",
        about: "the first to answer a node that begins has another history under the same keys",
        needs: Need::Loopback,
        run: other_history::run,
    },
];

/// Waits until a node says that it is ready, so that what a user sees afterwards is the attack's doing.
fn is_ready(node: &Member) -> anyhow::Result<()> {
    wait_for("a node to be ready", || {
        let answer = Connection::open(node.rpc)?.get("/readyz");
        Ok(answer.is_ok().then_some(()))
    })
}

/// Changes a text in the settings of a node that does not run.
fn edit(member: &Member, from: &str, to: &str) -> anyhow::Result<()> {
    let path = member.home().join("config.toml");
    let text = std::fs::read_to_string(&path)?;
    ensure!(text.contains(from), "{} has no {from}", path.display());
    Ok(std::fs::write(&path, text.replacen(from, to, 1))?)
}
