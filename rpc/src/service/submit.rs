//! Submitting transactions. The text of a transaction reaches the chain exactly as its signer wrote
//! it.

use serde_json::value::RawValue;
use types::{Hash, SizeLimits, Transaction};

use super::Context;
use crate::error::RpcError;
use crate::ports::{Ports, SubmitError};
use crate::wire::{SUBMIT_ITEMS_MAX, SendItem, SignedParts, Simulation, TxTexts};

/// Takes one signed transaction.
pub(crate) async fn send(ports: &Ports, text: Box<RawValue>) -> Result<Hash, RpcError> {
    let answer = ports.submit.submit(vec![text]).await.pop();
    Ok(answer.ok_or(RpcError::Internal)??)
}

/// Takes signed transactions together; the answers are in the same order, and one bad item never affects
/// another.
pub(crate) async fn send_all(
    ports: &Ports,
    texts: Vec<Box<RawValue>>,
) -> Vec<Result<Hash, SubmitError>> {
    if texts.is_empty() { Vec::new() } else { ports.submit.submit(texts).await }
}

/// The same for the transactions of one call, of which there may be so many.
pub(crate) async fn send_list(ports: &Ports, txs: TxTexts) -> Result<Vec<SendItem>, RpcError> {
    let TxTexts { texts, count } = txs;
    if count > SUBMIT_ITEMS_MAX {
        let message = format!("{count} transactions, at most {SUBMIT_ITEMS_MAX}");
        return Err(RpcError::too_large("TOO_MANY_ITEMS", message));
    }
    let answers = ports.submit.submit(texts).await;
    Ok(answers.into_iter().map(SendItem::from).collect())
}

/// Joins a built transaction and its signature, and takes it.
pub(crate) async fn send_signed(context: &Context, signed: SignedParts) -> Result<Hash, RpcError> {
    let SignedParts { tx, signature } = signed;
    let limits = SizeLimits::from(&context.facts.params);
    let unsigned = Transaction::parse_unsigned(tx.get().as_bytes(), &limits)?;
    let payload = unsigned.payload();
    let open = payload.strip_suffix('}').unwrap_or(payload);
    let hash = unsigned.hash();
    let text = format!(r#"{open},"hash":"{hash}","signature":"{}"}}"#, signature.0);
    let text = RawValue::from_string(text).map_err(|e| {
        tracing::error!(error = %e, "a signed text is not JSON");
        RpcError::Internal
    })?;
    send(&context.ports, text).await
}

/// What a signed or unsigned transaction would do. Nothing is kept.
pub(crate) fn simulate(ports: &Ports, tx: &RawValue) -> Result<Simulation, RpcError> {
    match ports.projection.simulate(tx) {
        Ok(effects) => Ok(Simulation::from(effects)),
        Err(SubmitError::Rejected(rejection)) => Ok(Simulation::from(rejection)),
        Err(error) => Err(error.into()),
    }
}
