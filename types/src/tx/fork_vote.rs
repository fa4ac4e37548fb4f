//! FORK_VOTE: a validator votes for an upcoming fork (docs/protocol.md section 5.12).

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::{IntegerLimit, TextLimit};

/// 1 to 16 bytes.
const FORK: TextLimit = TextLimit::Bytes { min: 1, max: 16 };

declare! {
    /// Casts a validator's vote for the height from which a fork's rules apply.
    kind ForkVote = "FORK_VOTE", section "5.12", fork V7 {
        required {
            /// The name of the fork, such as `v8`.
            fork "fork": String, Text(FORK);
            /// The height of the first block in which the fork's rules should apply.
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
