//! CALL_REVEAL: a member reveals the answer that it committed to (docs/protocol.md section 5.23).

use super::call_commit::ROUND;
use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::{IntegerLimit, TextLimit};
use super::static_view::StaticView;
use super::value::HexBytes;
use crate::call::{Answer, CALLDATA_BYTES_MAX, Outcome};
use crate::ids::compute_result_hash;
use crate::{Hash, Rejection, Usage};

/// At most 1,024 bytes.
const REASON: TextLimit = TextLimit::Bytes { min: 0, max: 1_024 };

declare! {
    /// Reveals the answer that a member of a call committed to.
    kind CallReveal = "CALL_REVEAL", section "5.23", fork V8 {
        required {
            /// The id of the call.
            call_id "callId": Hash, Hash;
            /// The round for which the member was drawn: 0, or 1 after an appeal.
            round "round": u64, Integer(ROUND);
            /// The salt: the secret that the member used in its commitment.
            salt "salt": Hash, Hash;
            /// The outcome: `success`, `failure` if the agent itself cannot answer, or `unable` if
            /// only this member cannot execute it.
            outcome "outcome": String, Text(TextLimit::OneOf(Outcome::WORDS));
            /// The result in lowercase hex with `0x`, at most 16,384 bytes. Empty unless the
            /// outcome is `success`.
            result "result": HexBytes, Hex(CALLDATA_BYTES_MAX);
            /// The number of input tokens.
            input_tokens "inputTokens": u64, Integer(IntegerLimit::any("tokens"));
            /// The number of output tokens.
            output_tokens "outputTokens": u64, Integer(IntegerLimit::any("tokens"));
            /// The units of fuel used.
            fuel "fuel": u64, Integer(IntegerLimit::any("units"));
            /// The SHA-256 of `work` in the member's receipt, with which the work can be repeated.
            receipt_hash "receiptHash": Hash, Hash;
        }
        optional {
            /// Why the outcome is not `success`, for people; at most 1,024 bytes. Not part of the
            /// commitment.
            reason "reason": String, Text(REASON);
        }
    }
}

impl CallReveal {
    /// The revealed answer; `None` for an unknown outcome.
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        let Self { input_tokens, output_tokens, fuel, receipt_hash, .. } = *self;
        Some(Answer {
            outcome: Outcome::parse(&self.outcome)?,
            result_hash: compute_result_hash(&self.result.0),
            usage: Usage { input_tokens, output_tokens, fuel },
            receipt_hash,
        })
    }
}

impl Kind for CallReveal {
    fn check_together(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        let bytes = self.result.0.len();
        if bytes > 0 && self.outcome != Outcome::Success.as_str() {
            let expected = format_args!("nothing with the outcome {}", self.outcome);
            return Err(Rejection::invalid("result", format_args!("{bytes} bytes"), expected));
        }
        Ok(())
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Call(self.call_id))
    }
}
