//! The attacks, one small file each.

use tests::harness::needs::Need;
use tests::harness::suite::Case;

mod nobody;

/// All attacks.
pub(crate) const CASES: &[Case<()>] = &[Case {
    name: "nobody",
    about: "nobody attacks: what the user of a quiet chain sees, to compare the others with",
    needs: Need::Loopback,
    run: nobody::run,
}];
