//! The faults, one small file each.

use testkit::suite::namespaces::Case;
use testkit::suite::needs::Need;

use crate::Extent;

mod all_killed;
mod away;
mod deaf;
mod flood;
mod forged;
mod full_disk;
mod invalid_block;
mod killed_in_call;
mod malformed;
mod one_down;
mod partition;
mod poor_wires;
mod replayed;
mod rolling;
mod silent;
mod soak;
mod twin;
mod two_down;
mod upgrade;
mod wrong_clock;

/// All faults.
pub(crate) const CASES: &[Case<Extent>] = &[
    Case::apart(
        "one_down",
        "one of four validators is killed; blocks go on at their pace",
        one_down::killed,
    ),
    Case::apart(
        "one_frozen",
        "one of four validators hangs, connected as ever; blocks go on at their pace",
        one_down::frozen,
    ),
    Case::apart(
        "two_down",
        "two of four are killed; no block, no fork, and on when one returns",
        two_down::run,
    ),
    Case::apart(
        "all_killed",
        "all four are killed at once, again and again, under load",
        all_killed::run,
    ),
    Case::apart(
        "killed_in_call",
        "one of four validators is killed at each phase of a call; one decision, one settlement",
        killed_in_call::run,
    ),
    Case::apart("rolling", "every node is restarted in turn, under load", rolling::run),
    Case::apart(
        "upgrade",
        "validators of release 0.2.0 are replaced under load and go on to fork v7; one stays \
         behind",
        upgrade::run,
    )
    .needs(Need::Earlier),
    Case::apart(
        "partition_half",
        "the wires between two and two are cut, and mended",
        partition::half,
    )
    .needs(Need::Wires),
    Case::apart("partition_one", "the wires of one of four are cut, and mended", partition::one)
        .needs(Need::Wires),
    Case::apart(
        "deaf",
        "one of four hears no votes and no blocks, only transactions; it ends and catches up",
        deaf::run,
    )
    .needs(Need::Wires),
    Case::apart("packet_loss", "a fifth of all packets is lost", poor_wires::loss)
        .needs(Need::Wires),
    Case::apart("latency", "every packet takes 200 milliseconds", poor_wires::latency)
        .needs(Need::Wires),
    Case::apart("clock_ahead", "a validator's clock is an hour ahead", wrong_clock::ahead)
        .needs(Need::Clock),
    Case::apart("clock_behind", "a validator's clock is an hour behind", wrong_clock::behind)
        .needs(Need::Clock),
    Case::apart(
        "disk_short",
        "a node's disk runs short; it stops in order and goes on when there is room",
        full_disk::short,
    )
    .needs(Need::Disk),
    Case::apart(
        "disk_full",
        "a node's disk is full at once; it stops and goes on when there is room",
        full_disk::full,
    )
    .needs(Need::Disk),
    Case::apart(
        "disk_full_unwatched",
        "the same with a node that does not look at its disk: a failing write ends it",
        full_disk::unwatched,
    )
    .needs(Need::Disk),
    Case::apart(
        "log_full",
        "a validator has no room for its consensus log alone; it stops and goes on when there is",
        full_disk::log,
    )
    .needs(Need::Blocks),
    Case::apart("away", "a node is away for many blocks", away::run),
    Case::apart("twin", "a validator runs twice with one key, and contradicts itself", twin::run),
    Case::apart(
        "invalid_block",
        "a validator proposes blocks that break the rules",
        invalid_block::run,
    ),
    Case::apart(
        "forged",
        "a node that is behind is offered decided blocks with forged proofs",
        forged::run,
    )
    .needs(Need::Wires),
    Case::apart("flood", "peers flood the pool with transactions", flood::run),
    Case::apart("replayed", "a peer sends again what others sent", replayed::run),
    Case::apart(
        "malformed",
        "peers send oversized and malformed messages on every protocol for transactions",
        malformed::run,
    ),
    Case::apart(
        "malformed_engine",
        "a peer does the same on every channel of the consensus engine",
        malformed::engine::run,
    ),
    Case::apart("silent", "peers connect and never answer", silent::run).needs(Need::Wires),
    Case::apart("soak", "a steady load; memory does not grow after the first minutes", soak::run),
];
