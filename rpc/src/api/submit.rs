//! Handing transactions in.

use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;
use serde_json::value::RawValue;
use types::{SizeLimits, Transaction};

use super::Api;
use crate::SUBMIT_ITEMS_MAX;
use crate::error::RpcError;
use crate::ports::SubmitError;
use crate::wire::{SendAnswer, SendItem, SignedParts, Simulation, TxTexts};

/// Handing transactions in. The text of a transaction reaches the chain exactly as its signer
/// wrote it. `ombra_sendTransaction` is answered by the middleware, which joins those of a batch.
#[rpc(server, namespace = "ombra")]
pub trait SubmitRpc {
    /// Takes up to 1,000 signed transactions; the answers are in the same order, and one bad item
    /// never affects another.
    #[method(name = "sendTransactions")]
    async fn send_transactions(&self, txs: TxTexts) -> Result<Vec<SendItem>, RpcError>;

    /// Joins a built transaction and its signature, and takes it.
    #[method(name = "sendSigned")]
    async fn send_signed(&self, signed: SignedParts) -> Result<SendAnswer, RpcError>;

    /// What a signed or unsigned transaction would do. Nothing is kept.
    #[method(name = "simulateTransaction", blocking)]
    fn simulate_transaction(&self, tx: Box<RawValue>) -> Result<Simulation, RpcError>;
}

#[async_trait]
impl SubmitRpcServer for Api {
    async fn send_transactions(&self, txs: TxTexts) -> Result<Vec<SendItem>, RpcError> {
        let TxTexts { texts, count } = txs;
        if count > SUBMIT_ITEMS_MAX {
            let message = format!("{count} transactions, at most {SUBMIT_ITEMS_MAX}");
            return Err(RpcError::too_large("TOO_MANY_ITEMS", message));
        }
        let answers = self.ports.submit.submit(texts).await;
        Ok(answers.into_iter().map(SendItem::from).collect())
    }

    async fn send_signed(&self, signed: SignedParts) -> Result<SendAnswer, RpcError> {
        let SignedParts { tx, signature } = signed;
        let limits = SizeLimits::from(&self.facts.params);
        let unsigned = Transaction::parse_unsigned(tx.get().as_bytes(), &limits)?;
        let payload = unsigned.payload();
        let open = payload.strip_suffix('}').unwrap_or(payload);
        let hash = unsigned.hash();
        let text = format!(r#"{open},"hash":"{hash}","signature":"{}"}}"#, signature.0);
        let text = RawValue::from_string(text).map_err(|e| {
            tracing::error!(error = %e, "a signed text is not JSON");
            RpcError::Internal
        })?;
        let answer = self.ports.submit.submit(vec![text]).await.pop();
        let hash = answer.ok_or(RpcError::Internal)??;
        Ok(SendAnswer { hash })
    }

    fn simulate_transaction(&self, tx: Box<RawValue>) -> Result<Simulation, RpcError> {
        match self.ports.projection.simulate(&tx) {
            Ok(effects) => Ok(Simulation::from(effects)),
            Err(SubmitError::Rejected(rejection)) => Ok(Simulation::from(rejection)),
            Err(error) => Err(error.into()),
        }
    }
}
