//! The attacks, one small file each.

use tests::harness::needs::Need;
use tests::harness::suite::Case;

mod height_claim;
mod nobody;
mod strangers_ahead;

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
];
