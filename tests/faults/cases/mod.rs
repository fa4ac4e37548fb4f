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
    Case::apart("one_down", one_down::killed)
        .about("one of four validators is killed; blocks go on at their pace"),
    Case::apart("one_frozen", one_down::frozen)
        .about("one of four validators hangs, connected as ever; blocks go on at their pace"),
    Case::apart("two_down", two_down::run)
        .about("two of four are killed; no block, no fork, and on when one returns"),
    Case::apart("all_killed", all_killed::run)
        .about("all four are killed at once, again and again, under load"),
    Case::apart("killed_in_call", killed_in_call::run).about(
        "one of four validators is killed at each phase of a call; one decision, one settlement",
    ),
    Case::apart("rolling", rolling::run).about("every node is restarted in turn, under load"),
    Case::apart("upgrade", upgrade::run)
        .about("validators of 0.2.0 are replaced under load and go to fork v7; one stays behind")
        .needs(Need::Earlier),
    Case::apart("partition_half", partition::half)
        .about("the wires between two and two are cut, and mended")
        .needs(Need::Wires),
    Case::apart("partition_one", partition::one)
        .about("the wires of one of four are cut, and mended")
        .needs(Need::Wires),
    Case::apart("deaf", deaf::run)
        .about("one of four hears no votes or blocks, only transactions; it ends and catches up")
        .needs(Need::Wires),
    Case::apart("packet_loss", poor_wires::loss)
        .about("a fifth of all packets is lost")
        .needs(Need::Wires),
    Case::apart("latency", poor_wires::latency)
        .about("every packet takes 200 milliseconds")
        .needs(Need::Wires),
    Case::apart("clock_ahead", wrong_clock::ahead)
        .about("a validator's clock is an hour ahead")
        .needs(Need::Clock),
    Case::apart("clock_behind", wrong_clock::behind)
        .about("a validator's clock is an hour behind")
        .needs(Need::Clock),
    Case::apart("disk_short", full_disk::short)
        .about("a node's disk runs short; it stops in order and goes on when there is room")
        .needs(Need::Disk),
    Case::apart("disk_full", full_disk::full)
        .about("a node's disk is full at once; it stops and goes on when there is room")
        .needs(Need::Disk),
    Case::apart("disk_full_unwatched", full_disk::unwatched)
        .about("the same with a node that does not look at its disk: a failing write ends it")
        .needs(Need::Disk),
    Case::apart("log_full", full_disk::log)
        .about("a validator has no room for its consensus log; it stops and goes on when there is")
        .needs(Need::Blocks),
    Case::apart("away", away::run).about("a node is away for many blocks"),
    Case::apart("twin", twin::run)
        .about("a validator runs twice with one key, and contradicts itself"),
    Case::apart("invalid_block", invalid_block::run)
        .about("a validator proposes blocks that break the rules"),
    Case::apart("forged", forged::run)
        .about("a node that is behind is offered decided blocks with forged proofs")
        .needs(Need::Wires),
    Case::apart("flood", flood::run).about("peers flood the pool with transactions"),
    Case::apart("replayed", replayed::run).about("a peer sends again what others sent"),
    Case::apart("malformed", malformed::run)
        .about("peers send oversized and malformed messages on every protocol for transactions"),
    Case::apart("malformed_engine", malformed::engine::run)
        .about("a peer does the same on every channel of the consensus engine"),
    Case::apart("silent", silent::run).about("peers connect and never answer").needs(Need::Wires),
    Case::apart("soak", soak::run)
        .about("a steady load; memory does not grow after the first minutes"),
];
