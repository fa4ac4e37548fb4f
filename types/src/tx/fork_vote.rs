//! FORK_VOTE: a validator votes for a fork that is to come (docs/protocol.md section 5.12).

use super::declare::declare;
use super::spec::{IntegerLimit, TextLimit};
use super::{Kind, Subject};

/// 1 to 16 bytes.
const FORK: TextLimit = TextLimit::Bytes { min: 1, max: 16 };

declare! {
    /// A validator's vote for the height from which a fork's rules hold.
    kind ForkVote = "FORK_VOTE", section "5.12", fork V7 {
        required {
            /// The fork, such as `v8`.
            fork "fork": String, Text(FORK);
            /// The first block in which its rules shall hold.
            height "height": u64, Integer(IntegerLimit::any("blocks"));
        }
        optional {}
    }
}

impl Kind for ForkVote {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Validators)
    }
}
