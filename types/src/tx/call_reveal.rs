//! CALL_REVEAL: a member shows the answer that it committed to (docs/protocol.md section 5.23).

use super::call_commit::ROUND;
use super::declare::declare;
use super::spec::{IntegerLimit, TextLimit};
use super::value::HexBytes;
use super::{Kind, StaticView, Subject};
use crate::call::{Answer, CALLDATA_BYTES_MAX, Outcome};
use crate::ids::compute_result_hash;
use crate::{Hash, Rejection, Usage};

/// At most 1,024 bytes.
const REASON: TextLimit = TextLimit::Bytes { min: 0, max: 1_024 };

declare! {
    /// Shows the answer that a member of a call has committed to.
    kind CallReveal = "CALL_REVEAL", section "5.23", fork V8 {
        required {
            /// The call.
            call_id "callId": Hash, Hash;
            /// The round that the member was drawn for: 0, or 1 after an appeal.
            round "round": u64, Integer(ROUND);
            /// What made the commitment unguessable.
            salt "salt": Hash, Hash;
            /// How it ended: `success`, `failure` of the agent, or `unable` to execute it.
            outcome "outcome": String, Text(TextLimit::OneOf(Outcome::WORDS));
            /// The answer as lowercase hex with 0x, at most 16,384 bytes; empty unless it is a success.
            result "result": HexBytes, Hex(CALLDATA_BYTES_MAX);
            /// Tokens that were read.
            input_tokens "inputTokens": u64, Integer(IntegerLimit::any("tokens"));
            /// Tokens that were written.
            output_tokens "outputTokens": u64, Integer(IntegerLimit::any("tokens"));
            /// Units of fuel that were used.
            fuel "fuel": u64, Integer(IntegerLimit::any("units"));
            /// SHA-256 of what has to be kept to do the work again.
            receipt_hash "receiptHash": Hash, Hash;
        }
        optional {
            /// Why there is no success, for people; at most 1,024 bytes, in no hash.
            reason "reason": String, Text(REASON);
        }
    }
}

impl CallReveal {
    /// What is revealed; none for an outcome that there is not.
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
