//! The faults, one small file each.

use crate::Extent;
use tests::harness::needs::Need;

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

/// A fault and what it needs.
pub(crate) type Case = tests::harness::suite::Case<Extent>;

/// All faults.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "one_down",
        about: "one of four validators is killed; blocks go on at their pace",
        needs: Need::Loopback,
        run: one_down::killed,
    },
    Case {
        name: "one_frozen",
        about: "one of four validators hangs, connected as ever; blocks go on at their pace",
        needs: Need::Loopback,
        run: one_down::frozen,
    },
    Case {
        name: "two_down",
        about: "two of four are killed; no block, no fork, and on when one returns",
        needs: Need::Loopback,
        run: two_down::run,
    },
    Case {
        name: "all_killed",
        about: "all four are killed at once, again and again, under load",
        needs: Need::Loopback,
        run: all_killed::run,
    },
    Case {
        name: "killed_in_call",
        about: "one of four validators is killed at each phase of a call; one decision, one settlement",
        needs: Need::Loopback,
        run: killed_in_call::run,
    },
    Case {
        name: "rolling",
        about: "every node is restarted in turn, under load",
        needs: Need::Loopback,
        run: rolling::run,
    },
    Case {
        name: "upgrade",
        about: "validators of release 0.2.0 are replaced under load and go on to fork v7; one stays behind",
        needs: Need::Earlier,
        run: upgrade::run,
    },
    Case {
        name: "partition_half",
        about: "the wires between two and two are cut, and mended",
        needs: Need::Wires,
        run: partition::half,
    },
    Case {
        name: "partition_one",
        about: "the wires of one of four are cut, and mended",
        needs: Need::Wires,
        run: partition::one,
    },
    Case {
        name: "deaf",
        about: "one of four hears no votes and no blocks, only transactions; it ends and catches up",
        needs: Need::Wires,
        run: deaf::run,
    },
    Case {
        name: "packet_loss",
        about: "a fifth of all packets is lost",
        needs: Need::Wires,
        run: poor_wires::loss,
    },
    Case {
        name: "latency",
        about: "every packet takes 200 milliseconds",
        needs: Need::Wires,
        run: poor_wires::latency,
    },
    Case {
        name: "clock_ahead",
        about: "a validator's clock is an hour ahead",
        needs: Need::Clock,
        run: wrong_clock::ahead,
    },
    Case {
        name: "clock_behind",
        about: "a validator's clock is an hour behind",
        needs: Need::Clock,
        run: wrong_clock::behind,
    },
    Case {
        name: "disk_short",
        about: "a node's disk runs short; it stops in order and goes on when there is room",
        needs: Need::Disk,
        run: full_disk::short,
    },
    Case {
        name: "disk_full",
        about: "a node's disk is full at once; it stops and goes on when there is room",
        needs: Need::Disk,
        run: full_disk::full,
    },
    Case {
        name: "disk_full_unwatched",
        about: "the same with a node that does not look at its disk: a failing write ends it",
        needs: Need::Disk,
        run: full_disk::unwatched,
    },
    Case {
        name: "log_full",
        about: "a validator has no room for its consensus log alone; it stops and goes on when there is",
        needs: Need::Blocks,
        run: full_disk::log,
    },
    Case {
        name: "away",
        about: "a node is away for many blocks",
        needs: Need::Loopback,
        run: away::run,
    },
    Case {
        name: "twin",
        about: "a validator runs twice with one key, and contradicts itself",
        needs: Need::Loopback,
        run: twin::run,
    },
    Case {
        name: "invalid_block",
        about: "a validator proposes blocks that break the rules",
        needs: Need::Loopback,
        run: invalid_block::run,
    },
    Case {
        name: "forged",
        about: "a node that is behind is offered decided blocks with forged proofs",
        needs: Need::Wires,
        run: forged::run,
    },
    Case {
        name: "flood",
        about: "peers flood the pool with transactions",
        needs: Need::Loopback,
        run: flood::run,
    },
    Case {
        name: "replayed",
        about: "a peer sends again what others sent",
        needs: Need::Loopback,
        run: replayed::run,
    },
    Case {
        name: "malformed",
        about: "peers send oversized and malformed messages on every protocol for transactions",
        needs: Need::Loopback,
        run: malformed::run,
    },
    Case {
        name: "malformed_engine",
        about: "a peer does the same on every channel of the consensus engine",
        needs: Need::Loopback,
        run: malformed::engine::run,
    },
    Case {
        name: "silent",
        about: "peers connect and never answer",
        needs: Need::Wires,
        run: silent::run,
    },
    Case {
        name: "soak",
        about: "a steady load; memory does not grow after the first minutes",
        needs: Need::Loopback,
        run: soak::run,
    },
];
