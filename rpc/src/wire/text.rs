//! The texts of transactions as JSON values.

use serde_json::value::RawValue;
use types::Transaction;

/// The signed transaction as a JSON value, with the text that its signer wrote.
pub(crate) fn tx_object(tx: &Transaction) -> Box<RawValue> {
    RawValue::from_string(tx.to_json()).expect("a transaction's text is JSON")
}
