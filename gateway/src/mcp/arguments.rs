//! The arguments that several tools have.

use types::Hash;

pub(super) use crate::arguments::Arguments;
use crate::keys::{IDEMPOTENCY_KEY_BYTES_MAX, hash_of};
use crate::openai::{ApiFault, short};

/// The longest that a tool waits, seconds: clients give up after a minute.
pub(super) const WAIT_SECONDS_MAX: u64 = 45;
/// The argument that says how long a tool waits.
pub(super) const WAIT_SECONDS: &str = "wait_seconds";
/// The argument that names a run.
pub(super) const RUN_ID: &str = "run_id";
/// The argument that names a call.
pub(super) const CALL_ID: &str = "call_id";
/// The argument that makes a question idempotent.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency_key";

impl Arguments {
    /// How long to wait.
    pub(super) fn wait_seconds(&self, default: u64) -> Result<u64, ApiFault> {
        Ok(self.whole(WAIT_SECONDS, 0, WAIT_SECONDS_MAX)?.unwrap_or(default))
    }

    /// The run or the call that is meant.
    pub(super) fn id(&self, name: &str) -> Result<Hash, ApiFault> {
        let text = self.needed(name)?;
        Hash::parse(text).map_err(|_text| {
            let message = format!("{name}: expected 64 hexadecimal digits, got {:?}", short(text));
            ApiFault::parameter(name, message)
        })
    }

    /// The hash of the key that makes a question idempotent, if it has one.
    pub(super) fn idempotency_key(&self) -> Result<Option<Hash>, ApiFault> {
        let Some(text) = self.text(IDEMPOTENCY_KEY)? else { return Ok(None) };
        if text.is_empty() || text.len() > IDEMPOTENCY_KEY_BYTES_MAX {
            let got = text.len();
            let message = format!(
                "idempotency_key: expected 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes, got {got}"
            );
            return Err(ApiFault::parameter(IDEMPOTENCY_KEY, message));
        }
        Ok(Some(hash_of(text)))
    }
}

#[cfg(test)]
mod tests {
    //! What is refused.

    use serde_json::{Value, json};

    use super::{Arguments, IDEMPOTENCY_KEY, RUN_ID, WAIT_SECONDS};

    fn given(value: &Value) -> Arguments {
        let known = [WAIT_SECONDS, RUN_ID, IDEMPOTENCY_KEY];
        Arguments::of(value.as_object().cloned(), &known).unwrap()
    }

    #[test]
    fn a_time_to_wait_is_short_and_an_id_is_a_hash() {
        assert_eq!(45, given(&json!({})).wait_seconds(45).unwrap());
        assert_eq!(0, given(&json!({ "wait_seconds": 0 })).wait_seconds(45).unwrap());
        assert!(given(&json!({ "wait_seconds": 46 })).wait_seconds(0).is_err());
        let message = given(&json!({ "run_id": "0xabc" })).id(RUN_ID).unwrap_err().message;
        assert!(message.starts_with("run_id: expected 64"), "{message}");
    }

    #[test]
    fn an_idempotency_key_is_neither_empty_nor_long() {
        for (key, is_taken) in [("", false), ("a", true), (&*"a".repeat(256), false)] {
            let given = given(&json!({ "idempotency_key": key }));
            assert_eq!(is_taken, given.idempotency_key().is_ok(), "{key}");
        }
    }
}
