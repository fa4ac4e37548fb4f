//! PARAM_VOTE: a validator votes for another value of a parameter (docs/protocol.md section 5.13).

use super::declare::declare;
use super::spec::{IntegerLimit, TextLimit};
use super::{Kind, Subject};

/// 1 to 64 bytes.
const NAME: TextLimit = TextLimit::Bytes { min: 1, max: 64 };

declare! {
    /// A validator's vote for another value of a parameter.
    kind ParamVote = "PARAM_VOTE", section "5.13", fork V7 {
        required {
            /// The parameter, such as `baseFeeFloor`.
            name "name": String, Text(NAME);
            /// The value that it shall have, in the parameter's own unit.
            value "value": u64, Integer(IntegerLimit::any(""));
            /// The first block in which it shall have it.
            height "height": u64, Integer(IntegerLimit::any("blocks"));
        }
        optional {}
    }
}

impl Kind for ParamVote {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Validators)
    }
}
