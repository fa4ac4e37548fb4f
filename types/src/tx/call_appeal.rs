//! CALL_APPEAL: appeal the decision of a call (docs/protocol.md section 5.24).

use super::declare::declare;
use super::kind::{Kind, Subject};
use crate::Hash;

declare! {
    /// Appeals the decision of a call. The sender pays for a second committee, about twice as
    /// large, and makes a deposit.
    kind CallAppeal = "CALL_APPEAL", section "5.24", fork V8 {
        required {
            /// The id of the call.
            call_id "callId": Hash, Hash;
        }
        optional {}
    }
}

impl Kind for CallAppeal {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Call(self.call_id))
    }
}
