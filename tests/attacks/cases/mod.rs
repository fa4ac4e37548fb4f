//! The attacks, one small file each.

use tests::harness::needs::Need;
use tests::harness::suite::Case;

mod amnesia;
mod fork_votes;
mod nobody;

/// All attacks.
pub(crate) const CASES: &[Case<()>] = &[
    Case {
        name: "nobody",
        about: "nobody attacks: what the user of a quiet chain sees, to compare the others with",
        needs: Need::Loopback,
        run: nobody::run,
    },
    Case {
        name: "fork_votes",
        about: "strangers and one validator vote for forks in masses; nothing is fixed, nothing grows",
        needs: Need::Loopback,
        run: fork_votes::run,
    },
    Case {
        name: "amnesia",
        about: "a validator takes a block back under load; it follows, contradicts nothing, signs again",
        needs: Need::Loopback,
        run: amnesia::run,
    },
];
