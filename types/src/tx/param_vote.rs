//! PARAM_VOTE: a validator votes for a new value of a parameter (docs/protocol.md section 5.13).

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::{IntegerLimit, TextLimit};

/// 1 to 64 bytes.
const NAME: TextLimit = TextLimit::Bytes { min: 1, max: 64 };

declare! {
    /// Casts a validator's vote for a new value of a parameter.
    kind ParamVote = "PARAM_VOTE", section "5.13", fork V7 {
        required {
            /// The name of the parameter, such as `baseFeeFloor`.
            name "name": String, Text(NAME);
            /// The new value, in the parameter's own unit.
            value "value": u64, Integer(IntegerLimit::any(""));
            /// The height of the first block in which the parameter should have the new value.
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
