//! Submitting transactions.

use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;
use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::service::{Context, submit};
use crate::wire::{SendAnswer, SendItem, SignedParts, Simulation, TxTexts};

/// Submitting transactions. The text of a transaction reaches the chain exactly as its signer wrote
/// it. The middleware joins calls of `ombra_sendTransaction` in one batch before they come here.
#[rpc(server, namespace = "ombra")]
pub trait SubmitRpc {
    /// Submits a signed transaction to the pool.
    #[method(name = "sendTransaction")]
    async fn send_transaction(&self, tx: Box<RawValue>) -> Result<SendAnswer, RpcError>;

    /// Submits up to 1,000 signed transactions. The answers are in the same order, and a bad
    /// transaction never affects another.
    #[method(name = "sendTransactions")]
    async fn send_transactions(&self, txs: TxTexts) -> Result<Vec<SendItem>, RpcError>;

    /// Submits a built transaction with its signature.
    #[method(name = "sendSigned")]
    async fn send_signed(&self, signed: SignedParts) -> Result<SendAnswer, RpcError>;

    /// Returns what a signed or unsigned transaction would do now. The node keeps nothing of it.
    #[method(name = "simulateTransaction", blocking)]
    fn simulate_transaction(&self, tx: Box<RawValue>) -> Result<Simulation, RpcError>;
}

#[async_trait]
impl SubmitRpcServer for Context {
    async fn send_transaction(&self, tx: Box<RawValue>) -> Result<SendAnswer, RpcError> {
        Ok(SendAnswer { hash: submit::send(&self.ports, tx).await? })
    }

    async fn send_transactions(&self, txs: TxTexts) -> Result<Vec<SendItem>, RpcError> {
        submit::send_list(&self.ports, txs).await
    }

    async fn send_signed(&self, signed: SignedParts) -> Result<SendAnswer, RpcError> {
        Ok(SendAnswer { hash: submit::send_signed(self, signed).await? })
    }

    fn simulate_transaction(&self, tx: Box<RawValue>) -> Result<Simulation, RpcError> {
        submit::simulate(&self.ports, &tx)
    }
}
