//! A transaction with its place beside its members, as the public clients read it.
//!
//! Signers may add members of their own, which are hashed and kept. One that is named like a part
//! of the place would be taken for what the node says, so it is left out.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{RestTx, TxPlace, TxView};
use crate::error::RpcError;

/// The names of the place's members.
const NAMES: [&str; 8] = [
    "blockIndex",
    "blockHash",
    "position",
    "blockTimestamp",
    "inclusionFee",
    "txStatus",
    "status",
    "dropped",
];

/// The one type with a `status` of its own.
const FINISH: &str = "\"AGENT_FINISH\"";

/// The members of a signed object, in its signer's order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        reader.deserialize_map(Object)
    }
}

/// The transaction with its place. What its signer wrote stays as it is, but for members that are
/// named like the place's.
pub(crate) fn tx_with_place(view: TxView) -> Result<RestTx, RpcError> {
    join(view).ok_or_else(|| {
        tracing::error!("a transaction could not be written with its place");
        RpcError::Internal
    })
}

fn join(view: TxView) -> Option<RestTx> {
    let TxView {
        hash: _,
        status,
        tx,
        block_index,
        block_hash,
        position,
        timestamp,
        inclusion_fee,
        // A member of that name is the signer's.
        waiting: _,
        dropped,
    } = view;
    let Members(members) = serde_json::from_str(tx.get()).ok()?;
    let is_finish = members.iter().any(|(name, value)| name == "type" && value.get() == FINISH);
    let is_taken = |name: &str| NAMES.contains(&name) && !(is_finish && name == "status");
    let place = TxPlace {
        block_index,
        block_hash,
        position,
        block_timestamp: timestamp,
        inclusion_fee,
        tx_status: status,
        status: (!is_finish).then_some(status),
        dropped,
    };
    let place = serde_json::to_string(&place).ok()?;
    let place = place.strip_prefix('{')?;
    let text = if members.iter().any(|(name, _)| is_taken(name)) {
        let mut text = String::from("{");
        for (name, value) in members.iter().filter(|(name, _)| !is_taken(name)) {
            text.push_str(&serde_json::to_string(name).ok()?);
            text.push(':');
            text.push_str(value.get());
            text.push(',');
        }
        text + place
    } else {
        format!("{},{place}", tx.get().strip_suffix('}')?)
    };
    RawValue::from_string(text).ok().map(RestTx)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use types::Hash;

    use super::*;
    use crate::wire::TxStatus;

    fn joined(tx: &Value) -> Value {
        let view = TxView {
            hash: Hash::ZERO,
            status: TxStatus::Pending,
            tx: RawValue::from_string(tx.to_string()).expect("JSON"),
            block_index: None,
            block_hash: None,
            position: None,
            timestamp: None,
            inclusion_fee: None,
            waiting: None,
            dropped: None,
        };
        let RestTx(text) = join(view).expect("an object");
        let Members(members) = serde_json::from_str(text.get()).expect("an object");
        let mut names: Vec<_> = members.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(count, names.len(), "a name comes twice: {text}");
        serde_json::from_str(text.get()).expect("JSON")
    }

    #[test]
    fn a_signer_cannot_say_where_its_transaction_is() {
        let tx = json!({
            "type": "TRANSFER", "memo": "mine", "status": "included", "txStatus": "included",
            "blockIndex": 7, "blockHash": "ab", "position": 3, "blockTimestamp": 5, "dropped": 1,
            "inclusionFee": "0",
        });
        let expected = json!({
            "type": "TRANSFER", "memo": "mine", "blockIndex": null, "txStatus": "pending",
            "status": "pending",
        });
        assert_eq!(expected, joined(&tx));
    }

    #[test]
    fn the_status_that_ends_a_run_is_the_signers() {
        let answer = joined(&json!({ "type": "AGENT_FINISH", "status": "completed" }));
        assert_eq!(json!("completed"), answer["status"]);
        assert_eq!(json!("pending"), answer["txStatus"]);
    }
}
